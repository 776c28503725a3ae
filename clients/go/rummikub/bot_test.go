package rummikub

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	pb "rummikub.example/go/rummikubv1"
)

// arena is a server with one game, in which the bot has the seat 1 and the turn, until an action of lasts ends it.
type arena struct {
	pb.UnimplementedTurnServiceServer
	pb.UnimplementedAnalysisServiceServer
	*fakeServer

	mu      sync.Mutex
	view    *pb.Game
	refused pb.ErrorReason // of the first turn, if set
	returns int
	actions []string
	over    chan struct{}
}

func (a *arena) WatchOwnGames(
	_ *pb.WatchOwnGamesRequest, stream grpc.ServerStreamingServer[pb.WatchOwnGamesResponse],
) error {
	seat := uint32(1)
	summary := &pb.GameSummary{State: pb.GameState_GAME_STATE_PLAYING, TurnSeat: &seat}
	own := &pb.OwnGame{GameId: "g", Found: &pb.OwnGame_Game{Game: summary}, Seat: &seat}
	if err := stream.Send(&pb.WatchOwnGamesResponse{Update: &pb.WatchOwnGamesResponse_Game{Game: own}}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

func (a *arena) GetGame(context.Context, *pb.GetGameRequest) (*pb.GetGameResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &pb.GetGameResponse{Game: a.view}, nil
}

func (a *arena) SuggestTurn(context.Context, *pb.SuggestTurnRequest) (*pb.SuggestTurnResponse, error) {
	return nil, refused(codes.FailedPrecondition, pb.ErrorReason_HINT_NOT_ALLOWED)
}

func (a *arena) PlayTurn(_ context.Context, request *pb.PlayTurnRequest) (*pb.PlayTurnResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.actions = append(a.actions, fmt.Sprintf("%T", request.Action)[len("*rummikubv1.PlayTurnRequest_"):])
	if reason := a.refused; reason != 0 {
		a.refused = 0
		return nil, refused(codes.FailedPrecondition, reason)
	}
	if request.GetTakeFromPool() != nil {
		a.view.Turn.Step = pb.TurnStep_TURN_STEP_DISCARDING
	} else {
		if tile := request.GetDiscard().GetTile(); tile != 0 {
			a.actions = append(a.actions, TileName(tile))
		}
		a.view.Turn.Seat = 2
		close(a.over)
	}
	return &pb.PlayTurnResponse{}, nil
}

func (a *arena) ReturnToSeat(context.Context, *pb.ReturnToSeatRequest) (*pb.ReturnToSeatResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.returns++
	return nil, refused(codes.FailedPrecondition, pb.ErrorReason_PLAYER_NOT_ABSENT)
}

// actionsOf returns the actions of a bot in a turn, with the tile of a discard.
func actionsOf(t *testing.T, a *arena, choose func(context.Context, *pb.Game, Legal) (*pb.PlayTurnRequest, error)) string {
	t.Helper()
	seat := uint32(1)
	a.view.GameId, a.view.State, a.view.Seat, a.view.PoolCount = "g", pb.GameState_GAME_STATE_PLAYING, &seat, 40
	a.view.Turn = &pb.Turn{Seat: 1, Step: pb.TurnStep_TURN_STEP_OPEN}
	a.over, a.fakeServer = make(chan struct{}), &fakeServer{}
	client := startWith(t, func(server *grpc.Server) {
		pb.RegisterGameServiceServer(server, a)
		pb.RegisterTurnServiceServer(server, a)
		pb.RegisterAnalysisServiceServer(server, a)
	})
	file := t.TempDir() + "/tokens"
	if err := (&Bot{TokensFile: file, tokens: map[string]string{}}).keep("g", "token"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	bot := &Bot{Client: client, Ticket: func() string { return "ticket" }, TokensFile: file, Choose: choose}
	go bot.Run(ctx)
	select {
	case <-a.over:
	case <-ctx.Done():
		t.Fatal("the turn times out")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return fmt.Sprint(a.actions)
}

func suggested(ctx context.Context, _ *pb.Game, legal Legal) (*pb.PlayTurnRequest, error) {
	return legal.Suggest(ctx)
}

func melding() *pb.Game {
	return &pb.Game{Ruleset: &pb.Ruleset{Game: &pb.Ruleset_Melding{Melding: &pb.MeldingRuleset{}}}}
}

func discards() *pb.Game {
	rack, _ := ParseTiles("R3 K13 B12 J")
	board := &pb.DiscardBoard{Okey: pb.Tile_TILE_BLACK_13}
	return &pb.Game{
		Ruleset:      &pb.Ruleset{Game: &pb.Ruleset_Discard{Discard: &pb.DiscardRuleset{}}},
		DiscardBoard: board,
		Rack:         rack,
	}
}

func TestABotWhoseChoiceFailsTakesItsTurn(t *testing.T) {
	failing := func(context.Context, *pb.Game, Legal) (*pb.PlayTurnRequest, error) {
		return nil, errors.New("a mistake")
	}
	if actions := actionsOf(t, &arena{view: melding()}, failing); actions != "[Draw]" {
		t.Error(actions)
	}
	notAllowed := pb.ErrorReason_DRAW_NOT_ALLOWED_PLAY_EXISTS
	if actions := actionsOf(t, &arena{view: melding(), refused: notAllowed}, failing); actions != "[Draw PassTurn]" {
		t.Error(actions)
	}
	none := func(context.Context, *pb.Game, Legal) (*pb.PlayTurnRequest, error) { return nil, nil }
	if actions := actionsOf(t, &arena{view: discards()}, none); actions != "[TakeFromPool Discard B12]" {
		t.Error(actions)
	}
}

func TestABotPlaysWhereHintsAreNotAllowed(t *testing.T) {
	if actions := actionsOf(t, &arena{view: discards()}, suggested); actions != "[TakeFromPool Discard B12]" {
		t.Error(actions)
	}
}

func TestABotThatConnectsReturnsToItsSeatOnce(t *testing.T) {
	a := &arena{view: discards()}
	if actionsOf(t, a, suggested); a.returns != 1 {
		t.Error(a.returns)
	}
}
