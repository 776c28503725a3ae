// Command game plays two rounds against bots: go run . [host:port [preset]]
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"google.golang.org/protobuf/proto"

	"rummikub.example/go/rummikub"
	pb "rummikub.example/go/rummikubv1"
)

func main() {
	target, preset := "127.0.0.1:50051", "PRESET_SABRA"
	if len(os.Args) > 1 {
		target = os.Args[1]
	}
	if len(os.Args) > 2 {
		preset = os.Args[2]
	}
	if err := play(context.Background(), target, pb.Preset(pb.Preset_value[preset])); err != nil {
		log.Fatal(err)
	}
}

func play(ctx context.Context, target string, preset pb.Preset) error {
	lobby, err := rummikub.Connect(target)
	if err != nil {
		return err
	}
	defer lobby.Close()
	twoRounds := &pb.GameEndOptions{MatchEnd: pb.MatchEnd_MATCH_END_FIXED_ROUNDS, MatchRounds: proto.Uint32(2)}
	melding := &pb.MeldingRuleset{Preset: preset, GameEnd: twoRounds}
	rules := &pb.Ruleset{Game: &pb.Ruleset_Melding{Melding: melding}}
	created, err := lobby.Games.CreateGame(ctx, &pb.CreateGameRequest{Ruleset: rules})
	if err != nil {
		return err
	}
	id, host := created.Game.GameId, lobby.Seated(created.HostToken)
	joining := &pb.JoinGameRequest{Game: &pb.JoinGameRequest_GameId{GameId: id}, Name: "Ann"}
	joined, err := host.Games.JoinGame(ctx, joining)
	if err != nil {
		return err
	}
	ann := lobby.Seated(joined.SeatToken)
	for range created.Game.Ruleset.GetMelding().Deal.GetPlayersMin() - 1 {
		if _, err := ann.Games.AddBot(ctx, &pb.AddBotRequest{GameId: id, Level: pb.BotLevel_BOT_LEVEL_EASY}); err != nil {
			return err
		}
	}
	if _, err := ann.Games.StartGame(ctx, &pb.StartGameRequest{GameId: id}); err != nil {
		return err
	}
	for game, err := range ann.WatchGames(ctx, id) {
		if err != nil {
			return err
		}
		fmt.Println(rummikub.FormatTable(game.Table), "rack:", rummikub.FormatTiles(game.Rack))
		switch {
		case game.Turn != nil && game.Turn.Seat == game.GetSeat():
			question := &pb.SuggestTurnRequest{Subject: &pb.SuggestTurnRequest_GameId{GameId: id}}
			found, err := ann.Analysis.SuggestTurn(ctx, question)
			if err != nil {
				return err
			}
			if _, err := ann.Turns.PlayTurn(ctx, found.Turn); err != nil {
				return err
			}
		case game.State == pb.GameState_GAME_STATE_ROUND_OVER:
			if _, err := ann.Turns.StartNextRound(ctx, &pb.StartNextRoundRequest{GameId: id}); err != nil {
				return err
			}
		}
	}
	return nil
}
