// Command conformance checks the Go client against a live server (clients/conformance/README.md).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"rummikub.example/go/rummikub"
	pb "rummikub.example/go/rummikubv1"
)

// cuts are the numbers of changes after which a watch is cut. A short round against bots has 19 changes.
var cuts = []int{6, 12}

type call struct {
	ID, RPC           string
	Request, Response json.RawMessage
	Error             *struct {
		Code    string
		Refusal json.RawMessage
		Fields  []string
	}
}

type suite struct {
	ctx               context.Context
	target            string
	lobby, validation *rummikub.Client
	calls             []call
	games             []string // id:token
}

func main() {
	target := flag.String("target", "127.0.0.1:50051", "host:port of the service")
	validation := flag.String("validation", "127.0.0.1:50051", "host:port of the validation listener")
	wire := flag.String("wire", "tests/conformance/wire.json", "path of wire.json")
	games := flag.String("games", "", "games to play, as id:token, separated by commas")
	flag.String("proxy", "", "host:port of a web proxy; ignored")
	flag.Parse()
	var file struct{ Calls []call }
	check(json.Unmarshal(must(os.ReadFile(*wire)), &file))
	s := suite{context.Background(), *target, must(rummikub.Connect(*target)), must(rummikub.Connect(*validation)), file.Calls,
		strings.Split(*games, ",")}
	failed := 0
	for _, part := range []struct {
		name string
		run  func()
	}{
		{"wire", s.wire}, {"batch", s.batch}, {"stream", s.stream}, {"refusal", s.refusal}, {"game", s.game},
		{"turns", s.suggestedTurns},
		{"rules", s.rules}, {"names", s.names}, {"unknown", s.unknown}, {"deadline", s.deadline}, {"retry", s.retry},
		{"watches", s.watches},
	} {
		began := time.Now()
		err := failure(part.run)
		seconds := time.Since(began).Seconds()
		if err != nil {
			failed = 1
			fmt.Printf("FAIL %s %.2f %s\n", part.name, seconds, strings.Join(strings.Fields(err.Error()), " "))
		} else {
			fmt.Printf("PASS %s %.2f\n", part.name, seconds)
		}
	}
	os.Exit(failed)
}

func (s suite) watches() {
	lobby := must(rummikub.Connect(s.target))
	defer lobby.Close()
	id := must(lobby.Games.CreateGame(s.ctx, &pb.CreateGameRequest{})).Game.GameId
	for range 150 { // more than a connection carries
		next, stop := iter.Pull2(lobby.Watch(s.ctx, &pb.WatchGameRequest{GameId: id}))
		defer stop()
		update, err, _ := next()
		check(err)
		expect(update.GetSnapshot().GetGameId() == id, "the first update is %v", update)
	}
	game := must(lobby.Games.GetGame(s.ctx, &pb.GetGameRequest{GameId: id})).Game
	expect(game.GameId == id, "the game is %s", game.GameId)
}

// failure returns the error with which a check panics.
func failure(run func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = value.(error)
		}
	}()
	run()
	return nil
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func expect(ok bool, format string, args ...any) {
	if !ok {
		panic(fmt.Errorf(format, args...))
	}
}

func expectEqual(name string, got, want proto.Message) {
	expect(proto.Equal(got, want), "%s: got {%v}, want {%v}", name, got, want)
}

// replay makes the call of a row and compares its answer, an empty message of the type of the response.
func replay[Q, R proto.Message](
	s suite, row call, rpc func(context.Context, Q, ...grpc.CallOption) (R, error), request Q, want R,
) {
	check(protojson.Unmarshal(row.Request, request))
	got, err := rpc(s.ctx, request)
	if row.Error == nil {
		expect(err == nil, "%s: %v", row.ID, err)
		check(protojson.Unmarshal(row.Response, want))
		expectEqual(row.ID, got, want)
		return
	}
	var refused *rummikub.RefusalError
	expect(errors.As(err, &refused), "%s: the error is %v, not a refusal", row.ID, err)
	var code codes.Code
	check(code.UnmarshalJSON([]byte(strconv.Quote(row.Error.Code))))
	expect(refused.Code == code && slices.Equal(refused.Fields, row.Error.Fields),
		"%s: refused with %v %v, not %v %v", row.ID, refused.Code, refused.Fields, code, row.Error.Fields)
	refusal := &pb.Refusal{}
	check(protojson.Unmarshal(row.Error.Refusal, refusal))
	expectEqual(row.ID,
		&pb.Refusal{Reason: refused.Reason, Metadata: refused.Metadata, Violations: refused.Violations}, refusal)
}

