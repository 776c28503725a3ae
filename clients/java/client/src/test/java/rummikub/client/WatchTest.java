package rummikub.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static rummikub.client.FakeServer.change;
import static rummikub.client.FakeServer.closing;
import static rummikub.client.FakeServer.game;
import static rummikub.client.FakeServer.hangs;
import static rummikub.client.FakeServer.heartbeat;
import static rummikub.client.FakeServer.refused;
import static rummikub.client.FakeServer.sends;
import static rummikub.client.FakeServer.snapshot;
import static rummikub.client.FakeServer.unknown;

import com.google.rpc.RetryInfo;
import io.grpc.Status;
import io.grpc.Status.Code;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import rummikub.client.FakeServer.Step;
import rummikub.v1.ErrorReason;
import rummikub.v1.Game;
import rummikub.v1.WatchContent;
import rummikub.v1.WatchGameRequest;
import rummikub.v1.WatchGameResponse;

@Timeout(30)
class WatchTest {
  private static final WatchGameRequest FIRST = WatchGameRequest.getDefaultInstance();
  private static final StatusRuntimeException LOST = Status.UNAVAILABLE.asRuntimeException();
  private static final StatusRuntimeException OVERLOADED =
      refused(Code.RESOURCE_EXHAUSTED, ErrorReason.OVERLOADED);
  private static final StatusRuntimeException FORGOTTEN =
      refused(Code.OUT_OF_RANGE, ErrorReason.HISTORY_UNAVAILABLE);
  private static final WatchOptions QUICK = WatchOptions.DEFAULT.withPatience(Duration.ofSeconds(2));

  record Case(String name, WatchGameRequest request, String updates, List<Integer> resumed, Step... steps) {
    @Override
    public String toString() {
      return name;
    }
  }

  static Stream<Case> cases() {
    WatchGameRequest later = FIRST.toBuilder().setEtag("etag 7").build();
    WatchGameRequest both = FIRST.toBuilder().setContent(WatchContent.WATCH_CONTENT_BOTH).build();
    WatchGameRequest games = FIRST.toBuilder().setContent(WatchContent.WATCH_CONTENT_GAMES).build();
    StatusRuntimeException stopping = refused(Code.UNAVAILABLE, ErrorReason.SHUTTING_DOWN);
    return Stream.of(
        new Case("an end without closing is the end", FIRST, "SNAPSHOT 1, CHANGE 2", List.of(0),
            sends(null, snapshot(1), change(2))),
        new Case("a cut resumes after the last change", FIRST, "SNAPSHOT 1, CHANGE 2, CHANGE 3, CHANGE 4", List.of(0, 2, 3),
            sends(LOST, snapshot(1), change(2)), sends(stopping, change(3)), sends(null, change(4))),
        new Case("a broken transport resumes", FIRST, "SNAPSHOT 1, CHANGE 2, CHANGE 3, CHANGE 4", List.of(0, 1, 2, 3),
            sends(Status.CANCELLED.asRuntimeException(), snapshot(1)),
                sends(Status.INTERNAL.asRuntimeException(), change(2)),
                sends(Status.UNKNOWN.asRuntimeException(), change(3)), sends(null, change(4))),
        new Case("an overloaded server is asked again", FIRST, "SNAPSHOT 1, CHANGE 2", List.of(0, 1),
            sends(OVERLOADED, snapshot(1)), sends(null, change(2))),
        new Case("closing resumes", FIRST, "SNAPSHOT 1, CHANGE 2", List.of(0, 1),
            sends(null, snapshot(1), closing()), sends(null, change(2))),
        new Case("a forgotten history starts over", later, "SNAPSHOT 9", List.of(7, 0),
            sends(FORGOTTEN), sends(null, snapshot(9))),
        new Case("a lost history starts over with lower revisions", FIRST,
            "SNAPSHOT 7, CHANGE 8, SNAPSHOT 4, CHANGE 5", List.of(0, 8, 0),
            sends(LOST, snapshot(7), change(8)), sends(FORGOTTEN), sends(null, snapshot(4), change(5))),
        new Case("changes and games resume after the last game", both,
            "SNAPSHOT 1, CHANGE 2, GAME 2, CHANGE 3, CHANGE 4, GAME 4", List.of(0, 2),
            sends(LOST, snapshot(1), change(2), game(2), change(3)), sends(null, change(3), change(4), game(4))),
        new Case("games resume after the last game", games, "SNAPSHOT 1, GAME 2, GAME 3", List.of(0, 2),
            sends(LOST, snapshot(1), game(2)), sends(null, game(3))),
        new Case("silence is a lost connection", FIRST, "SNAPSHOT 1, CHANGE 2", List.of(0, 1),
            hangs(snapshot(1)), sends(null, change(2))),
        new Case("revisions are unsigned", FIRST, "SNAPSHOT 2147483647, CHANGE 2147483648, CHANGE 2147483649",
            List.of(0, Integer.MIN_VALUE),
            sends(LOST, snapshot(Integer.MAX_VALUE), change(Integer.MIN_VALUE)),
                sends(null, change(Integer.MIN_VALUE + 1))),
        new Case("heartbeats and unknown updates are passed over", FIRST, "SNAPSHOT 1", List.of(0),
            sends(null, heartbeat(), unknown(), snapshot(1), heartbeat())));
  }

