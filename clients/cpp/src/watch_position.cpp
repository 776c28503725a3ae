#include "rummikub/watch_position.hpp"

#include <algorithm>
#include <random>

namespace rummikub {

namespace {

using namespace std::chrono_literals;

constexpr WatchPosition::Milliseconds shortest_delay = 200ms;
constexpr WatchPosition::Milliseconds longest_delay = 5s;

// Returns whether another stream may work after an error.
bool is_lost(const Error& error) {
  switch (error.code) {
    case grpc::StatusCode::UNAVAILABLE:
      return true;
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNKNOWN:  // a broken transport, if the service has not given a reason
      if (error.reason == v1::ERROR_REASON_UNSPECIFIED) return true;
      [[fallthrough]];
    default:
      return error.reason == v1::OVERLOADED || error.reason == v1::REQUEST_TIMED_OUT;
  }
}

// Returns a random part of a delay, at least half, so that not all clients return at the same moment.
WatchPosition::Milliseconds jittered(WatchPosition::Milliseconds delay) {
  std::random_device chance;
  std::uniform_int_distribution<WatchPosition::Milliseconds::rep> part(delay.count() / 2, delay.count());
  return WatchPosition::Milliseconds(part(chance));
}

}  // namespace

WatchPosition::WatchPosition(const v1::WatchGameRequest& request, Milliseconds patience)
    : request_(request), patience_(patience) {}

bool WatchPosition::receive(const v1::WatchGameResponse& response) {
  lost_at_.reset();
  attempts_ = 0;
  switch (response.update_case()) {
    case v1::WatchGameResponse::kSnapshot:
      changed_to_ = response.snapshot().revision();
      receive_game(response.snapshot());
      return true;
    case v1::WatchGameResponse::kGame:
      receive_game(response.game());
      return true;
    case v1::WatchGameResponse::kChange: {
      const auto revision = response.change().revision();
      const bool is_new = revision > changed_to_;
      changed_to_ = std::max(revision, changed_to_);
      // With BOTH the game that follows is the position, because the server does not send a game for a change that the
      // caller has seen.
      if (request_.content() != v1::WATCH_CONTENT_BOTH) request_.set_etag(response.change().etag());
      return is_new;
    }
    case v1::WatchGameResponse::kClosing: {
      const auto& delay = response.closing().retry_delay();
      closing_delay_ = std::max(shortest_delay, Milliseconds(delay.seconds() * 1000 + delay.nanos() / 1'000'000));
      return false;
    }
    case v1::WatchGameResponse::kDraft:
    case v1::WatchGameResponse::kPresence:
      return true;
    default:
      return false;
  }
}

std::optional<WatchPosition::Milliseconds> WatchPosition::delay_after_end() {
  const auto delay = closing_delay_;
  closing_delay_.reset();
  return delay;
}

std::optional<WatchPosition::Milliseconds> WatchPosition::delay_after(const Error& error, Clock::time_point now) {
  closing_delay_.reset();
  if (error.reason == v1::HISTORY_UNAVAILABLE && !request_.etag().empty()) {
    request_.clear_etag();  // the stream begins with a snapshot
    return 0ms;
  }
  if (!is_lost(error)) return std::nullopt;
  if (!lost_at_) lost_at_ = now;
  const auto delay =
      std::max(jittered(std::min(shortest_delay * (1 << std::min(attempts_, 10)), longest_delay)), error.retry_delay);
  ++attempts_;
  if (delay > patience_left(now)) return std::nullopt;
  return delay;
}

WatchPosition::Milliseconds WatchPosition::patience_left(Clock::time_point now) const {
  if (!lost_at_) return patience_;
  return std::max(0ms, patience_ - std::chrono::duration_cast<Milliseconds>(now - *lost_at_));
}

void WatchPosition::complete(v1::WatchGameResponse& response) const {
  if (response.has_game() && !response.game().has_ruleset()) response.mutable_game()->MergeFrom(lasting_);
}

void WatchPosition::receive_game(const v1::Game& game) {
  if (game.has_ruleset()) {
    *lasting_.mutable_ruleset() = game.ruleset();
    *lasting_.mutable_settings() = game.settings();
    lasting_.set_visibility(game.visibility());
    *lasting_.mutable_labels() = game.labels();
  }
  request_.set_etag(game.etag());
}

}  // namespace rummikub
