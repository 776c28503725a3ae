package rummikub

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "rummikub.example/go/rummikubv1"
)

const (
	ticketsTried   = 10 // how many tickets a bot tries to join with: those that it has used are refused
	streamSilence  = 40 * time.Second
	gamesMax       = 10
	refusalsOfTurn = 3 // after so many refusals a turn is left to its time
)

// gone has the refusals of a seat that will not be back.
var gone = []pb.ErrorReason{pb.ErrorReason_GAME_NOT_FOUND, pb.ErrorReason_TOKEN_VOID}

// Bot is a program that plays all its games on one stream. After a lost connection it connects again, and continues with
// what the server has. It joins the games in which a seat is reserved for it.
type Bot struct {
	// Client is a connection without a token.
	Client *Client
	// Ticket returns a join ticket that is not used yet, whenever one is needed. If it is nil, the bot has the games of Tokens
	// and TokensFile, and Run returns after them.
	Ticket func() string
	// Tokens has tokens of seats by game, in addition to those of TokensFile.
	Tokens map[string]string
	// Name is the player's name, if the tickets have none.
	Name string
	// TokensFile keeps the tokens of seats, so that the program may be started again in the middle of a game; "" for none.
	TokensFile string
	// Choose returns the next turn, or the next step of one, in a game in which the bot has the turn. If it returns an error,
	// or its turn is refused, the bot takes Legal.Fallback.
	Choose func(ctx context.Context, view *pb.Game, legal Legal) (*pb.PlayTurnRequest, error)
	// GamesMax is the most games at once, those in the lobby included; 0 means 10. With so many, the bot declines challenges,
	// without a call of Answer.
	GamesMax int
	// Answer returns whether the bot accepts a challenge, and why it declines; nil accepts all.
	Answer func(challenge *pb.Challenge) (bool, pb.DeclineReason)
	// Over is called after each game, if it is not nil.
	Over func(id string, game *pb.GameSummary, won bool)
	// Log gets what the bot survives, if it is not nil.
	Log func(error)

	mu        sync.Mutex
	tokens    map[string]string
	latest    map[string]*pb.OwnGame
	busy      map[string]bool
	open      map[string]bool // games that are not over
	answering map[string]bool // challenges that are being answered, unless the bot has no place for their games
	present   map[string]bool // games in which no other program stands in for the bot, since it connected
}

// Legal has what a bot may do in its turn, as requests for PlayTurn.
type Legal struct {
	seat *Client
	view *pb.Game
}

// Draw returns the turn that draws, or passes if the pool is empty.
func (l Legal) Draw() *pb.PlayTurnRequest {
	if l.view.PoolCount == 0 {
		return Pass(l.view)
	}
	return Draw(l.view)
}

// Fallback returns the next action of a turn that plays no tile, in any game. It draws or passes. In a game of discards
// it takes a tile of the pool, then discards the highest one.
func (l Legal) Fallback() *pb.PlayTurnRequest {
	view, board, step := l.view, l.view.DiscardBoard, l.view.Turn.GetStep()
	switch {
	case board != nil && step == pb.TurnStep_TURN_STEP_DISCARDING && board.OwedTile != pb.Tile_TILE_UNSPECIFIED:
		return ReturnDiscard(view)
	case board != nil && step == pb.TurnStep_TURN_STEP_DISCARDING:
		return Discard(view, highest(view.Rack, board.Okey))
	case board != nil && view.PoolCount == 0:
		return PassEmptyPool(view)
	case board != nil:
		return TakeFromPool(view)
	case step == pb.TurnStep_TURN_STEP_CHOOSING:
		request := turn(view)
		tile := highest(view.Turn.TilesDrawn, pb.Tile_TILE_UNSPECIFIED)
		request.Action = &pb.PlayTurnRequest_LayOnRiver{LayOnRiver: &pb.LayOnRiver{Tile: tile}}
		return request
	case step == pb.TurnStep_TURN_STEP_DRAWN:
		return Pass(view)
	}
	return l.Draw()
}

// highest returns the tile with the highest number; wild and other special tiles are worth keeping.
func highest(tiles []pb.Tile, wild pb.Tile) pb.Tile {
	value := func(tile pb.Tile) int {
		if tile == wild || tile > pb.Tile_TILE_ORANGE_13 {
			return 0
		}
		return (int(tile)-1)%13 + 1
	}
	if len(tiles) == 0 {
		return pb.Tile_TILE_UNSPECIFIED
	}
	return slices.MaxFunc(tiles, func(a, b pb.Tile) int { return value(a) - value(b) })
}

