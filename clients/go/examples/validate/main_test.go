package main

import (
	"context"
	"net"
	"os"
	"testing"

	"google.golang.org/grpc"

	"rummikub.example/go/rummikub"
	pb "rummikub.example/go/rummikubv1"
)

type fakeServer struct {
	pb.UnimplementedValidationServiceServer
	judged []*pb.ValidateTurnRequest
}

func (s *fakeServer) ValidateTurn(
	_ context.Context, request *pb.ValidateTurnRequest,
) (*pb.ValidateTurnResponse, error) {
	s.judged = append(s.judged, request)
	return &pb.ValidateTurnResponse{}, nil
}

func TestTheExampleSendsOneTurn(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fake, server := &fakeServer{}, grpc.NewServer()
	pb.RegisterValidationServiceServer(server, fake)
	go server.Serve(listener)
	defer server.Stop()
	defer func(args []string) { os.Args = args }(os.Args)
	os.Args = []string{"validate", listener.Addr().String()}
	main()
	if len(fake.judged) != 1 {
		t.Fatalf("%d turns were judged", len(fake.judged))
	}
	if sent := rummikub.FormatMelds(fake.judged[0].TableAfter.Melds); sent != "[R3 R4 R5 R6] | [B9 K9]" {
		t.Error(sent)
	}
}
