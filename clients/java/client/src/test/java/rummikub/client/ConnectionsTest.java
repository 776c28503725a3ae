package rummikub.client;

import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;

import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

class ConnectionsTest {
  private static final Supplier<ManagedChannel> CONNECT =
      () -> Grpc.newChannelBuilder("127.0.0.1:1", InsecureChannelCredentials.create()).build();

  @Test
  void everyFiftyStreamsShareAConnectionAndThoseThatEndMakeRoom() {
    try (var connections = new Connections(CONNECT)) {
      for (int i = 0; i < 50; i++) {
        assertSame(connections.first(), connections.enter());
      }
      Connection second = connections.enter();
      assertNotSame(connections.first(), second);
      assertSame(second, connections.enter());
      connections.leave(connections.first());
      assertSame(connections.first(), connections.enter());
      assertSame(second, connections.enter());
    }
  }

  @Test
  void aChannelOfTheCallerCarriesAllStreams() {
    try (var connections = new Connections(CONNECT.get())) {
      for (int i = 0; i < 150; i++) {
        assertSame(connections.first(), connections.enter());
      }
    }
  }
}
