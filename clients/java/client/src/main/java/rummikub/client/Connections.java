package rummikub.client;

import io.grpc.ManagedChannel;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;

/** The connections of a client: one for all calls, and further ones for many streams. */
final class Connections implements AutoCloseable {
  /** Most streams of a connection. A server accepts 100 calls on it; one more waits in the client, without an error. */
  private static final int STREAMS_EACH = 50;

  private final Connection first;
  private final Supplier<Connection> further;
  private final Map<Connection, Integer> streams = new LinkedHashMap<>();

  /** Uses one channel for all streams. */
  Connections(ManagedChannel channel) {
    first = opened(channel);
    further = () -> first;
  }

  /** Uses as many channels as the streams need. */
  Connections(Supplier<ManagedChannel> connect) {
    first = opened(connect.get());
    further = () -> opened(connect.get());
  }

  /** Returns the connection of calls that are no streams. */
  Connection first() {
    return first;
  }

  /** Returns a connection with room for a stream, a new one if need be. */
  synchronized Connection enter() {
    Connection found =
        streams.entrySet().stream()
            .filter(entry -> entry.getValue() < STREAMS_EACH)
            .map(Map.Entry::getKey)
            .findFirst()
            .orElseGet(further);
    streams.merge(found, 1, Integer::sum);
    return found;
  }

  /** Makes room on a connection whose stream has ended. */
  synchronized void leave(Connection connection) {
    streams.merge(connection, -1, Integer::sum);
  }

  @Override
  public synchronized void close() {
    streams.keySet().forEach(Connection::close);
  }

  private Connection opened(ManagedChannel channel) {
    var connection = new Connection(channel);
    streams.put(connection, 0);
    return connection;
  }
}
