package rummikub.conformance;

import com.google.protobuf.Message;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ClientInterceptors;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Sends each request twice, as a channel does whose first answer was lost. */
public final class Twice implements ClientInterceptor {
  final List<String> ids = Collections.synchronizedList(new ArrayList<>());
  final List<Object> first = Collections.synchronizedList(new ArrayList<>());
  final List<Object> second = Collections.synchronizedList(new ArrayList<>());

  @Override
  public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
    return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
      private final Metadata sent = new Metadata();

      @Override
      public void start(Listener<R> listener, Metadata headers) {
        sent.merge(headers);
        super.start(
            new SimpleForwardingClientCallListener<>(listener) {
              @Override
              public void onMessage(R answer) {
                second.add(answer);
                super.onMessage(answer);
              }
            },
            headers);
      }

      @Override
      public void sendMessage(Q request) {
        Message message = (Message) request;
        ids.add((String) message.getField(message.getDescriptorForType().findFieldByName("request_id")));
        Channel signed = ClientInterceptors.intercept(next, MetadataUtils.newAttachHeadersInterceptor(sent));
        first.add(ClientCalls.blockingUnaryCall(signed, method, options, request));
        super.sendMessage(request);
      }
    };
  }
}
