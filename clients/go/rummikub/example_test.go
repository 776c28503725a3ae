package rummikub_test

import (
	"context"
	"errors"
	"log"

	"rummikub.example/go/rummikub"
	pb "rummikub.example/go/rummikubv1"
)

// The code of README.md.
func ExampleRefusalError() {
	ctx, id := context.Background(), "f3a9"
	lobby, _ := rummikub.Connect("127.0.0.1:50051")
	defer lobby.Close()

	_, err := lobby.Games.GetGame(ctx, &pb.GetGameRequest{GameId: id})
	var refused *rummikub.RefusalError
	switch {
	case rummikub.ReasonOf(err) == pb.ErrorReason_GAME_NOT_FOUND: // the game has expired
	case errors.As(err, &refused):
		log.Print(err, refused.Metadata, refused.Violations) // every violation of an illegal turn
	}
}
