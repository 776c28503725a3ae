package rummikub.client;

import com.google.gson.Gson;
import com.google.gson.reflect.TypeToken;
import io.grpc.Channel;
import io.grpc.ChannelCredentials;
import io.grpc.ClientInterceptors;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import rummikub.v1.AnalysisServiceGrpc;
import rummikub.v1.AnalysisServiceGrpc.AnalysisServiceBlockingStub;
import rummikub.v1.ChallengeServiceGrpc;
import rummikub.v1.ChallengeServiceGrpc.ChallengeServiceBlockingStub;
import rummikub.v1.Game;
import rummikub.v1.GameServiceGrpc;
import rummikub.v1.GameServiceGrpc.GameServiceBlockingStub;
import rummikub.v1.PuzzleServiceGrpc;
import rummikub.v1.PuzzleServiceGrpc.PuzzleServiceBlockingStub;
import rummikub.v1.RecordServiceGrpc;
import rummikub.v1.RecordServiceGrpc.RecordServiceBlockingStub;
import rummikub.v1.TurnServiceGrpc;
import rummikub.v1.TurnServiceGrpc.TurnServiceBlockingStub;
import rummikub.v1.ValidationServiceGrpc;
import rummikub.v1.ValidationServiceGrpc.ValidationServiceBlockingStub;
import rummikub.v1.WatchContent;
import rummikub.v1.WatchGameRequest;

/**
 * A connection to the service, as a spectator or, after {@link #seated}, as a seat or the host of a game. It is safe for
 * use by several threads. There is a connection for every 50 streams, such as watches, because a server accepts 100 calls
 * on one.
 *
 * <p>A request with an empty {@code request_id} is sent with a new one, so that a repeated attempt is applied once. To
 * repeat a call yourself, set the field ({@link #newRequestId}) and send the same request again.
 *
 * <p>A failed call throws an {@link io.grpc.StatusRuntimeException}, whose message says what to do; {@link Refusals} reads
 * its reason.
 */
public final class Rummikub implements AutoCloseable {
  /** The version of this client, which is that of the service it was made with. */
  public static final String VERSION = "0.1.0";

  /**
   * The gRPC service config of a connection: retries of UNAVAILABLE with throttling, wait-for-ready, and a deadline for
   * every call except the streams.
   */
  public static final String SERVICE_CONFIG = resource("service_config.json");

  private final Connections connections;
  private final Channel channel;

  /** Uses a channel of your own, which carries 100 calls at a time, watches included. Build it with {@link #configure}. */
  public Rummikub(ManagedChannel channel) {
    this(new Connections(channel), "");
  }

  private Rummikub(Connections connections, String token) {
    this.connections = connections;
    channel = ClientInterceptors.intercept(connections.first().channel(), new Preparation(connections, token));
  }

  /**
   * Returns a client of the service at a target ({@code host:port}), without TLS. It does not wait for the server: a call
   * waits for it until the call's deadline.
   */
  public static Rummikub connect(String target) {
    return connect(target, InsecureChannelCredentials.create());
  }

  /** Returns a client with credentials, such as {@code TlsChannelCredentials.create()}. */
  public static Rummikub connect(String target, ChannelCredentials credentials) {
    var connections = new Connections(() -> configure(Grpc.newChannelBuilder(target, credentials)).build());
    return new Rummikub(connections, "");
  }

  /** Returns a builder after setting the service config, keepalive pings and the user agent of this client. */
  public static ManagedChannelBuilder<?> configure(ManagedChannelBuilder<?> builder) {
    Map<String, Object> config = new Gson().fromJson(SERVICE_CONFIG, new TypeToken<Map<String, Object>>() {}.getType());
    return builder
        .defaultServiceConfig(config)
        .userAgent("rummikub-client-java/" + VERSION)
        .keepAliveTime(20, TimeUnit.SECONDS) // the server closes connections with more than one ping in 10 seconds
        .keepAliveTimeout(10, TimeUnit.SECONDS)
        .keepAliveWithoutCalls(true);
  }

  /** Returns the same connection with a seat's token, or the host token, on every call. */
  public Rummikub seated(String token) {
    return new Rummikub(connections, token);
  }

  /** Returns the blocking stub of games: create, join, start, read. */
  public GameServiceBlockingStub games() {
    return GameServiceGrpc.newBlockingStub(channel);
  }

  /** Returns the blocking stub of turns and rounds. */
  public TurnServiceBlockingStub turns() {
    return TurnServiceGrpc.newBlockingStub(channel);
  }

  /** Returns the blocking stub of the rules without a game. */
  public ValidationServiceBlockingStub validation() {
    return ValidationServiceGrpc.newBlockingStub(channel);
  }

  /** Returns the blocking stub of the analysis. */
  public AnalysisServiceBlockingStub analysis() {
    return AnalysisServiceGrpc.newBlockingStub(channel);
  }

  /** Returns the blocking stub of records, and of texts of positions. */
  public RecordServiceBlockingStub records() {
    return RecordServiceGrpc.newBlockingStub(channel);
  }

  /** Returns the blocking stub of challenges. */
  public ChallengeServiceBlockingStub challenges() {
    return ChallengeServiceGrpc.newBlockingStub(channel);
  }

  /** Returns the blocking stub of puzzles. */
  public PuzzleServiceBlockingStub puzzles() {
    return PuzzleServiceGrpc.newBlockingStub(channel);
  }

  /**
   * Returns the channel, with the token, request ids and explained errors, for every other kind of stub:
   * {@code GameServiceGrpc.newFutureStub(ann.channel())}.
   */
  public Channel channel() {
    return channel;
  }

  /** Returns the updates of a game, in order and each once. */
  public Watch watch(WatchGameRequest request) {
    return watch(request, WatchOptions.DEFAULT);
  }

  /** Returns the updates of a game, with options. */
  public Watch watch(WatchGameRequest request, WatchOptions options) {
    return new Watch(connections.first(), channel, request, options);
  }

  /**
   * Returns a game as it is now and after every change, as a stream that waits for the next one; for the rest, it is a
   * {@link Watch}. Close it if it may not be read to its end.
   */
  public Stream<Game> watchGames(String gameId) {
    var request = WatchGameRequest.newBuilder().setGameId(gameId).setContent(WatchContent.WATCH_CONTENT_GAMES);
    Watch watch = watch(request.build());
    return StreamSupport.stream(watch.spliterator(), false)
        .flatMap(update -> Watch.game(update).stream())
        .onClose(watch::close);
  }

  /** Closes the connection, also for every client that {@link #seated} returned. Calls and watches in progress end. */
  @Override
  public void close() {
    connections.close();
  }

  /** Returns a random request id (a UUID). */
  public static String newRequestId() {
    return UUID.randomUUID().toString();
  }

  private static String resource(String name) {
    try (var stream = Rummikub.class.getResourceAsStream(name)) {
      return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }
}
