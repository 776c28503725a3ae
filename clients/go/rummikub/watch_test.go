package rummikub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "rummikub.example/go/rummikubv1"
)

// seen returns the updates of a watch as texts, and its error.
func seen(client *Client, request *pb.WatchGameRequest, opts ...WatchOption) ([]string, error) {
	var texts []string
	for update, err := range client.Watch(context.Background(), request, opts...) {
		if err != nil {
			return texts, err
		}
		switch u := update.Update.(type) {
		case *pb.WatchGameResponse_Snapshot:
			texts = append(texts, fmt.Sprint("snapshot ", u.Snapshot.Revision))
		case *pb.WatchGameResponse_Change:
			texts = append(texts, fmt.Sprint("change ", u.Change.Revision))
		case *pb.WatchGameResponse_Game:
			texts = append(texts, fmt.Sprint("game ", u.Game.Revision))
		default:
			texts = append(texts, fmt.Sprintf("%T", u))
		}
	}
	return texts, nil
}

func TestWatchResumes(t *testing.T) {
	lost := status.Error(codes.Unavailable, "connection reset")
	stop := refused(codes.Unavailable, pb.ErrorReason_SHUTTING_DOWN)
	unstored := refused(codes.OutOfRange, pb.ErrorReason_HISTORY_UNAVAILABLE)
	for _, test := range []struct {
		name     string
		request  *pb.WatchGameRequest
		steps    []stepOfWatch
		updates  string
		resumed  []uint32 // the revision of the etag of each call; 0: none
		notified int
	}{
		{
			"an end without closing is the end", &pb.WatchGameRequest{},
			[]stepOfWatch{sends(nil, snapshot(1), change(2))},
			"snapshot 1, change 2", []uint32{0}, 0,
		},
		{
			"a cut resumes after the last change", &pb.WatchGameRequest{},
			[]stepOfWatch{sends(lost, snapshot(1), change(2)), sends(stop, change(3)), sends(nil, change(4))},
			"snapshot 1, change 2, change 3, change 4", []uint32{0, 2, 3}, 2,
		},
		{
			"a broken transport resumes", &pb.WatchGameRequest{},
			[]stepOfWatch{
				sends(status.Error(codes.Canceled, "RST_STREAM"), snapshot(1)),
				sends(status.Error(codes.Internal, "RST_STREAM"), change(2)),
				sends(status.Error(codes.Unknown, "broken"), change(3)), sends(nil, change(4)),
			},
			"snapshot 1, change 2, change 3, change 4", []uint32{0, 1, 2, 3}, 3,
		},
		{
			"closing resumes", &pb.WatchGameRequest{},
			[]stepOfWatch{sends(nil, snapshot(1), closing()), sends(nil, change(2))},
			"snapshot 1, change 2", []uint32{0, 1}, 1,
		},
		{
			"a forgotten history starts over", &pb.WatchGameRequest{Etag: etag(7)},
			[]stepOfWatch{sends(unstored), sends(nil, snapshot(9))},
			"snapshot 9", []uint32{7, 0}, 1,
		},
		{
			"a lost history starts over with lower revisions", &pb.WatchGameRequest{},
			[]stepOfWatch{sends(lost, snapshot(7), change(8)), sends(unstored), sends(nil, snapshot(4), change(5))},
			"snapshot 7, change 8, snapshot 4, change 5", []uint32{0, 8, 0}, 2,
		},
		{
			"changes and games resume after the last game", &pb.WatchGameRequest{Content: pb.WatchContent_WATCH_CONTENT_BOTH},
			[]stepOfWatch{
				sends(lost, snapshot(1), change(2), game(2), change(3)),
				sends(nil, change(3), change(4), game(4)),
			},
			"snapshot 1, change 2, game 2, change 3, change 4, game 4", []uint32{0, 2}, 1,
		},
		{
			"games resume after the last game", &pb.WatchGameRequest{Content: pb.WatchContent_WATCH_CONTENT_GAMES},
			[]stepOfWatch{sends(lost, snapshot(1), game(2)), sends(nil, game(3))},
			"snapshot 1, game 2, game 3", []uint32{0, 2}, 1,
		},
		{
			"silence is a lost connection", &pb.WatchGameRequest{},
			[]stepOfWatch{hangs(snapshot(1)), sends(nil, change(2))},
			"snapshot 1, change 2", []uint32{0, 1}, 1,
		},
		{
			"heartbeats and unknown updates are passed over", &pb.WatchGameRequest{},
			[]stepOfWatch{sends(nil, heartbeat(), unknown(), snapshot(1), heartbeat())},
			"snapshot 1", []uint32{0}, 0,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake := &fakeServer{watches: test.steps}
			notified := 0
			notify := OnReconnect(func(error, time.Duration) { notified++ })
			updates, err := seen(start(t, fake), test.request, WithSilence(500*time.Millisecond), notify)
			if err != nil || strings.Join(updates, ", ") != test.updates {
				t.Errorf("updates %q, error %v; want %q", updates, err, test.updates)
			}
			isResumed := func(request *pb.WatchGameRequest, revision uint32) bool {
				return request.Etag == map[bool]string{true: etag(revision)}[revision != 0]
			}
			if !slices.EqualFunc(fake.watched, test.resumed, isResumed) || notified != test.notified {
				t.Errorf("resumed by %v with %d notices; want %v, %d", fake.watched, notified, test.resumed, test.notified)
			}
		})
	}
}

