package rummikub

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"
)

// streamsEach is the most streams of a connection. A server accepts 100 calls on it; one more waits without an error.
const streamsEach = 50

// connections are those of a client: the first for all calls, and further ones for many streams.
type connections struct {
	*grpc.ClientConn // the first
	dial             func() (*grpc.ClientConn, error)

	mutex   sync.Mutex
	all     []*grpc.ClientConn
	streams map[*grpc.ClientConn]int
}

func newConnections(dial func() (*grpc.ClientConn, error)) (*connections, error) {
	first, err := dial()
	if err != nil {
		return nil, err
	}
	return &connections{
		ClientConn: first, dial: dial, all: []*grpc.ClientConn{first}, streams: map[*grpc.ClientConn]int{},
	}, nil
}

// NewStream opens a stream on a connection with room for it, a new one if need be. The second result is to be called
// when the stream has ended; it is called by itself with the end of ctx.
func (c *connections) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption,
) (grpc.ClientStream, func(), error) {
	conn, err := c.enter()
	if err != nil {
		return nil, nil, err
	}
	ended := sync.OnceFunc(func() { c.leave(conn) })
	stream, err := conn.NewStream(ctx, desc, method, opts...)
	if err != nil {
		ended()
		return nil, nil, err
	}
	context.AfterFunc(ctx, ended)
	return stream, ended, nil
}

func (c *connections) enter() (*grpc.ClientConn, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, conn := range c.all {
		if c.streams[conn] < streamsEach {
			c.streams[conn]++
			return conn, nil
		}
	}
	conn, err := c.dial()
	if err != nil {
		return nil, err
	}
	c.all = append(c.all, conn)
	c.streams[conn] = 1
	return conn, nil
}

func (c *connections) leave(conn *grpc.ClientConn) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.streams[conn]--
}

// Close closes all connections.
func (c *connections) Close() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	var errs []error
	for _, conn := range c.all {
		errs = append(errs, conn.Close())
	}
	return errors.Join(errs...)
}
