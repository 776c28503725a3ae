// The position of a watch, and when it reconnects: without I/O and clock.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "rummikub/error.hpp"
#include "rummikub/v1/game_service.pb.h"

namespace rummikub {

class WatchPosition {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  // `patience` is how long to reconnect without success.
  WatchPosition(const v1::WatchGameRequest& request, Milliseconds patience);

  // Returns the request that continues after the last update.
  const v1::WatchGameRequest& request() const { return request_; }

  // Moves past an update, and returns whether it is for the caller. Heartbeats, the announcement of the end, repeated
  // changes, and updates of a newer server are not.
  bool receive(const v1::WatchGameResponse& response);

  // Gives the game of an update that was received what only the first game of a stream has.
  void complete(v1::WatchGameResponse& response) const;

  // Returns the delay before the next attempt after a stream ended with OK; nothing at the end of the game.
  std::optional<Milliseconds> delay_after_end();

  // Returns the delay before the next attempt after an error; nothing if the watch cannot continue.
  std::optional<Milliseconds> delay_after(const Error& error, Clock::time_point now);

  // Returns how much of the patience is left.
  Milliseconds patience_left(Clock::time_point now) const;

 private:
  void receive_game(const v1::Game& game);

  v1::WatchGameRequest request_;
  Milliseconds patience_;
  std::uint32_t changed_to_ = 0;
  v1::Game lasting_;  // what never changes, which only the first game of a stream has
  std::optional<Clock::time_point> lost_at_;
  int attempts_ = 0;
  std::optional<Milliseconds> closing_delay_;
};

}  // namespace rummikub
