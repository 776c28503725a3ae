#include "rummikub/watch.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "rummikub/calls.hpp"
#include "rummikub/v1/game_service.grpc.pb.h"
#include "rummikub/watch_position.hpp"

namespace rummikub {

namespace detail {

// One call of WatchGame. All but cancel() belongs to one thread.
class WatchStream {
 public:
  WatchStream(const Connection& connection, const v1::WatchGameRequest& request)
      : channel_(connection.channels()->enter()), stub_(v1::GameService::NewStub(channel_)) {
    connection.prepare(context_);
    // The channel connects with a backoff of its own. A call that fails at once would see its last failure, not the server.
    context_.set_wait_for_ready(true);
    reader_ = stub_->PrepareAsyncWatchGame(&context_, request, &queue_);
    reader_->StartCall(nullptr);
  }
  WatchStream(const WatchStream&) = delete;
  WatchStream& operator=(const WatchStream&) = delete;
  ~WatchStream() {
    context_.TryCancel();
    if (is_starting_) wait();
    if (!is_finished_) finish();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  // Reads an update; returns the status if the stream has ended instead. Cancels the call after the silence, or earlier if
  // the channel has no connection, so that the caller notices.
  std::optional<grpc::Status> read(v1::WatchGameResponse& update, std::chrono::milliseconds silence) {
    const auto deadline = std::chrono::system_clock::now() + silence;
    bool ok = true;
    if (is_starting_) {
      ok = wait_or_cancel(deadline);
      is_starting_ = false;
    }
    if (ok) {
      reader_->Read(&update, nullptr);
      ok = wait_or_cancel(deadline);
    }
    if (ok) return std::nullopt;
    const auto status = finish();
    return problem_.empty() ? status : grpc::Status(grpc::StatusCode::UNAVAILABLE, problem_);
  }

  void cancel() { context_.TryCancel(); }

 private:
  static constexpr std::chrono::milliseconds connect_limit = std::chrono::seconds(5);

  // Waits for the pending operation, which is cancelled after the deadline, and returns whether it succeeded.
  bool wait_or_cancel(std::chrono::system_clock::time_point deadline) {
    while (problem_.empty()) {
      void* tag = nullptr;
      bool ok = false;
      const auto soon = std::min(deadline, std::chrono::system_clock::now() + connect_limit);
      if (queue_.AsyncNext(&tag, &ok, soon) == grpc::CompletionQueue::GOT_EVENT) return ok;
      const auto state = channel_->GetState(false);
      if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_CONNECTING) {
        problem_ = "there is no connection";
      } else if (soon == deadline) {
        problem_ = "the stream is silent";
      }
    }
    context_.TryCancel();
    return wait();
  }

  // Waits for the pending operation, and returns whether it succeeded.
  bool wait() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    return ok;
  }

  grpc::Status finish() {
    grpc::Status status;
    reader_->Finish(&status, nullptr);
    wait();
    is_finished_ = true;
    return status;
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::GameService::Stub> stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::WatchGameResponse>> reader_;
  bool is_starting_ = true;
  std::string problem_;  // why this side has cancelled the call
  bool is_finished_ = false;
};

}  // namespace detail

using detail::WatchStream;

struct Watch::State {
  State(std::shared_ptr<const Connection> shared, const v1::WatchGameRequest& request, WatchOptions given)
      : connection(std::move(shared)),
        position(request, given.patience),
        options(std::move(given)) {}

  // Returns the stream, a new one if there is none; null if the watch has ended.
  WatchStream* connected() {
    const std::lock_guard lock(mutex);
    if (has_ended) return nullptr;
    if (!stream) stream = std::make_unique<WatchStream>(*connection, position.request());
    return stream.get();
  }

  void disconnect() {
    std::unique_ptr<WatchStream> old;
    const std::lock_guard lock(mutex);
    old.swap(stream);
  }

  void end() {
    const std::lock_guard lock(mutex);
    has_ended = true;
    if (stream) stream->cancel();
    changed.notify_all();
  }

  bool is_over() {
    const std::lock_guard lock(mutex);
    return has_ended;
  }

  // Waits before the next attempt after a stream has ended. Ends the watch if it cannot continue.
  void after(const grpc::Status& status) {
    std::optional<Error> error;
    if (!status.ok()) error = connection->error("WatchGame", status);
    const auto delay =
        error ? position.delay_after(*error, WatchPosition::Clock::now()) : position.delay_after_end();
    if (!delay) {
      end();
      if (error) throw *error;
      return;
    }
    if (options.on_reconnect) options.on_reconnect(error ? &*error : nullptr, *delay);
    std::unique_lock lock(mutex);
    changed.wait_for(lock, *delay, [this] { return has_ended; });
  }

  std::shared_ptr<const Connection> connection;
  WatchPosition position;
  WatchOptions options;

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::unique_ptr<WatchStream> stream;
  bool has_ended = false;
};

Watch::Watch(std::shared_ptr<const Connection> connection, const v1::WatchGameRequest& request, WatchOptions options)
    : state_(std::make_unique<State>(std::move(connection), request, std::move(options))) {}
Watch::Watch(Watch&&) noexcept = default;
Watch& Watch::operator=(Watch&&) noexcept = default;
Watch::~Watch() = default;

std::optional<v1::WatchGameResponse> Watch::next() {
  auto& state = *state_;
  while (auto* stream = state.connected()) {
    v1::WatchGameResponse update;
    const auto quiet = std::min(state.options.silence, state.position.patience_left(WatchPosition::Clock::now()));
    const auto ended = stream->read(update, quiet);
    if (!ended) {
      if (!state.position.receive(update)) continue;
      state.position.complete(update);
      return update;
    }
    state.disconnect();
    if (!state.is_over()) state.after(*ended);
  }
  state.disconnect();
  return std::nullopt;
}

void Watch::cancel() { state_->end(); }

std::optional<v1::Game> GameWatch::next() {
  while (auto update = watch_.next()) {
    if (update->has_snapshot()) return std::move(*update->mutable_snapshot());
    if (update->has_game()) return std::move(*update->mutable_game());
  }
  return std::nullopt;
}

}  // namespace rummikub
