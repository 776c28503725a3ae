package rummikub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	pb "rummikub.example/go/rummikubv1"
)

const (
	firstDelay = 200 * time.Millisecond
	lastDelay  = 5 * time.Second
)

var (
	errSilence = errors.New("the stream is silent")
	errStopped = errors.New("the loop has ended")
)

// WatchOption changes a watch.
type WatchOption func(*watch)

// WithPatience sets how long a watch goes on without any message of the server; the default is 60 s.
func WithPatience(patience time.Duration) WatchOption {
	return func(w *watch) { w.patience = patience }
}

// WithSilence sets after which silence a connection counts as lost; the default is 40 s. The server sends a heartbeat
// every 15 s.
func WithSilence(silence time.Duration) WatchOption {
	return func(w *watch) { w.silence = silence }
}

// OnReconnect sets a function that is called before each reconnection, with the delay before it and its cause: nil if
// the server is stopping.
func OnReconnect(notify func(cause error, delay time.Duration)) WatchOption {
	return func(w *watch) { w.notify = notify }
}

// Watch returns the updates of a game, in order and each once:
//
//	for update, err := range client.Watch(ctx, &rummikubv1.WatchGameRequest{GameId: id}) { ... }
//
// A lost connection, a stopping server and a lost history are handled: the watch reconnects and resumes with the
// etag of the last update, or starts over with a snapshot. Heartbeats, Closing and unknown updates are passed over.
// Every game has its rules, which the service sends once a stream.
// The loop ends with the game (until_rematch: with its rematch), or with one error: that of ctx, a refusal, or the last
// failure when the patience is over. A break in the loop closes the stream. Time spent in the loop's body counts as
// neither silence nor patience.
func (c *Client) Watch(
	ctx context.Context, request *pb.WatchGameRequest, opts ...WatchOption,
) iter.Seq2[*pb.WatchGameResponse, error] {
	return func(yield func(*pb.WatchGameResponse, error) bool) {
		w := &watch{
			games: c.Games, request: proto.CloneOf(request), lasting: &pb.Game{}, yield: yield,
			patience: 60 * time.Second, silence: 40 * time.Second, notify: func(error, time.Duration) {},
		}
		for _, opt := range opts {
			opt(w)
		}
		if err := w.run(ctx); err != nil && err != errStopped {
			yield(nil, err)
		}
	}
}

type watch struct {
	games   pb.GameServiceClient
	request *pb.WatchGameRequest // its etag is the position to resume from
	changed uint32               // the revision of the last change in the loop
	lasting *pb.Game             // what never changes, which only the first game of a stream has
	yield   func(*pb.WatchGameResponse, error) bool
	alive   time.Time // when the server sent something last
	failed  int       // attempts in a row without a message

	patience time.Duration
	silence  time.Duration
	notify   func(error, time.Duration)
}

