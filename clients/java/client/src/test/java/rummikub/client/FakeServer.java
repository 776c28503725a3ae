package rummikub.client;

import com.google.protobuf.Any;
import com.google.protobuf.Empty;
import com.google.protobuf.Message;
import com.google.protobuf.UnknownFieldSet;
import com.google.rpc.Status;
import io.grpc.Context;
import io.grpc.Contexts;
import io.grpc.Grpc;
import io.grpc.InsecureServerCredentials;
import io.grpc.Metadata;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerInterceptors;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.function.Consumer;
import rummikub.v1.Closing;
import rummikub.v1.ErrorReason;
import rummikub.v1.Game;
import rummikub.v1.GameChange;
import rummikub.v1.GameServiceGrpc;
import rummikub.v1.Heartbeat;
import rummikub.v1.JoinGameRequest;
import rummikub.v1.JoinGameResponse;
import rummikub.v1.ListGamesRequest;
import rummikub.v1.Refusal;
import rummikub.v1.WatchGameRequest;
import rummikub.v1.WatchGameResponse;

/** A server on loopback that answers the n-th WatchGame or JoinGame by its n-th step; the last one repeats. */
final class FakeServer extends GameServiceGrpc.GameServiceImplBase implements AutoCloseable {
  final List<WatchGameRequest> watched = Collections.synchronizedList(new ArrayList<>());
  final List<JoinGameRequest> joined = Collections.synchronizedList(new ArrayList<>());
  final List<String> tokens = Collections.synchronizedList(new ArrayList<>());
  final Rummikub client;

  /** Answers a WatchGame. */
  interface Step extends Consumer<StreamObserver<WatchGameResponse>> {}

  private final List<Step> watches;
  private final List<Consumer<StreamObserver<JoinGameResponse>>> joins = new ArrayList<>();
  private final Server server;

  FakeServer(Step... watches) throws IOException {
    this.watches = Arrays.asList(watches);
    var tokensOfCalls =
        new ServerInterceptor() {
          @Override
          public <Q, R> ServerCall.Listener<Q> interceptCall(
              ServerCall<Q, R> call, Metadata headers, ServerCallHandler<Q, R> next) {
            tokens.add(headers.get(Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER)));
            return Contexts.interceptCall(Context.current(), call, headers, next);
          }
        };
    server =
        Grpc.newServerBuilderForPort(0, InsecureServerCredentials.create())
            .addService(ServerInterceptors.intercept(this, tokensOfCalls))
            .build()
            .start();
    client = Rummikub.connect("127.0.0.1:" + server.getPort());
  }

  /** Adds a step of JoinGame: an error, or null for an answer. */
  FakeServer join(StatusRuntimeException error) {
    joins.add(answer -> {
      if (error == null) {
        answer.onNext(JoinGameResponse.getDefaultInstance());
      }
      end(answer, error);
    });
    return this;
  }

  /** Connects, so that the next call takes little time. */
  FakeServer connected() {
    try {
      client.games().listGames(ListGamesRequest.getDefaultInstance());
    } catch (StatusRuntimeException unimplemented) {
      tokens.clear();
    }
    return this;
  }

  @Override
  public void watchGame(WatchGameRequest request, StreamObserver<WatchGameResponse> answer) {
    watched.add(request);
    watches.get(Math.min(watched.size(), watches.size()) - 1).accept(answer);
  }

  @Override
  public void joinGame(JoinGameRequest request, StreamObserver<JoinGameResponse> answer) {
    joined.add(request);
    joins.get(Math.min(joined.size(), joins.size()) - 1).accept(answer);
  }

  @Override
  public void close() {
    client.close();
    server.shutdownNow();
  }

  /** Returns a step that sends updates and ends the stream, with OK if the error is null. */
  static Step sends(StatusRuntimeException error, WatchGameResponse... updates) {
    return answer -> {
      Arrays.asList(updates).forEach(answer::onNext);
      end(answer, error);
    };
  }

  /** Returns a step that sends updates and then nothing more. */
  static Step hangs(WatchGameResponse... updates) {
    return answer -> Arrays.asList(updates).forEach(answer::onNext);
  }

  private static void end(StreamObserver<?> answer, StatusRuntimeException error) {
    if (error == null) {
      answer.onCompleted();
    } else {
      answer.onError(error);
    }
  }

  static WatchGameResponse snapshot(int revision) {
    return WatchGameResponse.newBuilder().setSnapshot(game(revision).getGame()).build();
  }

  static WatchGameResponse game(int revision) {
    Game game = Game.newBuilder().setRevision(revision).setEtag("etag " + revision).build();
    return WatchGameResponse.newBuilder().setGame(game).build();
  }

  static WatchGameResponse change(int revision) {
    GameChange change = GameChange.newBuilder().setRevision(revision).setEtag("etag " + revision).build();
    return WatchGameResponse.newBuilder().setChange(change).build();
  }

  static WatchGameResponse heartbeat() {
    return WatchGameResponse.newBuilder().setHeartbeat(Heartbeat.getDefaultInstance()).build();
  }

  static WatchGameResponse closing() {
    return WatchGameResponse.newBuilder().setClosing(Closing.getDefaultInstance()).build();
  }

  /** Returns an update of a newer server. */
  static WatchGameResponse unknown() {
    var field = UnknownFieldSet.Field.newBuilder().addLengthDelimited(Empty.getDefaultInstance().toByteString()).build();
    return WatchGameResponse.newBuilder()
        .setUnknownFields(UnknownFieldSet.newBuilder().addField(1000, field).build())
        .build();
  }

  static StatusRuntimeException refused(io.grpc.Status.Code code, ErrorReason reason, Message... details) {
    return refused(code, reason.getNumber(), details);
  }

  static StatusRuntimeException refused(io.grpc.Status.Code code, int reason, Message... details) {
    Refusal refusal = Refusal.newBuilder().setReasonValue(reason).putMetadata("revision", "7").build();
    Status.Builder status = Status.newBuilder().setCode(code.value()).setMessage("refused").addDetails(Any.pack(refusal));
    for (Message detail : details) {
      status.addDetails(Any.pack(detail));
    }
    return StatusProto.toStatusRuntimeException(status.build());
  }
}
