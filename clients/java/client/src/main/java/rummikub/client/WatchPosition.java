package rummikub.client;

import com.google.rpc.RetryInfo;
import io.grpc.Metadata;
import io.grpc.Status;
import java.time.Duration;
import java.util.Optional;
import java.util.function.LongSupplier;
import rummikub.v1.ErrorReason;
import rummikub.v1.Game;
import rummikub.v1.GameChange;
import rummikub.v1.Refusal;
import rummikub.v1.WatchContent;
import rummikub.v1.WatchGameRequest;
import rummikub.v1.WatchGameResponse;

/** The position of a watch in a game's history, and when the watch connects again. It does no I/O. */
final class WatchPosition {
  private final Duration patience;
  private final LongSupplier nanoTime;
  private volatile WatchGameRequest request; // its etag is the position to resume from
  private Game lasting = Game.getDefaultInstance(); // what never changes, which only the first game of a stream has
  private int changed; // the revision of the last change for the caller
  private long alive; // when the server sent something last
  private int failures; // streams in a row that ended without a message
  private Duration closing; // the delay that the server asked for when it announced its end

  WatchPosition(WatchGameRequest request, Duration patience, LongSupplier nanoTime) {
    this.request = request;
    this.patience = patience;
    this.nanoTime = nanoTime;
    alive = nanoTime.getAsLong();
  }

  /** Returns the request that continues after the last update. */
  WatchGameRequest request() {
    return request;
  }

  /** Restarts the patience, because the caller has done something else since the last update. */
  void restartPatience() {
    alive = nanoTime.getAsLong();
  }

  /** Returns for how long the watch still goes on without a message of the server. */
  Duration patienceLeft() {
    Duration left = patience.minusNanos(nanoTime.getAsLong() - alive);
    return left.isNegative() ? Duration.ZERO : left;
  }

  /**
   * Moves past an update, and returns whether it is for the caller. With WATCH_CONTENT_BOTH a watch resumes from its last
   * game, because the server does not send the game again after a change that the caller has seen; so changes may be
   * repeated, and are not for the caller.
   */
  boolean receive(WatchGameResponse response) {
    restartPatience();
    failures = 0;
    switch (response.getUpdateCase()) {
      case SNAPSHOT -> {
        changed = response.getSnapshot().getRevision();
        receive(response.getSnapshot());
      }
      case GAME -> receive(response.getGame());
      case CHANGE -> {
        GameChange change = response.getChange();
        if (Integer.compareUnsigned(change.getRevision(), changed) <= 0) {
          return false;
        }
        changed = change.getRevision();
        if (request.getContent() != WatchContent.WATCH_CONTENT_BOTH) {
          resumeAfter(change.getEtag());
        }
      }
      case CLOSING -> {
        closing = duration(response.getClosing().getRetryDelay());
        return false;
      }
      case HEARTBEAT, UPDATE_NOT_SET -> {
        return false;
      }
      default -> {}
    }
    return true;
  }

  private void receive(Game game) {
    if (game.hasRuleset()) {
      lasting =
          Game.newBuilder()
              .setRuleset(game.getRuleset())
              .setSettings(game.getSettings())
              .setVisibilityValue(game.getVisibilityValue())
              .putAllLabels(game.getLabelsMap())
              .build();
    }
    resumeAfter(game.getEtag());
  }

  /** Returns an update that was received, with what only the first game of a stream has. */
  WatchGameResponse completed(WatchGameResponse response) {
    if (!response.hasGame() || response.getGame().hasRuleset()) {
      return response;
    }
    return response.toBuilder().setGame(response.getGame().toBuilder().mergeFrom(lasting)).build();
  }

  /** Returns the delay before the next stream after one has ended, or nothing if the watch ends with it. */
  Optional<Duration> delayAfter(Status status, Metadata trailers) {
    if (closing != null) {
      Duration delay = longer(closing, Connection.FIRST_DELAY);
      closing = null;
      return Optional.of(delay);
    }
    ErrorReason reason = Refusals.detail(trailers, Refusal.class).map(Refusal::getReason).orElse(null);
    if (reason == ErrorReason.HISTORY_UNAVAILABLE && !request.getEtag().isEmpty()) {
      resumeAfter(""); // the stream begins with a snapshot
      return Optional.of(Duration.ZERO);
    }
    if (!isLost(status.getCode(), reason)) {
      return Optional.empty();
    }
    Duration asked =
        Refusals.detail(trailers, RetryInfo.class).map(info -> duration(info.getRetryDelay())).orElse(Duration.ZERO);
    Duration delay = longer(Connection.backoff(failures++), asked);
    return Optional.of(delay).filter(found -> found.compareTo(patienceLeft()) <= 0);
  }

  /** Returns whether an error is that of a connection or a server which may be back soon. */
  private static boolean isLost(Status.Code code, ErrorReason reason) {
    if (reason == ErrorReason.OVERLOADED || reason == ErrorReason.REQUEST_TIMED_OUT) {
      return true;
    }
    return switch (code) {
      case UNAVAILABLE -> true;
      case CANCELLED, INTERNAL, UNKNOWN -> reason == null; // a broken transport: the server itself states a reason
      default -> false;
    };
  }

  private void resumeAfter(String etag) {
    request = request.toBuilder().setEtag(etag).build();
  }

  private static Duration duration(com.google.protobuf.Duration value) {
    return Duration.ofSeconds(value.getSeconds(), value.getNanos());
  }

  private static Duration longer(Duration one, Duration other) {
    return one.compareTo(other) > 0 ? one : other;
  }
}