func (s suite) wire() {
	service := s.validation.Validation
	for _, row := range s.calls {
		switch row.RPC {
		case "rummikub.v1.ValidationService/ValidateMelds":
			replay(s, row, service.ValidateMelds, &pb.ValidateMeldsRequest{}, &pb.ValidateMeldsResponse{})
		case "rummikub.v1.ValidationService/ValidateTurn":
			replay(s, row, service.ValidateTurn, &pb.ValidateTurnRequest{}, &pb.ValidateTurnResponse{})
		case "rummikub.v1.ValidationService/ValidatePlacement":
			replay(s, row, service.ValidatePlacement, &pb.ValidatePlacementRequest{}, &pb.ValidatePlacementResponse{})
		case "rummikub.v1.ValidationService/ValidateHand":
			replay(s, row, service.ValidateHand, &pb.ValidateHandRequest{}, &pb.ValidateHandResponse{})
		case "rummikub.v1.ValidationService/ValidateDiscardTurn":
			replay(s, row, service.ValidateDiscardTurn, &pb.ValidateDiscardTurnRequest{}, &pb.ValidateDiscardTurnResponse{})
		case "rummikub.v1.ValidationService/ScoreRound":
			replay(s, row, service.ScoreRound, &pb.ScoreRoundRequest{}, &pb.ScoreRoundResponse{})
		default:
			expect(false, "%s: add the RPC %s to this program", row.ID, row.RPC)
		}
	}
}

type turn struct {
	id      string
	request *pb.ValidateTurnRequest
	answer  *pb.ValidateTurnResponse
}

// turns returns the calls of ValidateTurn that are answered.
func (s suite) turns() (turns []turn) {
	for _, row := range s.calls {
		if strings.HasSuffix(row.RPC, "/ValidateTurn") && row.Error == nil {
			t := turn{row.ID, &pb.ValidateTurnRequest{}, &pb.ValidateTurnResponse{}}
			check(protojson.Unmarshal(row.Request, t.request))
			check(protojson.Unmarshal(row.Response, t.answer))
			turns = append(turns, t)
		}
	}
	return turns
}

func (s suite) batch() {
	groups := map[string][]turn{}
	for _, t := range s.turns() {
		key := protojson.Format(t.request.Ruleset)
		groups[key] = append(groups[key], t)
	}
	for _, group := range groups {
		for part := range slices.Chunk(group, 100) {
			batch := &pb.BatchValidateTurnsRequest{Ruleset: part[0].request.Ruleset}
			for _, t := range part {
				t.request.Ruleset = nil
				batch.Turns = append(batch.Turns, t.request)
			}
			answers := must(s.validation.Validation.BatchValidateTurns(s.ctx, batch)).Turns
			expect(len(answers) == len(part), "%d answers to %d turns", len(answers), len(part))
			for i, t := range part {
				expectEqual(t.id, answers[i], t.answer)
			}
		}
	}
}

func (s suite) stream() {
	turns := s.turns()
	stream := must(s.validation.Validation.StreamValidateTurns(s.ctx))
	go func() {
		for _, t := range turns {
			if stream.Send(&pb.StreamValidateTurnsRequest{Turn: t.request, CorrelationId: t.id}) != nil {
				return // Recv returns the cause
			}
		}
		stream.CloseSend()
	}()
	for _, t := range turns {
		response := must(stream.Recv())
		expect(response.CorrelationId == t.id, "the answer to %s has the id %s", t.id, response.CorrelationId)
		expectEqual(t.id, response.Turn, t.answer)
	}
	_, err := stream.Recv()
	expect(err == io.EOF, "the stream ends with %v", err)
}