// Suggest returns the best turn that the service finds, and Fallback if none plays a tile. Where the game gives no hints,
// the service gets the position, which has only what the seat sees. A key may forbid that. It takes no positions of games
// of discards: there it is Fallback.
func (l Legal) Suggest(ctx context.Context) (*pb.PlayTurnRequest, error) {
	ofGame := &pb.SuggestTurnRequest{Subject: &pb.SuggestTurnRequest_GameId{GameId: l.view.GameId}}
	answer, err := l.seat.Analysis.SuggestTurn(ctx, ofGame)
	if err == nil {
		return answer.Turn, nil
	}
	if reasonOf(err) != pb.ErrorReason_HINT_NOT_ALLOWED {
		return nil, err
	}
	if l.view.Ruleset.GetMelding() == nil {
		return l.Fallback(), nil
	}
	position := &pb.Position{Ruleset: l.view.Ruleset.GetMelding(), Table: l.view.Table, Rack: l.view.Rack, River: l.view.River}
	for _, player := range l.view.Players {
		if player.Seat == l.view.GetSeat() {
			position.HasMelded = proto.Bool(player.HasMelded)
		}
	}
	answer, err = l.seat.Analysis.SuggestTurn(ctx, &pb.SuggestTurnRequest{
		Subject: &pb.SuggestTurnRequest_Position{Position: position},
	})
	if err != nil {
		return nil, err
	}
	found := answer.Suggestion
	switch {
	case len(found.TilesPlayed) == 0:
		return l.Fallback(), nil
	case len(found.Table.Placements) > 0:
		return Place(l.view, found.Table.Placements), nil
	}
	turn := Play(l.view, MeldsOf(found.Table.Melds))
	turn.GetPlay().RiverIndex = found.RiverIndex
	return turn, nil
}