func TestEveryGameHasWhatOnlyTheFirstOneOfAStreamHas(t *testing.T) {
	whole := &pb.Game{
		Revision: 3, Etag: etag(3), Visibility: pb.Visibility_VISIBILITY_PUBLIC,
		Ruleset: &pb.Ruleset{Game: &pb.Ruleset_Melding{Melding: &pb.MeldingRuleset{Preset: pb.Preset_PRESET_GUIDE_A}}}, Labels: map[string]string{"region": "eu"},
	}
	for _, first := range []*pb.WatchGameResponse{
		{Update: &pb.WatchGameResponse_Snapshot{Snapshot: whole}}, {Update: &pb.WatchGameResponse_Game{Game: whole}},
	} {
		client := start(t, &fakeServer{watches: []stepOfWatch{sends(nil, first, game(4), game(5))}})
		games := 0
		for game, err := range client.WatchGames(context.Background(), "g") {
			if err != nil {
				t.Fatal(err)
			}
			games++
			if !proto.Equal(game.Ruleset, whole.Ruleset) || game.Visibility != whole.Visibility || game.Labels["region"] != "eu" {
				t.Errorf("game %d is %v", game.Revision, game)
			}
		}
		if games != 3 {
			t.Errorf("%d games", games)
		}
	}
}

func TestWatchReturnsRefusal(t *testing.T) {
	t.Parallel()
	for reason, code := range map[pb.ErrorReason]codes.Code{
		pb.ErrorReason_SPECTATORS_NOT_ALLOWED: codes.PermissionDenied,
		pb.ErrorReason_INTERNAL_ERROR:         codes.Internal,
	} {
		fake := &fakeServer{watches: []stepOfWatch{sends(refused(code, reason), snapshot(1))}}
		updates, err := seen(start(t, fake), &pb.WatchGameRequest{})
		if len(updates) != 1 || ReasonOf(err) != reason || len(fake.watched) != 1 {
			t.Errorf("%d updates, error %v, %d calls", len(updates), err, len(fake.watched))
		}
	}
}

func TestWatchStartsOverOnce(t *testing.T) {
	t.Parallel()
	unstored := pb.ErrorReason_HISTORY_UNAVAILABLE
	fake := &fakeServer{watches: []stepOfWatch{sends(refused(codes.OutOfRange, unstored))}}
	_, err := seen(start(t, fake), &pb.WatchGameRequest{Etag: etag(3)})
	if ReasonOf(err) != unstored || len(fake.watched) != 2 {
		t.Errorf("error %v, %d calls", err, len(fake.watched))
	}
}

