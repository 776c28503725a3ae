// Command conformance checks the Go client against a live server (clients/conformance/README.md).
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"rummikub.example/go/rummikub"
	pb "rummikub.example/go/rummikubv1"
)

// A round is cut after these numbers of changes, about a third and two thirds of it.
var cuts = []int{20, 40}

type call struct {
	ID       string          `json:"id"`
	RPC      string          `json:"rpc"`
	Request  json.RawMessage `json:"request"`
	Response json.RawMessage `json:"response"`
	Error    *struct {
		Code    string          `json:"code"`
		Refusal json.RawMessage `json:"refusal"`
		Fields  []string        `json:"fields"`
	} `json:"error"`
}

type suite struct {
	ctx        context.Context
	target     string
	lobby      *rummikub.Client
	validation *rummikub.Client
	calls      []call
}

func main() {
	target := flag.String("target", "127.0.0.1:50051", "host:port of the service")
	validation := flag.String("validation", "", "host:port of the validation listener (default: the target)")
	wire := flag.String("wire", "tests/conformance/wire.json", "path of wire.json")
	flag.String("proxy", "", "host:port of a web proxy; ignored")
	flag.Parse()
	if *validation == "" {
		*validation = *target
	}
	ok, err := run(*target, *validation, *wire)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(target, validation, wire string) (bool, error) {
	data, err := os.ReadFile(wire)
	if err != nil {
		return false, err
	}
	var file struct{ Calls []call }
	if err := json.Unmarshal(data, &file); err != nil {
		return false, err
	}
	lobby, err := rummikub.Connect(target)
	if err != nil {
		return false, err
	}
	defer lobby.Close()
	validator, err := rummikub.Connect(validation)
	if err != nil {
		return false, err
	}
	defer validator.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	s := suite{ctx, target, lobby, validator, file.Calls}
	ok := true
	for _, check := range []struct {
		name string
		run  func() error
	}{
		{"wire", s.wire}, {"batch", s.batch}, {"stream", s.stream}, {"refusal", s.refusal}, {"game", s.game},
		{"names", s.names}, {"unknown", s.unknown}, {"deadline", s.deadline}, {"retry", s.retry},
	} {
		began := time.Now()
		err := check.run()
		seconds := time.Since(began).Seconds()
		if err != nil {
			ok = false
			fmt.Printf("FAIL %s %.2f %s\n", check.name, seconds, strings.Join(strings.Fields(err.Error()), " "))
		} else {
			fmt.Printf("PASS %s %.2f\n", check.name, seconds)
		}
	}
	return ok, nil
}

// ask makes the call of a row and returns its answer, and the answer that the row expects.
func ask[Q, R any, PQ interface {
	*Q
	proto.Message
}, PR interface {
	*R
	proto.Message
}](s suite, row call, rpc func(context.Context, PQ, ...grpc.CallOption) (PR, error)) (got, want proto.Message, err error) {
	request, expected := PQ(new(Q)), PR(new(R))
	if err := protojson.Unmarshal(row.Request, request); err != nil {
		return nil, nil, err
	}
	if row.Response != nil {
		if err := protojson.Unmarshal(row.Response, expected); err != nil {
			return nil, nil, err
		}
	}
	answer, err := rpc(s.ctx, request)
	return answer, expected, err
}

func (s suite) wire() error {
	for _, row := range s.calls {
		var got, want proto.Message
		var err error
		switch row.RPC {
		case "rummikub.v1.ValidationService/ValidateMelds":
			got, want, err = ask(s, row, s.validation.Validation.ValidateMelds)
		case "rummikub.v1.ValidationService/ValidateTurn":
			got, want, err = ask(s, row, s.validation.Validation.ValidateTurn)
		case "rummikub.v1.ValidationService/ScoreRound":
			got, want, err = ask(s, row, s.validation.Validation.ScoreRound)
		default:
			return fmt.Errorf("%s: add the RPC %s to this program", row.ID, row.RPC)
		}
		if row.Error != nil {
			err = row.differs(err)
		} else if err == nil {
			err = equal(got, want)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", row.ID, err)
		}
	}
	return nil
}

// differs compares a refusal with the expected one.
func (row call) differs(err error) error {
	var refused *rummikub.RefusalError
	if !errors.As(err, &refused) {
		return fmt.Errorf("the error is %v, not a refusal", err)
	}
	want := &pb.Refusal{}
	if err := protojson.Unmarshal(row.Error.Refusal, want); err != nil {
		return err
	}
	got := &pb.Refusal{Reason: refused.Reason, Metadata: refused.Metadata, Violations: refused.Violations}
	var code codes.Code
	if err := code.UnmarshalJSON([]byte(strconv.Quote(row.Error.Code))); err != nil {
		return err
	}
	if refused.Code != code || !slices.Equal(refused.Fields, row.Error.Fields) {
		return fmt.Errorf("refused with %v %v, not %v %v", refused.Code, refused.Fields, code, row.Error.Fields)
	}
	return equal(got, want)
}

func equal(got, want proto.Message) error {
	if !proto.Equal(got, want) {
		return fmt.Errorf("got {%v}, want {%v}", got, want)
	}
	return nil
}

type turn struct {
	id      string
	request *pb.ValidateTurnRequest
	answer  *pb.ValidateTurnResponse
}

// turns returns the legal requests of ValidateTurn.
func (s suite) turns() ([]turn, error) {
	var turns []turn
	for _, row := range s.calls {
		if !strings.HasSuffix(row.RPC, "/ValidateTurn") || row.Error != nil {
			continue
		}
		t := turn{row.ID, &pb.ValidateTurnRequest{}, &pb.ValidateTurnResponse{}}
		if err := errors.Join(protojson.Unmarshal(row.Request, t.request), protojson.Unmarshal(row.Response, t.answer)); err != nil {
			return nil, err
		}
		turns = append(turns, t)
	}
	return turns, nil
}

func (s suite) batch() error {
	turns, err := s.turns()
	if err != nil {
		return err
	}
	groups := map[string][]turn{}
	for _, t := range turns {
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
			response, err := s.validation.Validation.BatchValidateTurns(s.ctx, batch)
			if err != nil {
				return fmt.Errorf("%s and others: %w", part[0].id, err)
			}
			if len(response.Turns) != len(part) {
				return fmt.Errorf("%d answers to %d turns", len(response.Turns), len(part))
			}
			for i, t := range part {
				if err := equal(response.Turns[i], t.answer); err != nil {
					return fmt.Errorf("%s: %w", t.id, err)
				}
			}
		}
	}
	return nil
}