// Run plays until the context ends, or an error that no new attempt can mend; without tickets, until all games are over.
func (b *Bot) Run(ctx context.Context) error {
	b.tokens, b.latest = map[string]string{}, map[string]*pb.OwnGame{}
	b.busy, b.answering = map[string]bool{}, map[string]bool{}
	if b.TokensFile != "" {
		text, err := os.ReadFile(b.TokensFile)
		if err == nil {
			err = json.Unmarshal(text, &b.tokens)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	maps.Copy(b.tokens, b.Tokens)
	for delay := firstDelay; b.isNeeded(); delay = min(2*delay, lastDelay) {
		pause, heard, err := b.follow(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !isPassing(err) && !isOfTicket(err) && !isLost(err) {
			return err
		}
		b.log(err)
		if heard {
			delay = firstDelay
		}
		if !sleep(ctx, max(pause, delay/2+rand.N(delay/2))) {
			return ctx.Err()
		}
	}
	return nil
}

// isNeeded returns whether the bot has a game, or may get one.
func (b *Bot) isNeeded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Ticket != nil || len(b.tokens) > 0
}

// whose returns a request for the games of the bot.
func (b *Bot) whose() *pb.WatchOwnGamesRequest {
	if b.Ticket != nil {
		return &pb.WatchOwnGamesRequest{JoinTicket: b.Ticket()}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	request := &pb.WatchOwnGamesRequest{}
	for id, token := range b.tokens {
		request.Seats = append(request.Seats, &pb.OwnSeat{GameId: id, SeatToken: token})
	}
	return request
}

// follow follows one stream to its end. It returns the pause before the next one, and whether it had an update.
func (b *Bot) follow(ctx context.Context) (pause time.Duration, heard bool, err error) {
	streaming, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(streamSilence, func() { cancel(errSilence) })
	defer timer.Stop()
	stream, err := b.Client.Games.WatchOwnGames(streaming, b.whose())
	if err != nil {
		return 0, false, err
	}
	b.mu.Lock()
	b.present, b.open = map[string]bool{}, map[string]bool{}
	b.mu.Unlock()
	for b.isNeeded() {
		update, err := stream.Recv()
		if err == io.EOF || errors.Is(context.Cause(streaming), errSilence) {
			return pause, heard, nil
		}
		if err != nil {
			return pause, heard, err
		}
		heard = true
		timer.Reset(streamSilence)
		pause = update.GetClosing().GetRetryDelay().AsDuration()
		if game := update.GetGame(); game != nil {
			b.wake(ctx, game)
		}
		if c := update.GetChallenge(); c.GetIsIncoming() && c.GetState() == pb.ChallengeState_CHALLENGE_STATE_OPEN {
			go b.answer(ctx, c)
		}
	}
	return pause, heard, nil
}

// wake handles the latest state of a game, after what is under way in it.
func (b *Bot) wake(ctx context.Context, game *pb.OwnGame) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.latest[game.GameId] = game
	if isOpen(game) {
		b.open[game.GameId] = true
	} else {
		delete(b.open, game.GameId)
	}
	if !b.busy[game.GameId] {
		b.busy[game.GameId] = true
		go b.handle(ctx, game.GameId)
	}
}

func isOpen(game *pb.OwnGame) bool {
	switch game.GetGame().GetState() {
	case pb.GameState_GAME_STATE_LOBBY, pb.GameState_GAME_STATE_PLAYING, pb.GameState_GAME_STATE_ROUND_OVER:
		return true
	}
	return false
}

func (b *Bot) handle(ctx context.Context, id string) {
	for {
		b.mu.Lock()
		game := b.latest[id]
		delete(b.latest, id)
		if game == nil {
			delete(b.busy, id)
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		err := b.act(ctx, game)
		b.log(err)
		if err != nil && isPassing(err) && sleep(ctx, time.Second) {
			b.mu.Lock()
			if b.latest[id] == nil {
				b.latest[id] = game
			}
			b.mu.Unlock()
		}
	}
}

func (b *Bot) act(ctx context.Context, entry *pb.OwnGame) error {
	id, game, token := entry.GameId, entry.GetGame(), b.token(entry.GameId)
	switch state := game.GetState(); {
	case slices.Contains(gone, entry.GetRefusal()):
		return b.keep(id, "")
	case entry.GetRefusal() != pb.ErrorReason_ERROR_REASON_UNSPECIFIED:
		return nil
	case token == "" && b.Ticket != nil && state == pb.GameState_GAME_STATE_LOBBY && entry.Seat == nil:
		return b.join(ctx, id)
	case token == "" || state == pb.GameState_GAME_STATE_LOBBY:
		return nil
	case state == pb.GameState_GAME_STATE_PLAYING:
		b.returnTo(ctx, token, id)
		if game.GetTurnSeat() != entry.GetSeat() {
			return nil
		}
		played, err := b.takeTurn(ctx, b.Client.Seated(token), id)
		if !played {
			b.mu.Lock()
			delete(b.present, id)
			b.mu.Unlock()
		}
		return err
	case state == pb.GameState_GAME_STATE_ROUND_OVER:
		b.returnTo(ctx, token, id)
		_, err := b.Client.Seated(token).Turns.StartNextRound(ctx, &pb.StartNextRoundRequest{GameId: id})
		return err
	}
	if b.Over != nil {
		won := false
		for _, seat := range entry.WinnerSeats {
			won = won || seat == entry.GetSeat()
		}
		b.Over(id, game, won)
	}
	return b.keep(id, "") // after Over: without tickets, Run returns after the last game
}

// join takes the seat that is reserved for the bot, with a ticket that is not used.
func (b *Bot) join(ctx context.Context, id string) (err error) {
	for range ticketsTried {
		request := &pb.JoinGameRequest{
			Game: &pb.JoinGameRequest_GameId{GameId: id}, Name: b.Name, IsProgram: true, JoinTicket: b.Ticket(),
			RequestId: NewRequestID(),
		}
		var joined *pb.JoinGameResponse
		err = dependably(ctx, func() (err error) {
			joined, err = b.Client.Games.JoinGame(ctx, request)
			return err
		})
		if err == nil {
			return b.keep(id, joined.SeatToken)
		}
		if !isOfTicket(err) {
			return err
		}
	}
	return err
}

// returnTo ends the absence of the seat once after connecting, and after each turn that ended without the bot.
func (b *Bot) returnTo(ctx context.Context, token, id string) {
	b.mu.Lock()
	present := b.present[id]
	b.present[id] = true
	b.mu.Unlock()
	if present {
		return
	}
	request := &pb.ReturnToSeatRequest{GameId: id, RequestId: NewRequestID()}
	err := dependably(ctx, func() error {
		_, err := b.Client.Seated(token).Turns.ReturnToSeat(ctx, request)
		return err
	})
	if reasonOf(err) != pb.ErrorReason_PLAYER_NOT_ABSENT {
		b.log(err)
	}
}

// takeTurn plays until the turn has ended, and returns whether the bot has ended it. After an error of Choose or a refused
// turn it falls back, then passes.
func (b *Bot) takeTurn(ctx context.Context, seat *Client, id string) (played bool, err error) {
	for refused := 0; refused < refusalsOfTurn; {
		var view *pb.Game
		err := dependably(ctx, func() error {
			got, err := seat.Games.GetGame(ctx, &pb.GetGameRequest{GameId: id})
			view = got.GetGame()
			return err
		})
		if err != nil || view.State != pb.GameState_GAME_STATE_PLAYING || view.Turn.GetSeat() != view.GetSeat() {
			return played, err
		}
		played = false
		legal, turn := Legal{seat, view}, Pass(view)
		switch refused {
		case 0:
			turn, err = b.Choose(ctx, view, legal)
			if err == nil && turn == nil {
				err = errors.New("rummikub: Choose returned no turn")
			}
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			if err != nil { // the turn must not be lost with it
				b.log(err)
				refused++
				continue
			}
		case 1:
			turn = legal.Fallback()
		}
		turn = proto.CloneOf(turn)
		turn.RequestId = NewRequestID()
		err = dependably(ctx, func() error {
			_, err := seat.Turns.PlayTurn(ctx, turn)
			return err
		})
		switch {
		case err == nil:
			refused, played = 0, true
		case reasonOf(err) != pb.ErrorReason_STALE_STATE:
			b.log(err)
			refused++
		}
	}
	return false, nil
}

func (b *Bot) answer(ctx context.Context, challenge *pb.Challenge) {
	id, ticket := challenge.ChallengeId, b.Ticket()
	accepts, reason := b.takePlace(id), pb.DeclineReason_DECLINE_REASON_LATER
	if !accepts {
		b.log(b.recount(ctx, ticket))
		accepts = b.takePlace(id)
	}
	if accepts && b.Answer != nil {
		accepts, reason = b.Answer(challenge)
	}
	b.log(dependably(ctx, func() error {
		if !accepts {
			request := &pb.DeclineChallengeRequest{ChallengeId: id, JoinTicket: ticket, Reason: reason}
			_, err := b.Client.Challenges.DeclineChallenge(ctx, request)
			return err
		}
		request := &pb.AcceptChallengeRequest{ChallengeId: id, JoinTicket: ticket, Name: b.Name}
		accepted, err := b.Client.Challenges.AcceptChallenge(ctx, request)
		if err == nil {
			b.mu.Lock()
			b.open[accepted.Challenge.GetGameId()] = true
			b.mu.Unlock()
		}
		return err
	}))
	b.mu.Lock()
	delete(b.answering, id)
	b.mu.Unlock()
}

// takePlace returns whether the bot may have one more game; the challenge with this id counts as one from now on.
func (b *Bot) takePlace(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.open)+len(b.answering) >= cmp.Or(b.GamesMax, gamesMax) {
		return false
	}
	b.answering[id] = true
	return true
}

// recount drops games that are no longer open: the stream has no update of a game that is gone, or has lost the seat.
func (b *Bot) recount(ctx context.Context, ticket string) error {
	b.mu.Lock()
	ended := maps.Clone(b.open)
	b.mu.Unlock()
	var own *pb.ListOwnGamesResponse
	err := dependably(ctx, func() (err error) {
		own, err = b.Client.Games.ListOwnGames(ctx, &pb.ListOwnGamesRequest{JoinTicket: ticket})
		return err
	})
	if err != nil {
		return err
	}
	for _, game := range own.Games {
		if isOpen(game) {
			delete(ended, game.GameId)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.open, func(id string, _ bool) bool { return ended[id] })
	return nil
}

func (b *Bot) token(id string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tokens[id]
}

// keep keeps the token of a seat, or forgets a game whose token is empty.
func (b *Bot) keep(id, token string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if token == "" {
		delete(b.tokens, id)
	} else {
		b.tokens[id] = token
	}
	if b.TokensFile == "" {
		return nil
	}
	text, err := json.Marshal(b.tokens)
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.TokensFile+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(b.TokensFile+".new", b.TokensFile) // in one step, so that the file is always whole
}

func (b *Bot) log(err error) {
	if err != nil && b.Log != nil {
		b.Log(err)
	}
}

// TicketsOf returns what returns the tickets of a file in turn, one a line; after the last one it begins again.
func TicketsOf(path string) (func() string, error) {
	text, err := os.ReadFile(path)
	lines, place, mu := strings.Fields(string(bytes.TrimSpace(text))), -1, sync.Mutex{}
	if err == nil && len(lines) == 0 {
		err = errors.New("rummikub: the file has no ticket")
	}
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		place = (place + 1) % len(lines)
		return lines[place]
	}, err
}

// dependably repeats a request with an id until the server answers.
func dependably(ctx context.Context, call func() error) error {
	for delay := firstDelay; ; delay = min(2*delay, lastDelay) {
		if err := call(); err == nil || !isPassing(err) || !sleep(ctx, delay) {
			return err
		}
	}
}

// sleep returns whether the context has not ended meanwhile.
func sleep(ctx context.Context, delay time.Duration) bool {
	select {
	case <-time.After(delay):
		return true
	case <-ctx.Done():
		return false
	}
}

// isPassing reports whether the same request may succeed later.
func isPassing(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded || code == codes.ResourceExhausted
}

func isOfTicket(err error) bool {
	reason := reasonOf(err)
	return reason == pb.ErrorReason_TICKET_USED || reason == pb.ErrorReason_TICKET_EXPIRED
}

func reasonOf(err error) pb.ErrorReason {
	var refused *RefusalError
	if errors.As(err, &refused) {
		return refused.Reason
	}
	return pb.ErrorReason_ERROR_REASON_UNSPECIFIED
}
