#include "rummikub/watch_position.hpp"

#include "check.hpp"
#include "scripted.hpp"

using rummikub::Error;
using rummikub::WatchPosition;

namespace {

v1::WatchGameRequest request(unsigned after = 0, v1::WatchContent content = v1::WATCH_CONTENT_UNSPECIFIED) {
  v1::WatchGameRequest made;
  if (after) made.set_etag(etag(after));
  made.set_content(content);
  return made;
}

Error error(grpc::StatusCode code, v1::ErrorReason reason = v1::ERROR_REASON_UNSPECIFIED) {
  return Error("WatchGame", reason ? refused(code, reason) : grpc::Status(code, "lost"));
}

const WatchPosition::Clock::time_point now{};

}  // namespace

TEST(position_follows_updates) {
  WatchPosition position(request(), 60s);
  CHECK(position.receive(snapshot(3)));
  CHECK_EQUAL(position.request().etag(), etag(3));
  CHECK(position.receive(change(4)));
  CHECK_EQUAL(position.request().etag(), etag(4));
  CHECK(!position.receive(change(4)));
  CHECK(!position.receive(heartbeat()));
  CHECK(!position.receive(unknown_update()));
  CHECK_EQUAL(position.request().etag(), etag(4));
}

TEST(position_of_changes_and_games_is_the_last_game) {
  WatchPosition position(request(0, v1::WATCH_CONTENT_BOTH), 60s);
  position.receive(snapshot(1));
  CHECK(position.receive(change(2)));
  CHECK_EQUAL(position.request().etag(), etag(1));
  CHECK(!position.receive(change(2)));  // repeated after a resumption
  CHECK(position.receive(game(2)));
  CHECK_EQUAL(position.request().etag(), etag(2));
}

TEST(every_game_has_what_only_the_first_one_of_a_stream_has) {
  for (const bool is_snapshot : {true, false}) {
    WatchPosition position(request(0, v1::WATCH_CONTENT_GAMES), 60s);
    auto first = is_snapshot ? snapshot(3) : game(3);
    auto& whole = is_snapshot ? *first.mutable_snapshot() : *first.mutable_game();
    whole.mutable_ruleset()->mutable_melding()->set_preset(v1::PRESET_GUIDE_A);
    whole.set_visibility(v1::VISIBILITY_PUBLIC);
    (*whole.mutable_labels())["region"] = "eu";
    position.receive(first);
    for (const unsigned revision : {4u, 5u}) {
      auto update = game(revision);
      position.receive(update);
      position.complete(update);
      CHECK_EQUAL(update.game().ruleset().melding().preset(), v1::PRESET_GUIDE_A);
      CHECK_EQUAL(update.game().visibility(), v1::VISIBILITY_PUBLIC);
      CHECK_EQUAL(update.game().labels().at("region"), "eu");
      CHECK_EQUAL(update.game().revision(), revision);
    }
  }
}

TEST(position_starts_over_once) {
  WatchPosition position(request(7), 60s);
  const auto gone = error(grpc::StatusCode::OUT_OF_RANGE, v1::HISTORY_UNAVAILABLE);
  CHECK(position.delay_after(gone, now) == 0ms);
  CHECK_EQUAL(position.request().etag(), "");
  CHECK(!position.delay_after(gone, now));
}

TEST(position_is_lost_by_some_errors) {
  const struct {
    Error error;
    bool is_lost;
  } rows[] = {
      {error(grpc::StatusCode::UNAVAILABLE), true},
      {error(grpc::StatusCode::UNAVAILABLE, v1::SHUTTING_DOWN), true},
      {error(grpc::StatusCode::CANCELLED), true},
      {error(grpc::StatusCode::INTERNAL), true},
      {error(grpc::StatusCode::UNKNOWN), true},
      {error(grpc::StatusCode::INTERNAL, v1::INTERNAL_ERROR), false},
      {error(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::OVERLOADED), true},
      {error(grpc::StatusCode::RESOURCE_EXHAUSTED), false},
      {error(grpc::StatusCode::UNAUTHENTICATED, static_cast<v1::ErrorReason>(9999)), false},
      {error(grpc::StatusCode::UNIMPLEMENTED), false},
      {error(grpc::StatusCode::NOT_FOUND, v1::GAME_NOT_FOUND), false},
  };
  for (const auto& row : rows) {
    WatchPosition position(request(), 60s);
    if (position.delay_after(row.error, now).has_value() != row.is_lost) CHECK_EQUAL(row.error.what(), std::to_string(row.is_lost));
  }
}

TEST(position_backs_off_until_patience_ends) {
  WatchPosition position(request(), 10s);
  const auto lost = error(grpc::StatusCode::UNAVAILABLE);
  auto longest = 200ms;
  for (int i = 0; i < 8; ++i) {
    const auto delay = position.delay_after(lost, now);
    CHECK(delay && *delay >= longest / 2 && *delay <= longest);
    longest = std::min(longest * 2, 5000ms);
  }
  CHECK(position.delay_after(lost, now + 4s).has_value());
  CHECK(position.patience_left(now + 4s) == 6s);
  CHECK(!position.delay_after(lost, now + 10s));
  position.receive(heartbeat());
  CHECK(position.patience_left(now + 20s) == 10s);
  CHECK(*position.delay_after(lost, now + 20s) <= 200ms);
}

TEST(position_waits_as_long_as_the_service_asks) {
  const Error overloaded("WatchGame", refused(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::OVERLOADED, 3s));
  CHECK(WatchPosition(request(), 60s).delay_after(overloaded, now) == 3s);
  CHECK(!WatchPosition(request(), 2s).delay_after(overloaded, now));
}

TEST(position_ends_without_closing) {
  WatchPosition position(request(), 60s);
  position.receive(snapshot(1));
  CHECK(!position.delay_after_end());
  CHECK(!position.receive(closing()));
  CHECK(position.delay_after_end() == 300ms);
  CHECK(!position.delay_after_end());
}