// join creates a game and seats players; the first is the host. It returns the game and the players' clients.
func (s suite) join(lobby *rummikub.Client, names ...string) (game *pb.Game, seats []*rummikub.Client) {
	created := must(lobby.Games.CreateGame(s.ctx, &pb.CreateGameRequest{}))
	id := &pb.JoinGameRequest_GameId{GameId: created.Game.GameId}
	caller := lobby.Seated(created.HostToken)
	for _, name := range names {
		joined := must(caller.Games.JoinGame(s.ctx, &pb.JoinGameRequest{Game: id, Name: name}))
		game, seats, caller = joined.Game, append(seats, lobby.Seated(joined.SeatToken)), lobby
	}
	return game, seats
}

func (s suite) refusal() {
	game, seats := s.join(s.lobby, "Ann", "Bob")
	id := game.GameId
	started := must(seats[0].Games.StartGame(s.ctx, &pb.StartGameRequest{GameId: id}))
	player := seats[started.Game.Turn.Seat-1]
	game = must(player.Games.GetGame(s.ctx, &pb.GetGameRequest{GameId: id})).Game
	tiles := game.Rack[:2]
	_, err := player.Turns.PlayTurn(s.ctx, rummikub.Play(game, []*pb.Meld{{Tiles: tiles}}))
	short := pb.ErrorReason_MELD_TOO_SHORT
	var refused *rummikub.RefusalError
	expect(errors.As(err, &refused) && refused.Reason == short && refused.Code == codes.FailedPrecondition &&
		len(refused.Violations) > 0 && refused.Metadata["violations"] == strconv.Itoa(len(refused.Violations)),
		"a meld of two tiles: %v", err)
	first := refused.Violations[0]
	expect(first.Reason == short && slices.Equal(first.Tiles, tiles) && first.Subject == "play.table[0]",
		"a meld of two tiles: %v", first)

	hasMelded, low := false, must(rummikub.ParseMelds("[R1 R2 R3]"))
	judged := must(s.validation.Validation.ValidateTurn(s.ctx,
		&pb.ValidateTurnRequest{TableAfter: &pb.Table{Melds: low}, Rack: low[0].Tiles, HasMelded: &hasMelded}))
	below := pb.ErrorReason_INITIAL_MELD_BELOW_THRESHOLD
	expect(len(judged.Violations) == 1 && judged.Violations[0].Reason == below &&
		judged.Violations[0].Metadata["total"] == 6 && judged.Violations[0].Metadata["threshold"] == 30,
		"an initial meld of 6 points: %v", judged.Violations)

	absent := must(rummikub.Connect("127.0.0.1:1"))
	defer absent.Close()
	for _, failing := range []struct {
		client *rummikub.Client
		id     string
		texts  []string
	}{
		{s.lobby.Seated(strings.Repeat("A", 43)), id, []string{"TOKEN_VOID: ", "use the token that replaced it, or join again"}},
		{s.lobby.Seated("a b"), id, []string{"AUTHORIZATION_MALFORMED: ", "pass Client.Seated the token"}},
		{s.lobby, strings.Repeat("0", 32), []string{"GAME_NOT_FOUND: ", "check the game's id; games expire"}},
		{absent, id, []string{"no service answers at 127.0.0.1:1; start one with `make run`"}},
	} {
		ctx, cancel := context.WithTimeout(s.ctx, time.Second)
		_, err := failing.client.Games.GetGame(ctx, &pb.GetGameRequest{GameId: failing.id})
		cancel()
		for _, text := range failing.texts {
			expect(err != nil && strings.Contains(err.Error(), text), "the error %v does not contain %q", err, text)
		}
	}
}

// link dials connections that it can cut.
type link struct {
	mutex sync.Mutex
	conns []net.Conn
}

func (l *link) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err == nil {
		l.conns = append(l.conns, conn)
	}
	return conn, err
}

func (l *link) cut() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, conn := range l.conns {
		conn.Close()
	}
	l.conns = nil
}

// game plays rounds until one is long enough to be cut twice.
func (s suite) game() {
	for range 3 {
		if s.round() {
			return
		}
	}
	expect(false, "three rounds had fewer than %d changes", cuts[1])
}

