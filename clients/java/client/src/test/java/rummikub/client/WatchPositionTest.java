package rummikub.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static rummikub.client.FakeServer.heartbeat;
import static rummikub.client.FakeServer.snapshot;

import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import rummikub.v1.Closing;
import rummikub.v1.Game;
import rummikub.v1.MeldingRuleset;
import rummikub.v1.Preset;
import rummikub.v1.RoomSettings;
import rummikub.v1.Ruleset;
import rummikub.v1.Visibility;
import rummikub.v1.WatchGameRequest;
import rummikub.v1.WatchGameResponse;

class WatchPositionTest {
  private Duration now = Duration.ZERO;
  private final WatchPosition position =
      new WatchPosition(WatchGameRequest.getDefaultInstance(), Duration.ofSeconds(60), () -> now.toNanos());

  private Optional<Duration> delayAfter(Status status) {
    return position.delayAfter(status, new Metadata());
  }

  @Test
  void backoffDoublesToFiveSeconds() {
    for (long longest : new long[] {200, 400, 800, 1600, 3200, 5000, 5000}) {
      long delay = delayAfter(Status.UNAVAILABLE).orElseThrow().toMillis();
      assertTrue(longest / 2 <= delay && delay <= longest, delay + " is not half to all of " + longest);
    }
    position.receive(heartbeat());
    assertTrue(delayAfter(Status.UNAVAILABLE).orElseThrow().toMillis() <= 200);
  }

  @Test
  void patienceBeginsWithEachMessage() {
    for (int second = 0; second < 300; second += 50) {
      now = Duration.ofSeconds(second);
      assertTrue(delayAfter(Status.UNAVAILABLE).isPresent());
      position.receive(second % 100 == 0 ? heartbeat() : snapshot(second));
    }
    now = now.plusSeconds(61);
    assertEquals(Duration.ZERO, position.patienceLeft());
    assertEquals(Optional.empty(), delayAfter(Status.UNAVAILABLE));
  }

  @Test
  void everyGameHasWhatOnlyTheFirstOneOfAStreamHas() {
    var ruleset = Ruleset.newBuilder().setMelding(MeldingRuleset.newBuilder().setPreset(Preset.PRESET_GUIDE_A));
    var settings = RoomSettings.newBuilder().setTurnTimeLimit(com.google.protobuf.Duration.newBuilder().setSeconds(30));
    var whole = Game.newBuilder().setRuleset(ruleset).setSettings(settings);
    whole.setVisibility(Visibility.VISIBILITY_PUBLIC).putLabels("region", "eu");
    for (var first : new WatchGameResponse.Builder[] {
      WatchGameResponse.newBuilder().setSnapshot(whole), WatchGameResponse.newBuilder().setGame(whole)
    }) {
      var fresh = new WatchPosition(WatchGameRequest.getDefaultInstance(), Duration.ofSeconds(60), () -> 0);
      fresh.receive(first.build());
      for (int revision = 4; revision < 6; revision++) {
        var update = WatchGameResponse.newBuilder().setGame(Game.newBuilder().setRevision(revision)).build();
        fresh.receive(update);
        assertEquals(whole.setRevision(revision).build(), fresh.completed(update).getGame());
      }
      whole.clearRevision();
    }
  }

  @Test
  void aClosingServerNamesTheDelay() {
    var delay = com.google.protobuf.Duration.newBuilder().setSeconds(2).setNanos(500_000_000);
    var closing = WatchGameResponse.newBuilder().setClosing(Closing.newBuilder().setRetryDelay(delay)).build();
    position.receive(closing);
    assertEquals(Optional.of(Duration.ofMillis(2500)), delayAfter(Status.UNAVAILABLE));
    assertEquals(Optional.empty(), delayAfter(Status.OK));
  }

  @Test
  void otherErrorsEndTheWatch() {
    for (Status status : new Status[] {Status.NOT_FOUND, Status.UNIMPLEMENTED, Status.DEADLINE_EXCEEDED}) {
      assertEquals(Optional.empty(), delayAfter(status));
    }
  }
}
