package rummikub.client;

import io.grpc.ConnectivityState;
import io.grpc.ManagedChannel;
import java.time.Duration;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.ThreadPoolExecutor.DiscardPolicy;
import java.util.concurrent.TimeUnit;

/**
 * A channel that reconnects after at most 5 seconds, and a timer. The backoff of gRPC for Java grows to two minutes, longer
 * than the deadlines of calls and the patience of watches, and has no setting.
 */
final class Connection implements AutoCloseable {
  static final Duration FIRST_DELAY = Duration.ofMillis(200);
  static final Duration LAST_DELAY = Duration.ofSeconds(5);

  private final ManagedChannel channel;
  private final ScheduledThreadPoolExecutor timer;
  private int failures;

  Connection(ManagedChannel channel) {
    this.channel = channel;
    timer = new ScheduledThreadPoolExecutor(1, Connection::daemon, new DiscardPolicy());
    timer.setRemoveOnCancelPolicy(true); // else a canceled timer holds its watch until its time
    followState();
  }

  ManagedChannel channel() {
    return channel;
  }

  ScheduledExecutorService timer() {
    return timer;
  }

  /** Returns whether there is no connection to a server, and an attempt to connect is in progress or has failed. */
  boolean isAbsent() {
    ConnectivityState state = channel.getState(false);
    return state == ConnectivityState.TRANSIENT_FAILURE || state == ConnectivityState.CONNECTING;
  }

  @Override
  public void close() {
    channel.shutdownNow();
    timer.shutdownNow();
  }

  /** Returns a delay that doubles with each failure, with jitter. */
  static Duration backoff(int failures) {
    long longest = Math.min(FIRST_DELAY.toMillis() << Math.min(failures, 10), LAST_DELAY.toMillis());
    return Duration.ofMillis(ThreadLocalRandom.current().nextLong(longest / 2, longest + 1));
  }

  private void followState() {
    ConnectivityState state = channel.getState(false);
    if (state == ConnectivityState.TRANSIENT_FAILURE) { // the state stays so during further attempts
      timer.schedule(this::reconnect, backoff(failures++).toMillis(), TimeUnit.MILLISECONDS);
    } else if (state != ConnectivityState.SHUTDOWN) {
      failures = 0;
      channel.notifyWhenStateChanged(state, this::followState);
    }
  }

  private void reconnect() {
    channel.resetConnectBackoff();
    followState();
  }

  private static Thread daemon(Runnable task) {
    Thread thread = new Thread(task, "rummikub-client-timer");
    thread.setDaemon(true);
    return thread;
  }
}
