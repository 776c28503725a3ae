package rummikub

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "rummikub.example/go/rummikubv1"
)

func joined(*pb.JoinGameRequest) (*pb.JoinGameResponse, error) { return &pb.JoinGameResponse{}, nil }

func TestServiceConfigIsTheSharedOne(t *testing.T) {
	shared, err := os.ReadFile("../../service_config.json")
	if err != nil {
		t.Skip("not in the repository of the service")
	}
	if string(shared) != ServiceConfig {
		t.Error("run clients/go/generate.sh")
	}
}

func TestRetriesHaveOneRequestID(t *testing.T) {
	unavailable := func(*pb.JoinGameRequest) (*pb.JoinGameResponse, error) {
		return nil, status.Error(codes.Unavailable, "the answer is lost")
	}
	fake := &fakeServer{joins: []func(*pb.JoinGameRequest) (*pb.JoinGameResponse, error){unavailable, joined}}
	client := start(t, fake).Seated("secret")
	request := &pb.JoinGameRequest{Name: "Ann"}
	if _, err := client.Games.JoinGame(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if len(fake.joined) != 2 || fake.joined[0].RequestId != fake.joined[1].RequestId {
		t.Errorf("requests %v", fake.joined)
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(fake.joined[0].RequestId) {
		t.Errorf("request id %q", fake.joined[0].RequestId)
	}
	if request.RequestId != "" {
		t.Error("the caller's request has changed")
	}
	if strings.Join(fake.tokens, ",") != "Bearer secret,Bearer secret" {
		t.Errorf("tokens %q", fake.tokens)
	}
	if _, err := client.Games.JoinGame(t.Context(), request); err != nil || fake.joined[2].RequestId == fake.joined[0].RequestId {
		t.Errorf("error %v; a new call has the id of an earlier one", err)
	}
	request.RequestId = NewRequestID()
	if _, err := client.Games.JoinGame(t.Context(), request); err != nil || fake.joined[3].RequestId != request.RequestId {
		t.Errorf("error %v; a call does not have the id that its caller set", err)
	}
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err    error
		reason string
		text   string
	}{
		{refused(codes.Aborted, pb.ErrorReason_STALE_STATE), "STALE_STATE", "read the game again"},
		{refused(codes.Aborted, 9999), "9999", "server is newer than this client, which does not know reason 9999"},
		{status.Error(codes.ResourceExhausted, "too large"), "ERROR_REASON_UNSPECIFIED", "larger than the limit"},
	} {
		refuse := func(*pb.JoinGameRequest) (*pb.JoinGameResponse, error) { return nil, test.err }
		fake := &fakeServer{joins: []func(*pb.JoinGameRequest) (*pb.JoinGameResponse, error){refuse}}
		_, err := start(t, fake).Games.JoinGame(t.Context(), &pb.JoinGameRequest{})
		var refusal *RefusalError
		if !errors.As(err, &refusal) || refusal.Method != "JoinGame" || ReasonName(refusal.Reason) != test.reason {
			t.Errorf("%#v", err)
		} else if !strings.Contains(err.Error(), test.text) || status.Code(err) != status.Code(test.err) {
			t.Error(err)
		} else if refusal.Reason != 0 && refusal.Metadata["revision"] != "7" {
			t.Error(refusal.Metadata)
		}
	}
}

func TestOldServer(t *testing.T) {
	t.Parallel()
	_, err := start(t, &fakeServer{}).Games.ListGames(t.Context(), &pb.ListGamesRequest{})
	if status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "older than this client") {
		t.Error(err)
	}
}

func TestURLIsNoTarget(t *testing.T) {
	if _, err := Connect("http://127.0.0.1:50051"); err == nil || !strings.Contains(err.Error(), "pass host:port") {
		t.Errorf("error %v", err)
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := connect(t, "127.0.0.1:1").Games.ListGames(ctx, &pb.ListGamesRequest{})
	if !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "no service answers at 127.0.0.1:1; start one with `make run`") {
		t.Error(err)
	}
}

func TestStreamsShareConnections(t *testing.T) {
	held := func(_ *pb.WatchGameRequest, stream grpc.ServerStreamingServer[pb.WatchGameResponse]) error {
		<-stream.Context().Done()
		return nil
	}
	client := start(t, &fakeServer{watches: []stepOfWatch{held}})
	for range 3 { // streams that have ended make room for others
		ctx, cancel := context.WithCancel(context.Background())
		for range streamsEach + 1 {
			if _, err := client.Games.WatchGame(ctx, &pb.WatchGameRequest{}); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		for _, conn := range client.conn.all {
			for isBusy := true; isBusy; time.Sleep(time.Millisecond) {
				client.conn.mutex.Lock()
				isBusy = client.conn.streams[conn] > 0
				client.conn.mutex.Unlock()
			}
		}
	}
	if len(client.conn.all) != 2 {
		t.Errorf("%d connections", len(client.conn.all))
	}
}

func TestStreamsThatTheServerEndsMakeRoom(t *testing.T) {
	client := start(t, &fakeServer{watches: []stepOfWatch{sends(nil)}})
	for range 2 * streamsEach {
		if _, err := seen(client, &pb.WatchGameRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(client.conn.all) != 1 {
		t.Errorf("%d connections", len(client.conn.all))
	}
}
