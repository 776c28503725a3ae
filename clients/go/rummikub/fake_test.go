package rummikub

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	pb "rummikub.example/go/rummikubv1"
)

type stepOfWatch func(*pb.WatchGameRequest, grpc.ServerStreamingServer[pb.WatchGameResponse]) error

// fakeServer answers the n-th WatchGame and JoinGame by its n-th step; the last one repeats.
type fakeServer struct {
	pb.UnimplementedGameServiceServer
	watches []stepOfWatch
	joins   []func(*pb.JoinGameRequest) (*pb.JoinGameResponse, error)

	mutex   sync.Mutex
	watched []*pb.WatchGameRequest
	joined  []*pb.JoinGameRequest
	tokens  []string
}

func (s *fakeServer) WatchGame(
	request *pb.WatchGameRequest, stream grpc.ServerStreamingServer[pb.WatchGameResponse],
) error {
	s.mutex.Lock()
	step := s.watches[min(len(s.watched), len(s.watches)-1)]
	s.watched = append(s.watched, request)
	s.mutex.Unlock()
	return step(request, stream)
}

func (s *fakeServer) JoinGame(ctx context.Context, request *pb.JoinGameRequest) (*pb.JoinGameResponse, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	step := s.joins[min(len(s.joined), len(s.joins)-1)]
	s.joined = append(s.joined, request)
	sent, _ := metadata.FromIncomingContext(ctx)
	s.tokens = append(s.tokens, sent.Get("authorization")...)
	return step(request)
}

// start returns a client of a fake server on loopback.
func start(t *testing.T, fake *fakeServer) *Client {
	t.Helper()
	return startWith(t, func(server *grpc.Server) { pb.RegisterGameServiceServer(server, fake) })
}

// startWith returns a client of a server on loopback with these services.
func startWith(t *testing.T, register func(*grpc.Server)) *Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return connect(t, listener.Addr().String())
}

func connect(t *testing.T, target string) *Client {
	t.Helper()
	client, err := Connect(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// sends returns a step that sends updates and ends the stream with an error, or with OK.
func sends(err error, updates ...*pb.WatchGameResponse) stepOfWatch {
	return func(_ *pb.WatchGameRequest, stream grpc.ServerStreamingServer[pb.WatchGameResponse]) error {
		for _, update := range updates {
			if err := stream.Send(update); err != nil {
				return err
			}
		}
		return err
	}
}

// hangs returns a step that sends updates and then nothing more.
func hangs(updates ...*pb.WatchGameResponse) stepOfWatch {
	return func(request *pb.WatchGameRequest, stream grpc.ServerStreamingServer[pb.WatchGameResponse]) error {
		if err := sends(nil, updates...)(request, stream); err != nil {
			return err
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}
}

// slowly returns a step after a pause.
func slowly(pause time.Duration, step stepOfWatch) stepOfWatch {
	return func(request *pb.WatchGameRequest, stream grpc.ServerStreamingServer[pb.WatchGameResponse]) error {
		time.Sleep(pause)
		return step(request, stream)
	}
}

// both returns a step that ends as the second of two.
func both(first, second stepOfWatch) stepOfWatch {
	return func(request *pb.WatchGameRequest, stream grpc.ServerStreamingServer[pb.WatchGameResponse]) error {
		if err := first(request, stream); err != nil {
			return err
		}
		return second(request, stream)
	}
}

func etag(revision uint32) string { return time.Duration(revision).String() }

func snapshot(revision uint32) *pb.WatchGameResponse {
	game := &pb.Game{Revision: revision, Etag: etag(revision)}
	return &pb.WatchGameResponse{Update: &pb.WatchGameResponse_Snapshot{Snapshot: game}}
}

func game(revision uint32) *pb.WatchGameResponse {
	game := &pb.Game{Revision: revision, Etag: etag(revision)}
	return &pb.WatchGameResponse{Update: &pb.WatchGameResponse_Game{Game: game}}
}

func change(revision uint32) *pb.WatchGameResponse {
	change := &pb.GameChange{Revision: revision, Etag: etag(revision)}
	return &pb.WatchGameResponse{Update: &pb.WatchGameResponse_Change{Change: change}}
}

func heartbeat() *pb.WatchGameResponse {
	return &pb.WatchGameResponse{Update: &pb.WatchGameResponse_Heartbeat{Heartbeat: &pb.Heartbeat{}}}
}

func closing() *pb.WatchGameResponse {
	return &pb.WatchGameResponse{Update: &pb.WatchGameResponse_Closing{Closing: &pb.Closing{}}}
}

// unknown returns an update of a newer server, whose kind this client does not know.
func unknown() *pb.WatchGameResponse {
	update := &pb.WatchGameResponse{}
	update.ProtoReflect().SetUnknown([]byte{0xc2, 0x3e, 0}) // field 1000, of length 0
	return update
}

// refused returns the error of a refusal.
func refused(code codes.Code, reason pb.ErrorReason, details ...protoadapt.MessageV1) error {
	s := status.New(code, "refused")
	refusal := &pb.Refusal{Reason: reason, Metadata: map[string]string{"revision": "7"}}
	s, err := s.WithDetails(append(details, protoadapt.MessageV1Of(refusal))...)
	if err != nil {
		panic(err)
	}
	return s.Err()
}