// round plays a round, and reports whether its watch was cut twice.
func (s suite) round() bool {
	created := must(s.lobby.Games.CreateGame(s.ctx, &pb.CreateGameRequest{}))
	id := created.Game.GameId
	joined := must(s.lobby.Seated(created.HostToken).Games.JoinGame(s.ctx,
		&pb.JoinGameRequest{Game: &pb.JoinGameRequest_GameId{GameId: id}, Name: "Ann"}))
	ann := s.lobby.Seated(joined.SeatToken)
	for level := pb.BotLevel_BOT_LEVEL_EASY; level <= pb.BotLevel_BOT_LEVEL_HARD; level++ {
		must(ann.Games.AddBot(s.ctx, &pb.AddBotRequest{GameId: id, Level: level}))
	}
	must(ann.Games.StartGame(s.ctx, &pb.StartGameRequest{GameId: id}))

	var link link
	watcher := must(rummikub.Connect(s.target, rummikub.WithDialOptions(grpc.WithContextDialer(link.dial))))
	defer watcher.Close()
	var view *pb.Game
	var revision, played uint32
	changes, reconnected := 0, 0
	watching := &pb.WatchGameRequest{GameId: id, Content: pb.WatchContent_WATCH_CONTENT_BOTH}
	notice := rummikub.OnReconnect(func(error, time.Duration) { reconnected++ })
	for update, err := range watcher.Seated(joined.SeatToken).Watch(s.ctx, watching, notice) {
		check(err)
		switch u := update.Update.(type) {
		case *pb.WatchGameResponse_Snapshot:
			expect(revision == 0, "a resumed watch begins with a snapshot")
			revision = u.Snapshot.Revision
		case *pb.WatchGameResponse_Change:
			expect(u.Change.Revision == revision+1, "the revision %d follows %d", u.Change.Revision, revision)
			revision = u.Change.Revision
			changes++
			if slices.Contains(cuts, changes) {
				link.cut()
			}
		}
		game := update.GetGame()
		if game == nil {
			game = update.GetSnapshot() // the person may have the first turn
		}
		if game == nil {
			continue
		}
		view = game
		if game.Turn != nil && game.Turn.Seat == game.GetSeat() && game.Revision != played {
			played = game.Revision
			s.take(ann, id)
		}
	}
	final := must(ann.Games.GetGame(s.ctx, &pb.GetGameRequest{GameId: id})).Game
	expect(final.State == pb.GameState_GAME_STATE_FINISHED && revision == final.Revision,
		"the watch ends in state %v with revision %d of %d", final.State, revision, final.Revision)
	expectEqual("the last view", still(view), still(final))
	if changes <= cuts[1] {
		return false
	}
	expect(reconnected == len(cuts), "the watch was cut %d times and reconnected %d times", len(cuts), reconnected)
	return true
}

// take takes the suggested turn.
func (s suite) take(player *rummikub.Client, id string) {
	question := &pb.SuggestTurnRequest{Subject: &pb.SuggestTurnRequest_GameId{GameId: id}}
	must(player.Turns.PlayTurn(s.ctx, must(player.Analysis.SuggestTurn(s.ctx, question)).Turn))
}

// suggestedTurns plays the games to their ends with suggested turns, all at the same time.
func (s suite) suggestedTurns() {
	failures := make(chan error, len(s.games))
	for _, game := range s.games {
		go func() { failures <- failure(func() { s.play(game) }) }()
	}
	for range s.games {
		check(<-failures)
	}
}

// play plays a game, given as id:token.
func (s suite) play(game string) {
	id, token, _ := strings.Cut(game, ":")
	player := s.lobby.Seated(token)
	for game, err := range player.WatchGames(s.ctx, id) {
		check(err)
		switch {
		case game.GetTurn().GetSeat() == game.GetSeat():
			s.take(player, id)
		case game.State == pb.GameState_GAME_STATE_ROUND_OVER:
			must(player.Turns.StartNextRound(s.ctx, &pb.StartNextRoundRequest{GameId: id}))
		}
	}
}

// still returns a game without what belongs to the moment: the server's time, and who is connected.
func still(game *pb.Game) *pb.Game {
	game = proto.CloneOf(game)
	game.ServerTime = nil
	for _, player := range game.Players {
		player.IsConnected, player.LastSeenTime = nil, nil
	}
	return game
}

