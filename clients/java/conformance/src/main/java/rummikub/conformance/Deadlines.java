package rummikub.conformance;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ClientStreamTracer;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Records whether calls have a deadline when they are sent. */
public final class Deadlines implements ClientInterceptor {
  final Map<String, Boolean> byMethod = new ConcurrentHashMap<>();

  @Override
  public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
    var tracers =
        new ClientStreamTracer.Factory() {
          @Override
          public ClientStreamTracer newClientStreamTracer(ClientStreamTracer.StreamInfo info, Metadata headers) {
            byMethod.put(method.getBareMethodName(), info.getCallOptions().getDeadline() != null);
            return new ClientStreamTracer() {};
          }
        };
    return next.newCall(method, options.withStreamTracerFactory(tracers));
  }

  /** Checks that CreateGame has a deadline and WatchGame has none. */
  void expect() {
    Suite.expectEqual("which calls have deadlines", byMethod.get("CreateGame") + " " + byMethod.get("WatchGame"), "true false");
  }
}
