// Command bot plays what the service suggests, and accepts challenges, until it is stopped (docs/bot-programs.md).
//
// Usage: go run ./examples/bot NAME. BOT_ADDRESS is host:port, BOT_KEY the front end's key, BOT_TICKETS a file with join
// tickets, one a line.
package main

import (
	"context"
	"log"
	"os"

	"rummikub.example/go/rummikub"
	pb "rummikub.example/go/rummikubv1"
)

func main() {
	client, err := rummikub.Connect(os.Getenv("BOT_ADDRESS"), rummikub.WithAPIKey(os.Getenv("BOT_KEY")))
	if err != nil {
		log.Fatal(err)
	}
	tickets, err := rummikub.TicketsOf(os.Getenv("BOT_TICKETS"))
	if err != nil {
		log.Fatal(err)
	}
	choose := func(ctx context.Context, _ *pb.Game, legal rummikub.Legal) (*pb.PlayTurnRequest, error) {
		return legal.Suggest(ctx)
	}
	bot := rummikub.Bot{Client: client, Ticket: tickets, Name: os.Args[1], Choose: choose, Log: func(err error) { log.Print(err) }}
	log.Fatal(bot.Run(context.Background()))
}