// run returns nil at the end of the game, errStopped after a break.
func (w *watch) run(ctx context.Context) error {
	w.alive = time.Now()
	for {
		closing, err := w.attempt(ctx)
		var delay time.Duration
		switch {
		case closing != nil:
			delay = max(closing.RetryDelay.AsDuration(), firstDelay)
			err = nil
		case err == nil || err == errStopped:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case isForgotten(err) && w.request.Etag != "":
			w.request.Etag = ""
		case !isLost(err):
			return err
		default:
			delay = w.backoff(err)
			if time.Since(w.alive)+delay > w.patience {
				return fmt.Errorf("rummikub: the watch gives up after %s without an update: %w", w.patience, err)
			}
		}
		w.notify(err, delay)
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// backoff returns the delay before the next attempt: the service's own, or one that doubles, with jitter.
func (w *watch) backoff(err error) time.Duration {
	delay := min(firstDelay<<min(w.failed, 10), lastDelay)
	w.failed++
	delay = delay/2 + rand.N(delay/2)
	var refused *RefusalError
	if errors.As(err, &refused) {
		delay = max(delay, refused.RetryDelay)
	}
	return delay
}

// attempt yields the updates of one stream. It returns the update that announced the stream's end, or else the error
// that ended it: nil at the end of the game.
func (w *watch) attempt(ctx context.Context) (*pb.Closing, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := min(w.silence, max(w.patience-time.Since(w.alive), 0))
	timer := time.AfterFunc(quiet, func() { cancel(errSilence) })
	defer timer.Stop()
	stream, err := w.games.WatchGame(ctx, w.request)
	if err != nil {
		return nil, w.cause(ctx, err)
	}
	for {
		update, err := stream.Recv()
		timer.Stop()
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, w.cause(ctx, err)
		}
		if closing := update.GetClosing(); closing != nil {
			w.heard()
			return closing, nil
		}
		if w.accepts(update) && !w.yield(update, nil) {
			return nil, errStopped
		}
		w.heard()
		timer.Reset(w.silence)
	}
}

func (w *watch) heard() { w.alive, w.failed = time.Now(), 0 }

// cause returns an error that names the silence, if silence ended the stream.
func (w *watch) cause(ctx context.Context, err error) error {
	if context.Cause(ctx) == errSilence {
		return fmt.Errorf("%w: %w", errSilence, err)
	}
	return err
}

// accepts moves the position, and reports whether the loop gets the update. With WATCH_CONTENT_BOTH a watch resumes from
// its last game, because the server does not send the game again after a change that the caller has seen; so changes
// may be repeated, and are dropped here.
func (w *watch) accepts(update *pb.WatchGameResponse) bool {
	switch u := update.Update.(type) {
	case *pb.WatchGameResponse_Snapshot:
		w.acceptGame(u.Snapshot)
		w.changed = u.Snapshot.Revision
	case *pb.WatchGameResponse_Game:
		w.acceptGame(u.Game)
	case *pb.WatchGameResponse_Change:
		if u.Change.Revision <= w.changed {
			return false
		}
		w.changed = u.Change.Revision
		if w.request.Content != pb.WatchContent_WATCH_CONTENT_BOTH {
			w.request.Etag = u.Change.Etag
		}
	case *pb.WatchGameResponse_Heartbeat, nil:
		return false
	}
	return true
}

// acceptGame moves the position to a game, and completes the game.
func (w *watch) acceptGame(game *pb.Game) {
	w.request.Etag = game.Etag
	if game.Ruleset != nil {
		w.lasting = &pb.Game{Ruleset: game.Ruleset, Settings: game.Settings, Visibility: game.Visibility, Labels: game.Labels}
	} else {
		proto.Merge(game, w.lasting)
	}
}

// isForgotten reports whether the server does not have the position to resume from.
func isForgotten(err error) bool {
	return ReasonOf(err) == pb.ErrorReason_HISTORY_UNAVAILABLE
}

// isLost reports whether an error is that of a connection or a server which may be back soon.
func isLost(err error) bool {
	if errors.Is(err, errSilence) {
		return true
	}
	var refused *RefusalError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Reason {
	case pb.ErrorReason_OVERLOADED, pb.ErrorReason_REQUEST_TIMED_OUT:
		return true
	case pb.ErrorReason_ERROR_REASON_UNSPECIFIED:
		switch refused.Code {
		case codes.Canceled, codes.Internal, codes.Unknown: // a broken transport
			return true
		}
	}
	return refused.Code == codes.Unavailable
}

// WatchGames returns a game as it is now and after every change; for the rest, it is Watch.
func (c *Client) WatchGames(ctx context.Context, gameID string, opts ...WatchOption) iter.Seq2[*pb.Game, error] {
	request := &pb.WatchGameRequest{GameId: gameID, Content: pb.WatchContent_WATCH_CONTENT_GAMES}
	return func(yield func(*pb.Game, error) bool) {
		for update, err := range c.Watch(ctx, request, opts...) {
			game := update.GetGame()
			if game == nil {
				game = update.GetSnapshot()
			}
			if (game != nil || err != nil) && !yield(game, err) {
				return
			}
		}
	}
}
