// The updates of a game, over as many streams as it takes.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "rummikub/error.hpp"
#include "rummikub/v1/game_service.pb.h"

namespace rummikub {

class Connection;

struct WatchOptions {
  // How long the watch reconnects without success before next() throws the last error.
  std::chrono::milliseconds patience = std::chrono::seconds(60);
  // After which silence a connection counts as lost. The server sends a heartbeat every 15 seconds.
  std::chrono::milliseconds silence = std::chrono::seconds(40);
  // Called in next() before each reconnection, with the delay before it and its cause: null if the server is stopping.
  std::function<void(const Error* cause, std::chrono::milliseconds delay)> on_reconnect = nullptr;
};

// Iterates over what next() of a source returns.
template <typename Source, typename Value>
class NextIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Value;
  using difference_type = std::ptrdiff_t;
  using pointer = const value_type*;
  using reference = const value_type&;

  NextIterator() = default;
  explicit NextIterator(Source* source) : source_(source) { ++*this; }
  reference operator*() const { return *value_; }
  pointer operator->() const { return &*value_; }
  NextIterator& operator++() {
    value_ = source_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  bool operator==(const NextIterator& other) const { return value_.has_value() == other.value_.has_value(); }
  bool operator!=(const NextIterator& other) const { return !(*this == other); }

 private:
  Source* source_ = nullptr;
  std::optional<value_type> value_;
};

// The updates of a game, in order and each once. The watch reconnects and resumes after a lost connection, when the server
// stops, and after silence; if the server does not have the changes since, the next update is a snapshot. Heartbeats and
// updates of a newer server are passed over. It begins with the first next(), ends with the game (until_rematch: with its
// rematch) or with cancel(), and has no deadline. Time between two calls of next() counts as neither silence nor patience.
//
//   for (const auto& update : client.watch(game_id)) { ... }
class Watch {
 public:
  Watch(std::shared_ptr<const Connection> connection, const v1::WatchGameRequest& request, WatchOptions options);
  Watch(Watch&&) noexcept;
  Watch& operator=(Watch&&) noexcept;
  // Closes the stream. No thread may be in next().
  ~Watch();

  // Waits for the next update and returns it; nothing at the end. Throws Error if the watch cannot continue, and returns
  // nothing from then on. One thread at a time.
  std::optional<v1::WatchGameResponse> next();

  // Ends the watch, also from another thread, whose next() then returns nothing.
  void cancel();

  using Iterator = NextIterator<Watch, v1::WatchGameResponse>;
  Iterator begin() { return Iterator(this); }
  Iterator end() { return {}; }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A game as it is now and after every change. For the rest, it is a Watch.
//
//   for (const auto& game : client.watch_games(game_id)) { ... }
class GameWatch {
 public:
  explicit GameWatch(Watch watch) : watch_(std::move(watch)) {}

  // Waits for the next change and returns the game after it; nothing at the end.
  std::optional<v1::Game> next();

  // Ends the watch, as Watch::cancel() does.
  void cancel() { watch_.cancel(); }

  using Iterator = NextIterator<GameWatch, v1::Game>;
  Iterator begin() { return Iterator(this); }
  Iterator end() { return {}; }

 private:
  Watch watch_;
};

}  // namespace rummikub
