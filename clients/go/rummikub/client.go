// Package rummikub is a client of the Rummikub rules service: a connection with the stubs of the contract
// ([rummikub.example/go/rummikubv1]), typed refusals, a watch that resumes by itself, and tiles by name.
package rummikub

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	pb "rummikub.example/go/rummikubv1"
)

// Version is the version of this client, which is that of the service it was made with.
const Version = "0.1.0"

// ServiceConfig is the gRPC service config of a connection: retries of UNAVAILABLE with throttling, wait-for-ready, and
// a deadline for every call except the streams.
//
//go:embed service_config.json
var ServiceConfig string

// Client is a connection to the service, as a spectator or, after Seated, as a seat of a game. It is safe for concurrent
// use. A failed call returns a *RefusalError. A call without a deadline gets that of ServiceConfig. There is a connection
// for every 50 streams, such as watches, because a server accepts 100 calls on one.
//
// A request with an empty request_id is sent with a new one, so that a repeated attempt is applied once. To repeat a
// call yourself, set the field (NewRequestID) and send the same request again.
type Client struct {
	Games      pb.GameServiceClient
	Turns      pb.TurnServiceClient
	Validation pb.ValidationServiceClient
	Analysis   pb.AnalysisServiceClient
	Records    pb.RecordServiceClient
	Challenges pb.ChallengeServiceClient
	Puzzles    pb.PuzzleServiceClient

	conn *connections
	key  string
}

// Option changes a connection.
type Option func(*options)

type options struct {
	key         string
	credentials credentials.TransportCredentials
	dial        []grpc.DialOption
}

// WithTLS encrypts the connection. A nil config uses the system's certificate authorities.
func WithTLS(config *tls.Config) Option {
	return func(o *options) { o.credentials = credentials.NewTLS(config) }
}

// WithAPIKey sends the front end's key with every call, for a server that requires one.
func WithAPIKey(key string) Option {
	return func(o *options) { o.key = key }
}

// WithDialOptions adds options of gRPC, such as interceptors or a dialer. They override those of this package.
func WithDialOptions(dial ...grpc.DialOption) Option {
	return func(o *options) { o.dial = append(o.dial, dial...) }
}

// Connect returns a client of the service at target (`host:port`), without TLS unless an option sets it. It does not
// wait for the server: a call waits for it until the call's deadline.
func Connect(target string, opts ...Option) (*Client, error) {
	if strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://") {
		return nil, fmt.Errorf("the target %s is a URL: pass host:port, and WithTLS for TLS", target)
	}
	o := options{credentials: insecure.NewCredentials()}
	for _, opt := range opts {
		opt(&o)
	}
	dial := []grpc.DialOption{
		grpc.WithTransportCredentials(o.credentials),
		grpc.WithDefaultServiceConfig(ServiceConfig),
		grpc.WithUserAgent("rummikub-client-go/" + Version),
		// The server closes connections with more than one ping in 10 seconds.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: 20 * time.Second, Timeout: 10 * time.Second, PermitWithoutStream: true,
		}),
		// gRPC's own backoff grows to two minutes, which is longer than the patience of a watch.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 200 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: 5 * time.Second,
			},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
	dial = append(dial, o.dial...)
	conn, err := newConnections(func() (*grpc.ClientConn, error) { return grpc.NewClient(target, dial...) })
	if err != nil {
		return nil, fmt.Errorf("rummikub: %w", err)
	}
	return newClient(caller{conn: conn, key: o.key}), nil
}

func newClient(c caller) *Client {
	return &Client{
		Games:      pb.NewGameServiceClient(c),
		Turns:      pb.NewTurnServiceClient(c),
		Validation: pb.NewValidationServiceClient(c),
		Analysis:   pb.NewAnalysisServiceClient(c),
		Records:    pb.NewRecordServiceClient(c),
		Challenges: pb.NewChallengeServiceClient(c),
		Puzzles:    pb.NewPuzzleServiceClient(c),
		conn:       c.conn,
		key:        c.key,
	}
}

// Seated returns a client on the same connection that sends a token with every call: that of a seat, or the host token.
func (c *Client) Seated(token string) *Client {
	return newClient(caller{conn: c.conn, key: c.key, token: token})
}

// Close closes the connection, also for every client that Seated returned.
func (c *Client) Close() error { return c.conn.Close() }

// NewRequestID returns a random request id (a UUID).
func NewRequestID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// caller is a connection that sends a token and request ids, and returns each error as a *RefusalError.
type caller struct {
	conn  *connections
	key   string
	token string
}

func (c caller) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	err := c.conn.Invoke(c.signed(ctx), method, withRequestID(args), reply, opts...)
	return c.refusal(method, err)
}

func (c caller) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	s, ended, err := c.conn.NewStream(c.signed(ctx), desc, method, opts...)
	if err != nil {
		return nil, c.refusal(method, err)
	}
	return stream{s, c, method, ended}, nil
}

func (c caller) signed(ctx context.Context) context.Context {
	if c.key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-api-key", c.key)
	}
	if c.token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.token)
}

// stream is a stream whose errors are *RefusalError.
type stream struct {
	grpc.ClientStream
	caller caller
	method string
	ended  func()
}

func (s stream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err != nil {
		s.ended()
	}
	return s.caller.refusal(s.method, err)
}

func (s stream) SendMsg(m any) error {
	return s.caller.refusal(s.method, s.ClientStream.SendMsg(m))
}

// withRequestID returns a copy of a request with a new request id if its own is empty, else the request.
func withRequestID(request any) any {
	message, ok := request.(proto.Message)
	if !ok {
		return request
	}
	reflected := message.ProtoReflect()
	field := reflected.Descriptor().Fields().ByName("request_id")
	if field == nil || reflected.Has(field) {
		return request
	}
	filled := proto.Clone(message)
	filled.ProtoReflect().Set(field, protoreflect.ValueOfString(NewRequestID()))
	return filled
}