func (s suite) stream() error {
	turns, err := s.turns()
	if err != nil {
		return err
	}
	stream, err := s.validation.Validation.StreamValidateTurns(s.ctx)
	if err != nil {
		return err
	}
	go func() { // an error of Send is that of Recv
		for _, t := range turns {
			if stream.Send(&pb.StreamValidateTurnsRequest{Turn: t.request, CorrelationId: t.id}) != nil {
				return
			}
		}
		stream.CloseSend()
	}()
	for _, t := range turns {
		response, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("%s: %w", t.id, err)
		}
		if response.CorrelationId != t.id {
			return fmt.Errorf("the answer to %s has the id %s", t.id, response.CorrelationId)
		}
		if err := equal(response.Turn, t.answer); err != nil {
			return fmt.Errorf("%s: %w", t.id, err)
		}
	}
	if _, err := stream.Recv(); err != io.EOF {
		return fmt.Errorf("the stream ends with %v", err)
	}
	return nil
}

// join creates a game with players of these names; the first is the host. It returns their clients in order.
func (s suite) join(lobby *rummikub.Client, names ...string) (*pb.Game, []*rummikub.Client, error) {
	created, err := lobby.Games.CreateGame(s.ctx, &pb.CreateGameRequest{})
	if err != nil {
		return nil, nil, err
	}
	var game *pb.Game
	var seats []*rummikub.Client
	caller := lobby.Seated(created.HostToken)
	for _, name := range names {
		joined, err := caller.Games.JoinGame(s.ctx, joining(created.Game.GameId, name))
		if err != nil {
			return nil, nil, fmt.Errorf("%q: %w", name, err)
		}
		game, seats, caller = joined.Game, append(seats, lobby.Seated(joined.SeatToken)), lobby
	}
	return game, seats, nil
}

func joining(gameID, name string) *pb.JoinGameRequest {
	return &pb.JoinGameRequest{Game: &pb.JoinGameRequest_GameId{GameId: gameID}, Name: name}
}