func TestWatchGivesUp(t *testing.T) {
	t.Parallel()
	reason := pb.ErrorReason_OVERLOADED
	overloaded := refused(codes.ResourceExhausted, reason)
	fake := &fakeServer{watches: []stepOfWatch{sends(overloaded)}}
	began := time.Now()
	_, err := seen(start(t, fake), &pb.WatchGameRequest{}, WithPatience(time.Second))
	if ReasonOf(err) != reason || len(fake.watched) < 2 || time.Since(began) > 5*time.Second {
		t.Errorf("error %v, %d calls, %v", err, len(fake.watched), time.Since(began))
	}
}

func TestWatchDoesNotRetryBeforeTheServersDelay(t *testing.T) {
	t.Parallel()
	overloaded := refused(codes.ResourceExhausted, pb.ErrorReason_OVERLOADED,
		&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Minute)})
	fake := &fakeServer{watches: []stepOfWatch{sends(overloaded)}}
	_, err := seen(start(t, fake), &pb.WatchGameRequest{}, WithPatience(time.Second))
	if err == nil || len(fake.watched) != 1 {
		t.Errorf("error %v, %d calls", err, len(fake.watched))
	}
}

func TestPatienceBeginsWithEachUpdate(t *testing.T) {
	t.Parallel()
	lost := status.Error(codes.Unavailable, "connection reset")
	steps := []stepOfWatch{sends(lost, snapshot(1))}
	for revision := range uint32(4) {
		steps = append(steps, slowly(300*time.Millisecond, sends(lost, change(revision+2))))
	}
	fake := &fakeServer{watches: append(steps, sends(nil, change(6)))}
	updates, err := seen(start(t, fake), &pb.WatchGameRequest{}, WithPatience(800*time.Millisecond))
	if err != nil || len(updates) != 6 {
		t.Errorf("updates %q, error %v", updates, err)
	}
}

func TestWatchGivesUpWithoutServer(t *testing.T) {
	t.Parallel()
	_, err := seen(connect(t, "127.0.0.1:1"), &pb.WatchGameRequest{}, WithPatience(500*time.Millisecond))
	if err == nil || !strings.Contains(err.Error(), "no service answers at 127.0.0.1:1") {
		t.Error(err)
	}
}

func TestWatchCountsNoTimeOfTheLoop(t *testing.T) {
	t.Parallel()
	short := 200 * time.Millisecond
	then := slowly(3*short/2, sends(nil, change(2)))
	fake := &fakeServer{watches: []stepOfWatch{both(sends(nil, snapshot(1)), then)}}
	updates := 0
	for _, err := range start(t, fake).Watch(t.Context(), &pb.WatchGameRequest{}, WithSilence(short), WithPatience(short)) {
		if err != nil {
			t.Fatal(err)
		}
		updates++
		time.Sleep(2 * short)
	}
	if updates != 2 || len(fake.watched) != 1 {
		t.Errorf("%d updates of %d calls", updates, len(fake.watched))
	}
}

func TestWatchEndsWithContext(t *testing.T) {
	t.Parallel()
	client := start(t, &fakeServer{watches: []stepOfWatch{hangs(snapshot(1))}})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var last error
	for _, err := range client.Watch(ctx, &pb.WatchGameRequest{}) {
		last = err
		cancel()
	}
	if !errors.Is(last, context.Canceled) {
		t.Error(last)
	}
}

func TestWatchEndsWithBreak(t *testing.T) {
	t.Parallel()
	fake := &fakeServer{watches: []stepOfWatch{hangs(snapshot(1), change(2))}}
	request := &pb.WatchGameRequest{}
	for range start(t, fake).Watch(t.Context(), request) {
		break
	}
	if len(fake.watched) != 1 || request.Etag != "" {
		t.Errorf("%d calls; the caller's request has the etag %q", len(fake.watched), request.Etag)
	}
}