  @ParameterizedTest
  @MethodSource("cases")
  void resumes(Case row) throws IOException {
    var notices = new ArrayList<Status>();
    WatchOptions options =
        WatchOptions.DEFAULT
            .withSilence(Duration.ofSeconds(row.name.startsWith("silence") ? 1 : 40))
            .withOnReconnect((cause, delay) -> notices.add(cause.getStatus()));
    try (var server = new FakeServer(row.steps).connected();
        Watch watch = server.client.watch(row.request, options)) {
      var updates = new ArrayList<String>();
      watch.forEach(update -> updates.add(text(update)));
      assertEquals(row.updates, String.join(", ", updates));
      var resumed = row.resumed.stream().map(revision -> revision == 0 ? "" : "etag " + revision).toList();
      assertEquals(resumed, server.watched.stream().map(WatchGameRequest::getEtag).toList());
      assertEquals(row.resumed.size() - 1, notices.size());
    }
  }

  @Test
  void endsWithRefusals() throws IOException {
    for (StatusRuntimeException refusal :
        List.of(
            refused(Code.PERMISSION_DENIED, ErrorReason.SPECTATORS_NOT_ALLOWED),
            refused(Code.INTERNAL, ErrorReason.INTERNAL_ERROR))) {
      try (var server = new FakeServer(sends(refusal, snapshot(1)))) {
        StatusRuntimeException error = assertThrows(StatusRuntimeException.class, () -> read(server, WatchOptions.DEFAULT));
        assertEquals(Refusals.of(refusal), Refusals.of(error));
        assertEquals(1, server.watched.size());
      }
    }
  }

  @Test
  void startsOverOnce() throws IOException {
    WatchGameRequest request = FIRST.toBuilder().setEtag("etag 3").build();
    try (var server = new FakeServer(sends(FORGOTTEN));
        Watch watch = server.client.watch(request)) {
      var error = assertThrows(StatusRuntimeException.class, () -> watch.iterator().hasNext());
      assertEquals(Refusals.of(FORGOTTEN), Refusals.of(error));
      assertEquals(2, server.watched.size());
    }
  }

  @Test
  void givesUpAfterItsPatience() throws IOException {
    try (var server = new FakeServer(sends(OVERLOADED)).connected()) {
      var error = assertThrows(StatusRuntimeException.class, () -> read(server, QUICK));
      assertEquals(ErrorReason.OVERLOADED, Refusals.of(error).getReason());
      assertTrue(server.watched.size() > 1);
    }
  }

  @Test
  void waitsForTheDelayOfTheServer() throws IOException {
    RetryInfo delay =
        RetryInfo.newBuilder().setRetryDelay(com.google.protobuf.Duration.newBuilder().setSeconds(61)).build();
    try (var server =
        new FakeServer(sends(refused(Code.RESOURCE_EXHAUSTED, ErrorReason.OVERLOADED, delay)))) {
      assertThrows(StatusRuntimeException.class, () -> read(server, WatchOptions.DEFAULT));
      assertEquals(1, server.watched.size());
    }
  }