func (s suite) refusal() error {
	game, seats, err := s.join(s.lobby, "Ann", "Bob")
	if err != nil {
		return err
	}
	started, err := seats[0].Games.StartGame(s.ctx, &pb.StartGameRequest{GameId: game.GameId})
	if err != nil {
		return err
	}
	player := seats[started.Game.Turn.Seat-1]
	seen, err := player.Games.GetGame(s.ctx, &pb.GetGameRequest{GameId: game.GameId})
	if err != nil {
		return err
	}
	tiles := seen.Game.Rack[:2]
	_, err = player.Turns.PlayTurn(s.ctx, rummikub.Play(seen.Game, []*pb.Meld{{Tiles: tiles}}))
	var refused *rummikub.RefusalError
	short := pb.ErrorReason_ERROR_REASON_MELD_TOO_SHORT
	if !errors.As(err, &refused) || refused.Reason != short || len(refused.Violations) == 0 {
		return fmt.Errorf("a meld of two tiles: %v", err)
	}
	first := refused.Violations[0]
	if first.Reason != short || !slices.Equal(first.Tiles, tiles) || first.Subject != "play.table[0]" ||
		refused.Code != codes.FailedPrecondition || refused.Metadata["violations"] != strconv.Itoa(len(refused.Violations)) {
		return fmt.Errorf("a meld of two tiles: %v with %v %v", refused.Code, refused.Metadata, refused.Violations)
	}
	low, _ := rummikub.ParseTable("[R1 R2 R3]")
	hasMelded := false
	judged, err := s.validation.Validation.ValidateTurn(s.ctx, &pb.ValidateTurnRequest{
		TableAfter: low, Rack: low[0].Tiles, HasMelded: &hasMelded,
	})
	if err != nil {
		return err
	}
	if v := judged.Violations; len(v) != 1 || v[0].Reason != pb.ErrorReason_ERROR_REASON_INITIAL_MELD_BELOW_THRESHOLD ||
		v[0].Metadata["total"] != 6 || v[0].Metadata["threshold"] != 30 {
		return fmt.Errorf("an initial meld of 6: %v", v)
	}
	absent, err := rummikub.Connect("127.0.0.1:1")
	if err != nil {
		return err
	}
	defer absent.Close()
	for _, failing := range []struct {
		client *rummikub.Client
		gameID string
		text   string
	}{
		{s.lobby.Seated(strings.Repeat("A", 43)), game.GameId, "GAME_NOT_FOUND: | the token is that of another game"},
		{s.lobby.Seated("a b"), game.GameId, "AUTHORIZATION_MALFORMED: | pass Client.Seated the token"},
		{s.lobby, strings.Repeat("0", 32), "GAME_NOT_FOUND: | the game does not exist or has expired"},
		{absent, game.GameId, "no service answers at 127.0.0.1:1; | start one with `make run`"},
	} {
		ctx, cancel := context.WithTimeout(s.ctx, 500*time.Millisecond)
		_, err := failing.client.Games.GetGame(ctx, &pb.GetGameRequest{GameId: failing.gameID})
		cancel()
		for _, text := range strings.Split(failing.text, " | ") {
			if err == nil || !strings.Contains(err.Error(), text) {
				return fmt.Errorf("the error %v has no text %q", err, text)
			}
		}
	}
	return nil
}

// link dials connections that it can cut.
type link struct {
	mutex sync.Mutex
	conns []net.Conn
}

