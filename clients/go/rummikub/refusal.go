package rummikub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	pb "rummikub.example/go/rummikubv1"
)

// RefusalError is the error of a failed call: a refusal of the service, or a failure of the transport, which has no
// Reason. status.Code and errors.Is with context.Canceled and context.DeadlineExceeded work with it.
type RefusalError struct {
	Method     string            // the RPC, such as `PlayTurn`
	Code       codes.Code        // the status code
	Message    string            // the status message, for a developer
	Reason     pb.ErrorReason    // ERROR_REASON_UNSPECIFIED if the service did not answer; may be a number unknown here
	Metadata   map[string]string // the values that belong to Reason
	Violations []*pb.Violation   // of an illegal turn
	Fields     []string          // the fields at fault, such as `ruleset.melding.deal.players_min`
	RetryDelay time.Duration     // the delay that the service asks for; 0 if none
	Hint       string            // what to do; "" if the message says it

	status *status.Status
}

// Error returns the RPC, the reason or the code, the message, and what to do.
func (e *RefusalError) Error() string {
	cause := e.Code.String()
	if e.Reason != pb.ErrorReason_ERROR_REASON_UNSPECIFIED {
		cause = ReasonName(e.Reason)
	}
	text := fmt.Sprintf("rummikub: %s: %s: %s", e.Method, cause, e.Message)
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// GRPCStatus returns the status of the call.
func (e *RefusalError) GRPCStatus() *status.Status { return e.status }

// Is reports whether target is the context's error for the code.
func (e *RefusalError) Is(target error) bool {
	return target == context.Canceled && e.Code == codes.Canceled ||
		target == context.DeadlineExceeded && e.Code == codes.DeadlineExceeded
}

// ReasonName returns the name of a reason, such as `NOT_YOUR_TURN`; the number of an unknown one.
func ReasonName(reason pb.ErrorReason) string {
	return reason.String()
}

// ReasonOf returns the reason of an error, or ERROR_REASON_UNSPECIFIED if it has none.
func ReasonOf(err error) pb.ErrorReason {
	var refused *RefusalError
	if errors.As(err, &refused) {
		return refused.Reason
	}
	return pb.ErrorReason_ERROR_REASON_UNSPECIFIED
}

// refusal returns a call's error as a *RefusalError; nil and io.EOF, the end of a stream, as they are.
func (c caller) refusal(method string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	s := status.Convert(err)
	e := &RefusalError{Method: method[strings.LastIndex(method, "/")+1:], Code: s.Code(), Message: s.Message(), status: s}
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *pb.Refusal:
			e.Reason, e.Metadata, e.Violations = d.Reason, d.Metadata, d.Violations
		case *errdetails.BadRequest:
			for _, violation := range d.FieldViolations {
				e.Fields = append(e.Fields, violation.Field)
			}
		case *errdetails.RetryInfo:
			e.RetryDelay = d.RetryDelay.AsDuration()
		}
	}
	e.Hint = c.hint(e)
	return e
}

var hints = map[pb.ErrorReason]string{
	pb.ErrorReason_GAME_NOT_FOUND: "check the game's id; games expire",
	pb.ErrorReason_TOKEN_VOID:     "use the token that replaced it, or join again",
	pb.ErrorReason_NOT_A_PLAYER: "make the call on Client.Seated with the seat's token, " +
		"which JoinGame returned",
	pb.ErrorReason_AUTHORIZATION_MALFORMED: "pass Client.Seated the token as JoinGame or CreateGame returned it",
	pb.ErrorReason_STALE_STATE:             "read the game again and decide again",
	pb.ErrorReason_HISTORY_UNAVAILABLE:     "start over without an etag",
	pb.ErrorReason_DUPLICATE_REQUEST:       "use a new request id for a request with other content",
}

// hint returns what a developer can do about an error; "" if its message says it.
func (c caller) hint(e *RefusalError) string {
	if e.Reason != pb.ErrorReason_ERROR_REASON_UNSPECIFIED {
		if _, known := pb.ErrorReason_name[int32(e.Reason)]; !known {
			return fmt.Sprintf("the server is newer than this client, which does not know reason %d", e.Reason)
		}
		return hints[e.Reason]
	}
	switch e.Code {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		switch c.conn.GetState() {
		case connectivity.TransientFailure, connectivity.Connecting:
			return fmt.Sprintf("no service answers at %s; start one with `make run`", c.conn.Target())
		}
	case codes.Unimplemented:
		return fmt.Sprintf("the server at %s is older than this client; update the server", c.conn.Target())
	case codes.ResourceExhausted:
		return "a message or its metadata is larger than the limit"
	}
	return ""
}
