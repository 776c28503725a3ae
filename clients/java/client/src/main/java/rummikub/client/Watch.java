package rummikub.client;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.SynchronizationContext;
import io.grpc.SynchronizationContext.ScheduledHandle;
import java.time.Duration;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import rummikub.v1.Game;
import rummikub.v1.GameServiceGrpc;
import rummikub.v1.WatchGameRequest;
import rummikub.v1.WatchGameResponse;

/**
 * The updates of a game, in order and each once, over as many streams as it takes.
 *
 * <pre>{@code
 * try (Watch watch = client.watch(request)) {
 *   for (WatchGameResponse update : watch) { ... }
 * }
 * }</pre>
 *
 * <p>A lost connection, a stopping server and a lost history are handled: the watch reconnects and resumes with the etag
 * of the last update, or starts over with a snapshot. Heartbeats, {@code Closing} and unknown updates are passed
 * over. The watch ends with the game (until_rematch: with its rematch), or with an error: a refusal, or the last failure when
 * the patience is over. Time that the caller spends on an update counts as neither silence nor patience.
 *
 * <p>Read a watch in one way: as an {@code Iterable}, with {@link #forEachAsync}, or with {@link #next}.
 */
public final class Watch implements Iterable<WatchGameResponse>, AutoCloseable {
  private final Connection connection;
  private final Channel channel;
  private final WatchOptions options;
  private final WatchPosition position;

  /** Runs one task at a time. All fields below, and the position, belong to it. */
  private final SynchronizationContext events = new SynchronizationContext(this::fail);

  private ClientCall<WatchGameRequest, WatchGameResponse> call; // null between streams
  private StatusRuntimeException ended; // how the last stream ended, until the caller waits for the next update
  private CompletableFuture<Optional<WatchGameResponse>> waiting; // null while the caller does something else
  private ScheduledHandle timer; // of silence or of a reconnection; null if neither is near
  private boolean isSilent;
  private boolean isClosed;

  Watch(Connection connection, Channel channel, WatchGameRequest request, WatchOptions options) {
    this.connection = connection;
    this.channel = channel;
    this.options = options;
    position = new WatchPosition(request, options.patience(), System::nanoTime);
  }

  /** Returns the whole game that an update has; empty for other updates. */
  static Optional<Game> game(WatchGameResponse update) {
    return switch (update.getUpdateCase()) {
      case SNAPSHOT -> Optional.of(update.getSnapshot());
      case GAME -> Optional.of(update.getGame());
      default -> Optional.empty();
    };
  }

  /**
   * Returns the next update, without blocking; empty at the end. Ask for it only after the last one has come. To cancel the
   * future closes the watch.
   */
  public CompletableFuture<Optional<WatchGameResponse>> next() {
    var future = new CompletableFuture<Optional<WatchGameResponse>>();
    future.whenComplete((update, error) -> {
      if (future.isCancelled()) {
        close();
      }
    });
    events.execute(() -> await(future));
    return future;
  }

  /**
   * Calls an action with each update, on a thread of the connection. Returns a future that completes with the end, or with
   * the error, of the watch. An exception of the action closes the watch.
   */
  public CompletableFuture<Void> forEachAsync(Consumer<? super WatchGameResponse> action) {
    var done = new CompletableFuture<Void>();
    passOn(action, done);
    return done;
  }

  /** Returns a blocking iterator, which throws a {@link StatusRuntimeException} if the watch ends with an error. */
  @Override
  public Iterator<WatchGameResponse> iterator() {
    return new Iterator<>() {
      private Optional<WatchGameResponse> found = null; // null: ask for it

      @Override
      public boolean hasNext() {
        if (found == null) {
          found = join(Watch.this.next());
        }
        return found.isPresent();
      }

      @Override
      public WatchGameResponse next() {
        if (!hasNext()) {
          throw new NoSuchElementException("the watch has ended");
        }
        WatchGameResponse update = found.get();
        found = null;
        return update;
      }
    };
  }

  /** Ends the watch. A caller that waits for an update gets the end. */
  @Override
  public void close() {
    events.execute(() -> end(null));
  }

