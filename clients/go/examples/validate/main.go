// Command validate judges a turn of a game that the caller stores: go run . [host:port]
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"rummikub.example/go/rummikub"
	pb "rummikub.example/go/rummikubv1"
)

func main() {
	client, err := rummikub.Connect(append(os.Args, "127.0.0.1:50051")[1])
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	melded := true
	verdict, err := client.Validation.ValidateTurn(context.Background(), &pb.ValidateTurnRequest{
		TableBefore: table("[R3 R4 R5]"),
		TableAfter:  table("[R3 R4 R5 R6] | [B9 K9]"),
		Rack:        []pb.Tile{pb.Tile_TILE_RED_6, pb.Tile_TILE_BLUE_9, pb.Tile_TILE_BLACK_9},
		HasMelded:   &melded,
	})
	if err != nil {
		log.Fatal(err) // the request is malformed, or no service answers
	}
	for _, violation := range verdict.Violations { // empty: the turn is legal
		fmt.Println(violation.Reason, violation.Subject, violation.Text)
	}
}

// table reads melds of the program's own, so an error is a mistake in this file.
func table(text string) *pb.Table {
	melds, err := rummikub.ParseMelds(text)
	if err != nil {
		panic(err)
	}
	return &pb.Table{Melds: melds}
}
