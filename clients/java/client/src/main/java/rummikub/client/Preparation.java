package rummikub.client;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Message;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;

/** Fills in empty request ids, sends a token with every call, finds a connection for streams, and explains errors. */
final class Preparation implements ClientInterceptor {
  private static final Metadata.Key<String> AUTHORIZATION =
      Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER);

  private final Connections connections;
  private final String token;

  Preparation(Connections connections, String token) {
    this.connections = connections;
    this.token = token;
  }

  @Override
  public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
    if (method.getType() == MethodDescriptor.MethodType.UNARY) {
      return prepared(next.newCall(method, options), connections.first(), () -> {});
    }
    Connection connection = connections.enter();
    return prepared(connection.channel().newCall(method, options), connection, () -> connections.leave(connection));
  }

  private <Q, R> ClientCall<Q, R> prepared(ClientCall<Q, R> call, Connection connection, Runnable onEnd) {
    return new SimpleForwardingClientCall<>(call) {
      @Override
      public void start(Listener<R> listener, Metadata headers) {
        if (!token.isEmpty()) {
          headers.put(AUTHORIZATION, "Bearer " + token);
        }
        super.start(explained(listener, connection, onEnd), headers);
      }

      @Override
      public void sendMessage(Q request) {
        super.sendMessage(withRequestId(request));
      }
    };
  }

  private static <R> ClientCall.Listener<R> explained(
      ClientCall.Listener<R> listener, Connection connection, Runnable onEnd) {
    return new SimpleForwardingClientCallListener<>(listener) {
      @Override
      public void onClose(Status status, Metadata trailers) {
        onEnd.run();
        super.onClose(status.isOk() ? status : Refusals.explained(status, trailers, connection), trailers);
      }
    };
  }

  /** Returns a copy of a request with a new request id if its own is empty, else the request. */
  @SuppressWarnings("unchecked")
  private static <Q> Q withRequestId(Q request) {
    if (request instanceof Message message) {
      FieldDescriptor field = message.getDescriptorForType().findFieldByName("request_id");
      if (field != null && message.getField(field).equals("")) {
        return (Q) message.toBuilder().setField(field, Rummikub.newRequestId()).build();
      }
    }
    return request;
  }
}
