#include <atomic>
#include <thread>

#include "check.hpp"
#include "scripted.hpp"

using rummikub::Client;
using rummikub::Error;
using rummikub::WatchOptions;

namespace {

WatchStep sends(std::vector<v1::WatchGameResponse> updates, grpc::Status status = grpc::Status::OK) {
  return [updates, status](grpc::ServerContext&, Updates& stream) {
    for (const auto& update : updates) stream.Write(update);
    return status;
  };
}

WatchStep hangs(std::vector<v1::WatchGameResponse> updates) {
  return [updates](grpc::ServerContext& context, Updates& stream) {
    for (const auto& update : updates) stream.Write(update);
    while (!context.IsCancelled()) std::this_thread::sleep_for(10ms);
    return grpc::Status::CANCELLED;
  };
}

std::string text(const v1::WatchGameResponse& update) {
  switch (update.update_case()) {
    case v1::WatchGameResponse::kSnapshot: return "snapshot " + std::to_string(update.snapshot().revision());
    case v1::WatchGameResponse::kChange: return "change " + std::to_string(update.change().revision());
    case v1::WatchGameResponse::kGame: return "game " + std::to_string(update.game().revision());
    default: return update.DebugString();
  }
}

std::string seen(rummikub::Watch watch) {
  std::string all;
  for (const auto& update : watch) all += (all.empty() ? "" : ", ") + text(update);
  return all;
}

WatchOptions quick() {
  WatchOptions options;
  options.silence = 500ms;
  options.patience = 1s;
  return options;
}

}  // namespace

TEST(watch_resumes) {
  const grpc::Status lost(grpc::StatusCode::UNAVAILABLE, "connection reset");
  const struct {
    const char* name;
    std::vector<WatchStep> steps;
    const char* updates;
    std::vector<unsigned> resumed;
    unsigned after = 0;
    v1::WatchContent content = v1::WATCH_CONTENT_CHANGES;
  } rows[] = {
      {"an end without closing is the end", {sends({snapshot(1), change(2)})}, "snapshot 1, change 2", {0}},
      {"a cut resumes after the last change",
       {sends({snapshot(1), change(2)}, lost), sends({change(3)}, lost), sends({change(4)})},
       "snapshot 1, change 2, change 3, change 4", {0, 2, 3}},
      {"a broken transport resumes",
       {sends({snapshot(1)}, {grpc::StatusCode::CANCELLED, "RST_STREAM"}),
        sends({change(2)}, {grpc::StatusCode::INTERNAL, "RST_STREAM"}), sends({change(3)})},
       "snapshot 1, change 2, change 3", {0, 1, 2}},
      {"closing resumes", {sends({snapshot(1), closing()}), sends({change(2)})}, "snapshot 1, change 2", {0, 1}},
      {"a forgotten history starts over",
       {sends({}, refused(grpc::StatusCode::OUT_OF_RANGE, v1::HISTORY_UNAVAILABLE)), sends({snapshot(9)})},
       "snapshot 9", {7, 0}, 7},
      {"a lost history starts over with lower revisions",
       {sends({snapshot(7), change(8)}, lost),
        sends({}, refused(grpc::StatusCode::OUT_OF_RANGE, v1::HISTORY_UNAVAILABLE)),
        sends({snapshot(4), change(5)})},
       "snapshot 7, change 8, snapshot 4, change 5", {0, 8, 0}},
      {"changes and games resume after the last game",
       {sends({snapshot(1), change(2), game(2), change(3)}, lost), sends({change(3), change(4), game(4)})},
       "snapshot 1, change 2, game 2, change 3, change 4, game 4", {0, 2}, 0, v1::WATCH_CONTENT_BOTH},
      {"silence is a lost connection", {hangs({snapshot(1)}), sends({change(2)})}, "snapshot 1, change 2", {0, 1}},
      {"heartbeats and unknown updates are passed over",
       {sends({heartbeat(), unknown_update(), snapshot(1), heartbeat()})}, "snapshot 1", {0}},
  };
  for (const auto& row : rows) {
    ScriptedServer server;
    server.watches = row.steps;
    v1::WatchGameRequest request;
    if (row.after) request.set_etag(etag(row.after));
    request.set_content(row.content);
    auto options = quick();
    unsigned reconnected = 0;
    options.on_reconnect = [&reconnected](const Error*, std::chrono::milliseconds) { ++reconnected; };
    const auto updates = seen(Client(server.target()).watch(request, options));
    if (updates != row.updates) fail(std::string(row.name) + ": " + updates, __FILE__, __LINE__);
    std::vector<std::string> resumed, expected;
    for (const auto& sent : server.watched()) resumed.push_back(sent.etag());
    for (const auto revision : row.resumed) expected.push_back(revision ? etag(revision) : "");
    if (resumed != expected || reconnected != row.resumed.size() - 1) fail(row.name, __FILE__, __LINE__);
  }
}