func (l *link) dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err == nil {
		l.mutex.Lock()
		l.conns = append(l.conns, conn)
		l.mutex.Unlock()
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

func (s suite) game() error {
	var link link
	watcher, err := rummikub.Connect(s.target, rummikub.WithDialOptions(grpc.WithContextDialer(link.dial)))
	if err != nil {
		return err
	}
	defer watcher.Close()
	created, err := s.lobby.Games.CreateGame(s.ctx, &pb.CreateGameRequest{})
	if err != nil {
		return err
	}
	gameID := created.Game.GameId
	joined, err := s.lobby.Seated(created.HostToken).Games.JoinGame(s.ctx, joining(gameID, "Ann"))
	if err != nil {
		return err
	}
	ann := s.lobby.Seated(joined.SeatToken)
	for _, level := range []pb.BotLevel{pb.BotLevel_BOT_LEVEL_EASY, pb.BotLevel_BOT_LEVEL_MEDIUM, pb.BotLevel_BOT_LEVEL_HARD} {
		if _, err := ann.Games.AddBot(s.ctx, &pb.AddBotRequest{GameId: gameID, Level: level}); err != nil {
			return err
		}
	}
	if _, err := ann.Games.StartGame(s.ctx, &pb.StartGameRequest{GameId: gameID}); err != nil {
		return err
	}

	var view *pb.Game
	var revision, played uint32
	changes, reconnected := 0, 0
	watching := &pb.WatchGameRequest{GameId: gameID, Content: pb.WatchContent_WATCH_CONTENT_BOTH}
	notice := rummikub.OnReconnect(func(error, time.Duration) { reconnected++ })
	for update, err := range watcher.Seated(joined.SeatToken).Watch(s.ctx, watching, notice) {
		if err != nil {
			return err
		}
		switch u := update.Update.(type) {
		case *pb.WatchGameResponse_Snapshot:
			if revision != 0 {
				return errors.New("a resumed watch begins with a snapshot")
			}
			revision = u.Snapshot.Revision
		case *pb.WatchGameResponse_Change:
			if u.Change.Revision != revision+1 {
				return fmt.Errorf("the revision %d follows %d", u.Change.Revision, revision)
			}
			revision = u.Change.Revision
			changes++
			if slices.Contains(cuts, changes) {
				link.cut()
			}
		}
		game := rummikub.View(update)
		if game == nil {
			continue
		}
		view = game
		if game.Turn != nil && game.Turn.Seat == game.Seat && game.Revision != played {
			played = game.Revision
			found, err := ann.Analysis.SuggestTurn(s.ctx, &pb.SuggestTurnRequest{
				Subject: &pb.SuggestTurnRequest_GameId{GameId: gameID},
			})
			if err != nil {
				return err
			}
			if _, err := ann.Turns.PlayTurn(s.ctx, rummikub.Suggested(game, found.Suggestion)); err != nil {
				return err
			}
		}
	}
	final, err := ann.Games.GetGame(s.ctx, &pb.GetGameRequest{GameId: gameID})
	if err != nil {
		return err
	}
	if final.Game.State != pb.GameState_GAME_STATE_FINISHED || reconnected != len(cuts) || revision != final.Game.Revision {
		return fmt.Errorf("state %v, revision %d of %d, %d changes, reconnected %d times",
			final.Game.State, revision, final.Game.Revision, changes, reconnected)
	}
	return equal(still(view), still(final.Game))
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

func (s suite) names() error {
	sent := []string{"Zoe\u0308", "李雷", "שלום", "👨\u200d👩\u200d👧\u200d👦"}
	want := slices.Concat([]string{"Zo\u00eb"}, sent[1:])
	game, _, err := s.join(s.lobby, sent...)
	if err != nil {
		return err
	}
	for i, player := range game.Players {
		if player.Name != want[i] {
			return fmt.Errorf("%q became %q", want[i], player.Name)
		}
	}
	return nil
}

func (s suite) unknown() error {
	game, _, err := s.join(s.lobby, "Ann")
	if err != nil {
		return err
	}
	data, err := proto.Marshal(game)
	if err != nil {
		return err
	}
	extra := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 1)
	state := protowire.AppendVarint(protowire.AppendTag(nil, 4, protowire.VarintType), 9999)
	newer := &pb.Game{}
	if err := proto.Unmarshal(slices.Concat(data, extra, state), newer); err != nil {
		return err
	}
	if newer.State != 9999 || newer.GameId != game.GameId || string(newer.ProtoReflect().GetUnknown()) != string(extra) {
		return fmt.Errorf("a newer server's game became {%v}", newer)
	}
	for _, index := range []*uint32{nil, new(uint32)} {
		data, err := proto.Marshal(&pb.PlayTiles{RiverIndex: index})
		if err != nil {
			return err
		}
		tiles := &pb.PlayTiles{}
		if err := proto.Unmarshal(data, tiles); err != nil {
			return err
		}
		if (tiles.RiverIndex == nil) != (index == nil) {
			return fmt.Errorf("river_index became %v", tiles.RiverIndex)
		}
	}
	return nil
}

func (s suite) deadline() error {
	ctx, cancel := context.WithTimeout(s.ctx, time.Millisecond)
	defer cancel()
	_, err := s.lobby.Games.ListGames(ctx, &pb.ListGamesRequest{})
	if !errors.Is(err, context.DeadlineExceeded) || status.Code(err) != codes.DeadlineExceeded {
		return fmt.Errorf("a call of 1 ms ends with %v", err)
	}
	game, _, err := s.join(s.lobby, "Ann")
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(context.Background())
	defer stop()
	stream, err := s.lobby.Games.WatchGame(watching, &pb.WatchGameRequest{GameId: game.GameId})
	if err != nil {
		return err
	}
	if _, err := stream.Recv(); err != nil {
		return err
	}
	if deadline, has := stream.Context().Deadline(); has {
		return fmt.Errorf("a watch has a deadline in %v", time.Until(deadline))
	}
	return nil
}

func (s suite) retry() error {
	var differs error
	again := func( // sends each request twice, as a channel does whose first answer was lost
		ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption,
	) error {
		if id := request.(interface{ GetRequestId() string }).GetRequestId(); len(id) < 22 {
			differs = fmt.Errorf("the request id is %q", id)
		}
		if err := invoke(ctx, method, request, reply, conn, opts...); err != nil {
			return err
		}
		second := reply.(proto.Message).ProtoReflect().New().Interface()
		if err := invoke(ctx, method, request, second, conn, opts...); err != nil {
			return err
		}
		differs = errors.Join(differs, equal(second, reply.(proto.Message)))
		return nil
	}
	lobby, err := rummikub.Connect(s.target, rummikub.WithDialOptions(grpc.WithUnaryInterceptor(again)))
	if err != nil {
		return err
	}
	defer lobby.Close()
	game, _, err := s.join(lobby, "Ann", "Bob")
	if err != nil {
		return err
	}
	if len(game.Players) != 2 {
		return fmt.Errorf("two joined, and the game has %d players", len(game.Players))
	}
	return differs
}