// rules watches a game that two players join, and compares what never changes.
func (s suite) rules() {
	labels := map[string]string{"mode": "conformance"}
	created := must(s.lobby.Games.CreateGame(s.ctx, &pb.CreateGameRequest{Labels: labels})).Game
	id := created.GameId
	names := []string{"Ann", "Bob"}
	for game, err := range s.lobby.WatchGames(s.ctx, id) {
		check(err)
		expectEqual("the ruleset", game.Ruleset, created.Ruleset)
		expectEqual("the settings", game.Settings, created.Settings)
		expect(game.Visibility == created.Visibility && maps.Equal(game.Labels, labels),
			"the game became %v with %v", game.Visibility, game.Labels)
		if len(names) == 0 {
			return
		}
		must(s.lobby.Games.JoinGame(s.ctx,
			&pb.JoinGameRequest{Game: &pb.JoinGameRequest_GameId{GameId: id}, Name: names[0]}))
		names = names[1:]
	}
	expect(false, "the watch ended")
}

func (s suite) names() {
	sent := []string{"Zoe\u0308", "李雷", "שלום", "👨\u200d👩\u200d👧\u200d👦"}
	game, _ := s.join(s.lobby, sent...)
	for i, want := range []string{"Zo\u00eb", sent[1], sent[2], sent[3]} {
		expect(game.Players[i].Name == want, "%q became %q", want, game.Players[i].Name)
	}
}

func (s suite) unknown() {
	game, _ := s.join(s.lobby, "Ann")
	extra := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1)
	state := protowire.AppendVarint(protowire.AppendTag(nil, 4, protowire.VarintType), 9999)
	newer := &pb.Game{}
	check(proto.Unmarshal(slices.Concat(must(proto.Marshal(game)), extra, state), newer))
	expect(newer.State == 9999 && newer.GameId == game.GameId && string(newer.ProtoReflect().GetUnknown()) == string(extra),
		"a newer server's game became {%v}", newer)
	for _, index := range []*uint32{nil, new(uint32)} {
		tiles := &pb.PlayTiles{}
		check(proto.Unmarshal(must(proto.Marshal(&pb.PlayTiles{RiverIndex: index})), tiles))
		expect((tiles.RiverIndex == nil) == (index == nil), "river_index became %v", tiles.RiverIndex)
	}
}

func (s suite) deadline() {
	hasMelded, rack := false, must(rummikub.ParseTiles("R1 R3 R4 B5 B6 B7 K7 K8 K10 O7 O10 O11 O13 J"))
	positions := slices.Repeat([]*pb.Position{{Rack: rack, HasMelded: &hasMelded}}, 100) // a faster call may be answered
	ctx, cancel := context.WithTimeout(s.ctx, time.Millisecond)
	defer cancel()
	_, err := s.lobby.Analysis.BatchSuggestTurns(ctx, &pb.BatchSuggestTurnsRequest{Positions: positions})
	expect(errors.Is(err, context.DeadlineExceeded), "a call of 1 ms ends with %v", err)

	game, _ := s.join(s.lobby, "Ann")
	watching, stop := context.WithCancel(context.Background())
	defer stop()
	stream := must(s.lobby.Games.WatchGame(watching, &pb.WatchGameRequest{GameId: game.GameId}))
	must(stream.Recv())
	deadline, has := stream.Context().Deadline()
	expect(!has, "a watch has the deadline %v", deadline)
}

func (s suite) retry() {
	again := func( // sends each request twice, as a channel does whose first answer was lost
		ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption,
	) error {
		id := request.(interface{ GetRequestId() string }).GetRequestId()
		expect(len(id) >= 22, "the request id is %q", id)
		first := reply.(proto.Message).ProtoReflect().New().Interface()
		if err := invoke(ctx, method, request, first, conn, opts...); err != nil {
			return err
		}
		if err := invoke(ctx, method, request, reply, conn, opts...); err != nil {
			return err
		}
		expectEqual(method, reply.(proto.Message), first)
		return nil
	}
	lobby := must(rummikub.Connect(s.target, rummikub.WithDialOptions(grpc.WithUnaryInterceptor(again))))
	defer lobby.Close()
	game, _ := s.join(lobby, "Ann", "Bob")
	expect(len(game.Players) == 2, "two players joined, and the game has %d", len(game.Players))
}
