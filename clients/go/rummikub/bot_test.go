package rummikub

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// inbox is a server that sends updates of a bot's games and challenges, and notes its answers.
type inbox struct {
	pb.UnimplementedChallengeServiceServer
	*fakeServer

	mu      sync.Mutex
	updates []*pb.WatchOwnGamesResponse
	games   []*pb.OwnGame // what ListOwnGames returns
	asked   *pb.WatchOwnGamesRequest
	answers chan string
}

func (i *inbox) WatchOwnGames(
	request *pb.WatchOwnGamesRequest, stream grpc.ServerStreamingServer[pb.WatchOwnGamesResponse],
) error {
	i.asked = request
	for _, update := range i.updates {
		if err := stream.Send(update); err != nil {
			return err
		}
	}
	for stream.Context().Err() == nil {
		time.Sleep(10 * time.Millisecond)
		stream.Send(&pb.WatchOwnGamesResponse{Update: &pb.WatchOwnGamesResponse_Heartbeat{Heartbeat: &pb.Heartbeat{}}})
	}
	return stream.Context().Err()
}

func (i *inbox) ListOwnGames(context.Context, *pb.ListOwnGamesRequest) (*pb.ListOwnGamesResponse, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return &pb.ListOwnGamesResponse{Games: slices.Clone(i.games)}, nil
}

func (i *inbox) AcceptChallenge(
	_ context.Context, request *pb.AcceptChallengeRequest,
) (*pb.AcceptChallengeResponse, error) {
	id := "game of " + request.ChallengeId
	i.mu.Lock()
	i.games = append(i.games, ofGame(id, pb.GameState_GAME_STATE_LOBBY).GetGame())
	i.mu.Unlock()
	i.answers <- "accepted"
	return &pb.AcceptChallengeResponse{Challenge: &pb.Challenge{GameId: id}}, nil
}

func (i *inbox) DeclineChallenge(
	_ context.Context, request *pb.DeclineChallengeRequest,
) (*pb.DeclineChallengeResponse, error) {
	i.answers <- request.Reason.String()
	return &pb.DeclineChallengeResponse{}, nil
}

func (i *inbox) client(t *testing.T) *Client {
	t.Helper()
	i.fakeServer, i.answers = &fakeServer{}, make(chan string, 10)
	return startWith(t, func(server *grpc.Server) {
		pb.RegisterGameServiceServer(server, i)
		pb.RegisterChallengeServiceServer(server, i)
	})
}

// ofGame returns an update of a game in which the bot has the seat 1, and the other one the turn or the victory.
func ofGame(id string, state pb.GameState) *pb.WatchOwnGamesResponse {
	seat, other := uint32(1), uint32(2)
	summary := &pb.GameSummary{State: state, TurnSeat: &other}
	own := &pb.OwnGame{GameId: id, Found: &pb.OwnGame_Game{Game: summary}, Seat: &seat, WinnerSeats: []uint32{1}}
	return &pb.WatchOwnGamesResponse{Update: &pb.WatchOwnGamesResponse_Game{Game: own}}
}

func ofChallenge(id string) *pb.WatchOwnGamesResponse {
	challenge := &pb.Challenge{ChallengeId: id, IsIncoming: true, State: pb.ChallengeState_CHALLENGE_STATE_OPEN}
	return &pb.WatchOwnGamesResponse{Update: &pb.WatchOwnGamesResponse_Challenge{Challenge: challenge}}
}

func TestABotHasNoMoreGamesThanItsMost(t *testing.T) {
	playing, finished := pb.GameState_GAME_STATE_PLAYING, pb.GameState_GAME_STATE_FINISHED
	server := &inbox{
		updates: []*pb.WatchOwnGamesResponse{
			ofGame("a", playing), ofGame("b", finished), ofChallenge("c"), ofChallenge("d"), ofChallenge("e"),
		},
		games: []*pb.OwnGame{ofGame("a", playing).GetGame()},
	}
	all := func(*pb.Challenge) (bool, pb.DeclineReason) { return true, 0 }
	bot := &Bot{Client: server.client(t), Ticket: func() string { return "ticket" }, GamesMax: 2, Answer: all}
	answers := answersOf(t, server, bot, 3)
	if answers["accepted"] != 1 || answers[pb.DeclineReason_DECLINE_REASON_LATER.String()] != 2 {
		t.Error(answers)
	}
}

func TestABotCountsNoGameThatIsGone(t *testing.T) {
	playing, finished := pb.GameState_GAME_STATE_PLAYING, pb.GameState_GAME_STATE_FINISHED
	server := &inbox{
		updates: []*pb.WatchOwnGamesResponse{ofGame("a", playing), ofGame("b", playing), ofChallenge("c"), ofChallenge("d")},
		games:   []*pb.OwnGame{ofGame("b", finished).GetGame()},
	}
	bot := &Bot{Client: server.client(t), Ticket: func() string { return "ticket" }, GamesMax: 2}
	if answers := answersOf(t, server, bot, 2); answers["accepted"] != 2 {
		t.Error(answers)
	}
}

// answersOf returns how often a bot gives each answer, in its first answers.
func answersOf(t *testing.T, server *inbox, bot *Bot, first int) map[string]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go bot.Run(ctx)
	answers := map[string]int{}
	for range first {
		select {
		case answer := <-server.answers:
			answers[answer]++
		case <-ctx.Done():
			t.Fatal(answers)
		}
	}
	return answers
}

func TestABotWithoutTicketsPlaysItsSeatsToTheirEnd(t *testing.T) {
	void := &pb.OwnGame{GameId: "b", Found: &pb.OwnGame_Refusal{Refusal: pb.ErrorReason_TOKEN_VOID}}
	server := &inbox{updates: []*pb.WatchOwnGamesResponse{
		ofGame("a", pb.GameState_GAME_STATE_FINISHED), {Update: &pb.WatchOwnGamesResponse_Game{Game: void}},
	}}
	var over []string
	bot := &Bot{
		Client: server.client(t),
		Tokens: map[string]string{"a": "token of a", "b": "token of b"},
		Over:   func(id string, _ *pb.GameSummary, won bool) { over = append(over, fmt.Sprint(id, " ", won)) },
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := bot.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if len(server.asked.Seats) != 2 || server.asked.JoinTicket != "" || fmt.Sprint(over) != "[a true]" {
		t.Error(server.asked, over)
	}
}