  @Test
  void givesUpWithoutServer() {
    try (Rummikub client = Rummikub.connect("127.0.0.1:1");
        Watch watch = client.watch(FIRST, QUICK)) {
      var error = assertThrows(StatusRuntimeException.class, () -> watch.iterator().hasNext());
      assertTrue(error.getMessage().contains("no service answers at 127.0.0.1:1; start one"), error.getMessage());
    }
  }

  @Test
  void doesNotCountTheTimeOfTheCaller() throws Exception {
    Duration brief = Duration.ofSeconds(1);
    WatchOptions options = WatchOptions.DEFAULT.withPatience(brief).withSilence(brief);
    try (var server = new FakeServer(sends(LOST, snapshot(1), change(2)), sends(null, change(3))).connected()) {
      var updates = new ArrayList<String>();
      for (WatchGameResponse update : server.client.watch(FIRST, options)) {
        updates.add(text(update));
        Thread.sleep(1_200);
      }
      assertEquals(List.of("SNAPSHOT 1", "CHANGE 2", "CHANGE 3"), updates);
      assertEquals(2, server.watched.size());
    }
  }

  @Test
  void closesWhileACallerWaits() throws Exception {
    try (var server = new FakeServer(hangs(snapshot(1)))) {
      Watch watch = server.client.watch(FIRST);
      assertTrue(watch.next().get().isPresent());
      CompletableFuture<Optional<WatchGameResponse>> second = watch.next();
      assertThrows(ExecutionException.class, () -> watch.next().get());
      watch.close();
      assertEquals(Optional.empty(), second.get(1, TimeUnit.SECONDS));
      assertFalse(watch.iterator().hasNext());
    }
  }

  @Test
  void endsWithItsConnection() throws Exception {
    try (var server = new FakeServer(hangs(snapshot(1)))) {
      Watch watch = server.client.watch(FIRST);
      watch.next().get();
      CompletableFuture<Optional<WatchGameResponse>> second = watch.next();
      server.client.close();
      assertThrows(ExecutionException.class, () -> second.get(1, TimeUnit.SECONDS));
    }
  }

  @Test
  void returnsWholeGames() throws Exception {
    try (var server = new FakeServer(sends(LOST, snapshot(1)), sends(null, change(2), game(3)));
        var games = server.client.watchGames("g")) {
      assertEquals(List.of(1, 3), games.map(Game::getRevision).toList());
    }
  }

  @Test
  void callsAnActionWithEachUpdate() throws Exception {
    try (var server = new FakeServer(sends(LOST, snapshot(1)), sends(null, change(2)))) {
      var updates = new ArrayList<String>();
      server.client.watch(FIRST).forEachAsync(update -> updates.add(text(update))).get();
      assertEquals(List.of("SNAPSHOT 1", "CHANGE 2"), updates);
      var thrown = new IllegalStateException("the action failed");
      CompletableFuture<Void> failing =
          server.client.watch(FIRST).forEachAsync(
              update -> {
                throw thrown;
              });
      assertEquals(thrown, assertThrows(ExecutionException.class, failing::get).getCause());
    }
  }

  @Test
  void interruptedThreadsStopWaiting() throws Exception {
    try (var server = new FakeServer(hangs())) {
      Thread.currentThread().interrupt();
      var error = assertThrows(StatusRuntimeException.class, () -> read(server, QUICK));
      assertTrue(Thread.interrupted());
      assertEquals(Code.CANCELLED, error.getStatus().getCode());
    }
  }

  private static void read(FakeServer server, WatchOptions options) {
    try (Watch watch = server.client.watch(FIRST, options)) {
      watch.forEach(update -> {});
    }
  }

  private static String text(WatchGameResponse update) {
    int revision =
        Watch.game(update).map(game -> game.getRevision()).orElseGet(() -> update.getChange().getRevision());
    return update.getUpdateCase() + " " + Integer.toUnsignedString(revision);
  }
}
