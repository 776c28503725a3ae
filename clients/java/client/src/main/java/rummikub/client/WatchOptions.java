package rummikub.client;

import io.grpc.StatusRuntimeException;
import java.time.Duration;
import java.util.function.BiConsumer;

/**
 * How a watch handles lost connections.
 *
 * @param patience How long a watch goes on without any message of the server.
 * @param silence After which silence a connection counts as lost. The server sends a heartbeat every 15 s.
 * @param onReconnect Called before each reconnection with its cause, which has the status OK if the server is stopping, and
 *     the delay before it.
 */
public record WatchOptions(
    Duration patience, Duration silence, BiConsumer<StatusRuntimeException, Duration> onReconnect) {
  /** A patience of 60 s, and a silence of 40 s. */
  public static final WatchOptions DEFAULT =
      new WatchOptions(Duration.ofSeconds(60), Duration.ofSeconds(40), (cause, delay) -> {});

  /** Returns a copy with another patience. */
  public WatchOptions withPatience(Duration value) {
    return new WatchOptions(value, silence, onReconnect);
  }

  /** Returns a copy with another silence. */
  public WatchOptions withSilence(Duration value) {
    return new WatchOptions(patience, value, onReconnect);
  }

  /** Returns a copy with another function that is called before each reconnection. */
  public WatchOptions withOnReconnect(BiConsumer<StatusRuntimeException, Duration> value) {
    return new WatchOptions(patience, silence, value);
  }
}
