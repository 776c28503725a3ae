package rummikub.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static rummikub.client.FakeServer.refused;

import com.google.rpc.RetryInfo;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import rummikub.v1.ErrorReason;
import rummikub.v1.Game;
import rummikub.v1.GameServiceGrpc;
import rummikub.v1.JoinGameRequest;
import rummikub.v1.ListGamesRequest;
import rummikub.v1.Refusal;

@Timeout(20)
class RummikubTest {
  private static final JoinGameRequest ANN = JoinGameRequest.newBuilder().setName("Ann").build();

  @Test
  void serviceConfigIsTheSharedOne() throws IOException {
    assertEquals(Files.readString(Path.of("../../service_config.json")), Rummikub.SERVICE_CONFIG);
  }

  @Test
  void versionIsThatOfThePom() throws IOException {
    String version = "<version>" + Rummikub.VERSION + "</version>";
    assertTrue(Files.readString(Path.of("../pom.xml")).contains("rummikub-client-parent</artifactId>\n  " + version));
    assertTrue(Files.readString(Path.of("../README.md")).contains("rummikub-client</artifactId>\n      " + version));
  }

  @Test
  void retriesHaveTheTokenAndOneRequestId() throws IOException {
    try (var server = new FakeServer().join(Status.UNAVAILABLE.asRuntimeException()).join(null)) {
      Rummikub ann = server.client.seated("secret");
      ann.games().joinGame(ANN);
      assertEquals(2, server.joined.size());
      assertEquals(server.joined.get(0), server.joined.get(1));
      UUID.fromString(server.joined.get(0).getRequestId());
      assertEquals(List.of("Bearer secret", "Bearer secret"), server.tokens);
      ann.games().joinGame(ANN);
      assertNotEquals(server.joined.get(1).getRequestId(), server.joined.get(2).getRequestId());
      JoinGameRequest own = ANN.toBuilder().setRequestId(Rummikub.newRequestId()).build();
      ann.games().joinGame(own);
      assertEquals(own, server.joined.get(3));
    }
  }

  @Test
  void refusalsHaveReasonsAndSayWhatToDo() throws IOException {
    record Case(StatusRuntimeException error, int reason, String text) {}
    for (Case row :
        List.of(
            new Case(refused(Code.ABORTED, ErrorReason.STALE_STATE),
                ErrorReason.STALE_STATE_VALUE, "STALE_STATE: refused; read the game again"),
            new Case(refused(Code.ABORTED, 9999), 9999, "9999: refused; the server is newer than this client"),
            new Case(Status.RESOURCE_EXHAUSTED.asRuntimeException(), 0, "larger than the limit"))) {
      try (var server = new FakeServer().join(row.error)) {
        var error = assertThrows(StatusRuntimeException.class, () -> server.client.games().joinGame(ANN));
        assertEquals(row.error.getStatus().getCode(), error.getStatus().getCode());
        assertEquals(row.reason, Refusals.of(error).getReasonValue());
        assertEquals(row.reason == 0 ? "" : "7", Refusals.of(error).getMetadataOrDefault("revision", ""));
        assertTrue(error.getMessage().contains(row.text), error.getMessage());
      }
    }
  }

  @Test
  void theCodeOfThePageShowsWhatToDo() throws IOException {
    var game = Game.getDefaultInstance();
    var shown = new ArrayList<String>();
    class Page {
      void retry() {}

      void show(String text) {
        shown.add(text);
      }

      void play(Rummikub ann) {
        try {
          ann.turns().playTurn(Turns.play(game, Tiles.melds("[R1 R2]")));
        } catch (StatusRuntimeException error) {
          Refusal refusal = Refusals.of(error);
          switch (refusal.getReason()) {
            case STALE_STATE -> retry(); // read the game again, and let the player decide again
            case ERROR_REASON_UNSPECIFIED -> show(error.getMessage()); // the service did not answer
            default -> refusal.getViolationsList().forEach(violation -> show(violation.getText()));
          }
        }
      }
    }
    try (var server = new FakeServer()) {
      new Page().play(server.client);
    }
    assertTrue(shown.get(0).contains("older than this client"), shown.get(0));
  }

  @Test
  void futuresFailWithRefusals() throws IOException {
    RetryInfo retry =
        RetryInfo.newBuilder().setRetryDelay(com.google.protobuf.Duration.newBuilder().setSeconds(3)).build();
    try (var server = new FakeServer().join(refused(Code.ABORTED, ErrorReason.STALE_STATE, retry))) {
      var games = GameServiceGrpc.newFutureStub(server.client.channel());
      var error = assertThrows(ExecutionException.class, () -> games.joinGame(ANN).get());
      assertEquals(ErrorReason.STALE_STATE, Refusals.of(error).getReason());
      assertEquals(Optional.of(retry), Refusals.detail(error, RetryInfo.class));
    }
  }

  @Test
  void brokenDetailsDoNotHideTheError() throws IOException {
    var trailers = new Metadata();
    trailers.put(Metadata.Key.of("grpc-status-details-bin", Metadata.BINARY_BYTE_MARSHALLER), new byte[] {1, 2, 3});
    try (var server = new FakeServer().join(Status.NOT_FOUND.asRuntimeException(trailers))) {
      var error = assertThrows(StatusRuntimeException.class, () -> server.client.games().joinGame(ANN));
      assertEquals(Code.NOT_FOUND, error.getStatus().getCode());
    }
  }

  @Test
  void anOldServerIsNamed() throws IOException {
    try (var server = new FakeServer()) {
      var error =
          assertThrows(
              StatusRuntimeException.class,
              () -> server.client.games().listGames(ListGamesRequest.getDefaultInstance()));
      assertTrue(error.getMessage().contains("older than this client"), error.getMessage());
    }
  }

  @Test
  void anAbsentServerIsNamed() {
    try (Rummikub client = Rummikub.connect("127.0.0.1:1")) {
      var games = client.games().withDeadlineAfter(300, TimeUnit.MILLISECONDS);
      var error =
          assertThrows(StatusRuntimeException.class, () -> games.listGames(ListGamesRequest.getDefaultInstance()));
      assertTrue(error.getMessage().contains("no service answers at 127.0.0.1:1; start one with `make run`"));
    }
  }

  /** The backoff of gRPC makes its fourth attempt after about 5 s, and later attempts only every two minutes. */
  @Test
  void reconnectsSoonerThanGrpc() throws IOException {
    try (var listener = new ServerSocket(0);
        Rummikub client = Rummikub.connect("127.0.0.1:" + listener.getLocalPort())) {
      listener.setSoTimeout(3_000);
      GameServiceGrpc.newFutureStub(client.channel()).listGames(ListGamesRequest.getDefaultInstance());
      listener.accept().close();
      long began = System.nanoTime();
      for (int attempt = 2; attempt <= 4; attempt++) {
        listener.accept().close();
      }
      assertTrue(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began) < 3_500);
    }
  }
}