  private Optional<WatchGameResponse> join(CompletableFuture<Optional<WatchGameResponse>> future) {
    try {
      return future.get();
    } catch (ExecutionException error) {
      Throwable cause = error.getCause();
      throw Status.fromThrowable(cause).withCause(cause).asRuntimeException(Status.trailersFromThrowable(cause));
    } catch (InterruptedException error) {
      close();
      Thread.currentThread().interrupt();
      throw Status.CANCELLED.withDescription("the thread was interrupted").withCause(error).asRuntimeException();
    }
  }

  private void passOn(Consumer<? super WatchGameResponse> action, CompletableFuture<Void> done) {
    next().whenComplete((update, error) -> {
      if (error != null) {
        done.completeExceptionally(error);
      } else if (update.isEmpty()) {
        done.complete(null);
      } else {
        try {
          action.accept(update.get());
          passOn(action, done);
        } catch (RuntimeException thrown) {
          close();
          done.completeExceptionally(thrown);
        }
      }
    });
  }

  private void await(CompletableFuture<Optional<WatchGameResponse>> future) {
    if (waiting != null) {
      future.completeExceptionally(new IllegalStateException("the last update has not come yet"));
      return;
    }
    waiting = future;
    position.restartPatience();
    if (isClosed) {
      end(null);
    } else if (ended != null) {
      reconnect();
    } else if (call == null) {
      open();
    } else {
      receive(options.silence());
    }
  }

  /** Asks the stream for a message, and ends the stream if none comes in time. */
  private void receive(Duration quiet) {
    call.request(1);
    schedule(quiet, () -> {
      isSilent = true;
      call.cancel("the server has sent nothing in time", null);
    });
  }

  private void open() {
    isSilent = false;
    call = channel.newCall(GameServiceGrpc.getWatchGameMethod(), CallOptions.DEFAULT);
    call.start(new Listener(call), new Metadata());
    call.sendMessage(position.request());
    call.halfClose();
    Duration left = position.patienceLeft();
    receive(left.compareTo(options.silence()) < 0 ? left : options.silence());
  }

  /** Opens another stream after the delay that the end of the last one calls for, or ends the watch. */
  private void reconnect() {
    StatusRuntimeException cause = ended;
    ended = null;
    Optional<Duration> delay =
        connection.channel().isShutdown()
            ? Optional.empty()
            : position.delayAfter(cause.getStatus(), cause.getTrailers());
    if (delay.isEmpty()) {
      end(cause.getStatus().isOk() ? null : cause);
    } else {
      options.onReconnect().accept(cause, delay.get());
      schedule(delay.get(), this::open);
    }
  }

  private void end(Throwable error) {
    isClosed = true;
    stopTimer();
    if (call != null) {
      call.cancel("the watch is closed", null);
      call = null;
    }
    CompletableFuture<Optional<WatchGameResponse>> future = waiting;
    waiting = null;
    if (future != null && error != null) {
      future.completeExceptionally(error);
    } else if (future != null) {
      future.complete(Optional.empty());
    }
  }

  private void schedule(Duration delay, Runnable task) {
    timer = events.schedule(task, delay.toNanos(), TimeUnit.NANOSECONDS, connection.timer());
  }

  private void stopTimer() {
    if (timer != null) {
      timer.cancel();
      timer = null;
    }
  }

  /** Ends the watch with an exception of a task, such as one that the caller's onReconnect throws. */
  private void fail(Thread thread, Throwable error) {
    end(error);
  }

  /** Passes on what happens to one stream, unless the watch has left it. */
  private final class Listener extends ClientCall.Listener<WatchGameResponse> {
    private final ClientCall<WatchGameRequest, WatchGameResponse> stream;

    Listener(ClientCall<WatchGameRequest, WatchGameResponse> stream) {
      this.stream = stream;
    }

    @Override
    public void onMessage(WatchGameResponse update) {
      events.execute(() -> {
        if (call != stream || isSilent) {
          return;
        }
        stopTimer();
        if (position.receive(update)) {
          CompletableFuture<Optional<WatchGameResponse>> future = waiting;
          waiting = null;
          future.complete(Optional.of(position.completed(update)));
        } else {
          receive(options.silence());
        }
      });
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      events.execute(() -> {
        if (call != stream) {
          return;
        }
        stopTimer();
        call = null;
        Status cause = isSilent ? Status.UNAVAILABLE.withDescription(status.getDescription()) : status;
        ended = cause.asRuntimeException(trailers);
        if (waiting != null) {
          reconnect();
        }
      });
    }
  }
}