TEST(watch_throws_a_refusal) {
  ScriptedServer server;
  server.watches = {sends({snapshot(1)}, refused(grpc::StatusCode::PERMISSION_DENIED, v1::SPECTATORS_NOT_ALLOWED))};
  auto watch = Client(server.target()).watch("id", quick());
  CHECK_EQUAL(text(*watch.next()), "snapshot 1");
  const auto error = thrown<Error>([&watch] { watch.next(); });
  CHECK_EQUAL(error.reason, v1::SPECTATORS_NOT_ALLOWED);
  CHECK(!watch.next());
  CHECK_EQUAL(server.watched().size(), 1u);
}

TEST(watch_games_returns_whole_games) {
  ScriptedServer server;
  server.watches = {sends({snapshot(1), change(2), game(3)})};
  std::vector<unsigned> revisions;
  for (const auto& game : Client(server.target()).watch_games("id", quick())) revisions.push_back(game.revision());
  CHECK(revisions == (std::vector<unsigned>{1, 3}));
  CHECK_EQUAL(server.watched()[0].content(), v1::WATCH_CONTENT_GAMES);
}

TEST(watch_gives_up) {
  ScriptedServer server;
  server.watches = {sends({}, refused(grpc::StatusCode::RESOURCE_EXHAUSTED, v1::OVERLOADED))};
  auto watch = Client(server.target()).watch("id", quick());
  CHECK_EQUAL(thrown<Error>([&watch] { watch.next(); }).reason, v1::OVERLOADED);
  CHECK(server.watched().size() >= 2);
}

TEST(watch_gives_up_without_server) {
  auto watch = Client("127.0.0.1:1").watch("id", quick());
  const auto error = thrown<Error>([&watch] { watch.next(); });
  CHECK_CONTAINS(error.what(), "no service answers at 127.0.0.1:1; start one with `make run`");
}

TEST(watch_gives_up_on_a_silent_server) {
  ScriptedServer server;
  server.watches = {hangs({})};
  const auto began = std::chrono::steady_clock::now();
  auto watch = Client(server.target()).watch("id", quick());
  CHECK_CONTAINS(thrown<Error>([&watch] { watch.next(); }).what(), "the stream is silent");
  CHECK(std::chrono::steady_clock::now() - began < 4s);
}

TEST(watch_notices_that_the_server_is_gone) {
  auto server = std::make_unique<ScriptedServer>();
  server->watches = {sends({snapshot(1), closing()})};
  WatchOptions options;
  options.patience = 2s;
  auto watch = Client(server->target()).watch("id", options);
  watch.next();
  server.reset();
  const auto began = std::chrono::steady_clock::now();
  CHECK_CONTAINS(thrown<Error>([&watch] { watch.next(); }).what(), "no service answers");
  CHECK(std::chrono::steady_clock::now() - began < 20s);
}

TEST(watch_counts_no_time_between_calls) {
  ScriptedServer server;
  server.watches = {sends({snapshot(1), change(2), change(3)})};
  WatchOptions options;
  options.patience = options.silence = 200ms;
  auto watch = Client(server.target()).watch("id", options);
  unsigned updates = 0;
  while (watch.next()) {
    ++updates;
    std::this_thread::sleep_for(400ms);
  }
  CHECK_EQUAL(updates, 3u);
  CHECK_EQUAL(server.watched().size(), 1u);
}

TEST(watch_is_cancelled_by_another_thread) {
  ScriptedServer server;
  server.watches = {hangs({snapshot(1)})};
  auto watch = Client(server.target()).watch("id");
  watch.next();
  std::thread other([&watch] {
    std::this_thread::sleep_for(100ms);
    watch.cancel();
  });
  const auto update = watch.next();
  other.join();
  CHECK(!update);
  CHECK(!watch.next());
}

TEST(watch_is_cancelled_while_it_waits) {
  auto options = quick();
  std::thread other;
  rummikub::Watch* waiting = nullptr;
  options.on_reconnect = [&](const Error*, std::chrono::milliseconds) {
    if (!other.joinable()) other = std::thread([&waiting] { waiting->cancel(); });
  };
  auto watch = Client("127.0.0.1:1").watch("id", options);
  waiting = &watch;
  const auto update = watch.next();
  other.join();
  CHECK(!update);
}

TEST(watch_is_closed_by_its_destructor) {
  ScriptedServer server;
  std::atomic<bool> is_closed = false;
  server.watches = {[&is_closed, wait = hangs({snapshot(1), change(2)})](grpc::ServerContext& context, Updates& stream) {
    const auto status = wait(context, stream);
    is_closed = true;
    return status;
  }};
  for (const auto& update : Client(server.target()).watch("id")) {
    CHECK_EQUAL(text(update), "snapshot 1");
    break;
  }
  for (int i = 0; i < 200 && !is_closed; ++i) std::this_thread::sleep_for(10ms);
  CHECK(is_closed);
}

TEST(watch_sends_the_token_and_survives_its_client) {
  ScriptedServer server;
  std::string token;
  server.watches = {[&token](grpc::ServerContext& context, Updates& stream) {
    const auto sent = context.client_metadata().find("authorization");
    if (sent != context.client_metadata().end()) token.assign(sent->second.begin(), sent->second.end());
    stream.Write(snapshot(1));
    return grpc::Status::OK;
  }};
  auto watch = std::make_unique<Client>(server.target())->seated("secret").watch("id");
  CHECK(watch.next() && !watch.next());
  CHECK_EQUAL(token, "Bearer secret");
}
