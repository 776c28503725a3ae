#include <fstream>
#include <regex>
#include <thread>

#include "check.hpp"
#include "scripted.hpp"

using rummikub::Client;
using rummikub::Error;

namespace {

grpc::Status answered() { return grpc::Status::OK; }

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string read(const std::string& path) { return read_file(SOURCES "/" + path); }

}  // namespace

TEST(service_config_is_the_shared_one) { CHECK_EQUAL(rummikub::service_config, read("../service_config.json")); }

TEST(every_rpc_is_a_method) {
  const auto header = read_file(GENERATED "/rummikub/services.hpp");
  for (const auto* file : {v1::CreateGameRequest::descriptor()->file(), v1::PlayTurnRequest::descriptor()->file(),
                           v1::ValidateTurnRequest::descriptor()->file(), v1::SuggestTurnRequest::descriptor()->file(),
                           v1::ExportGameRequest::descriptor()->file()}) {
    const auto* service = file->service(0);
    for (int i = 0; i < service->method_count(); ++i) {
      const auto name = std::string(service->method(i)->name());
      if (name != "WatchGame") CHECK_CONTAINS(header, " " + name + "(");
    }
  }
}

TEST(request_ids_are_uuids) {
  const std::regex uuid("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  CHECK(std::regex_match(rummikub::new_request_id(), uuid));
  CHECK(rummikub::new_request_id() != rummikub::new_request_id());
}

TEST(retries_have_one_request_id) {
  ScriptedServer server;
  server.joins = {[] { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the answer is lost"); }, answered};
  const auto client = Client(server.target()).seated("secret");
  v1::JoinGameRequest request;
  client.games.JoinGame(request);
  auto joined = server.joined();
  CHECK_EQUAL(joined.size(), 2u);
  CHECK_EQUAL(joined[0].request_id(), joined[1].request_id());
  CHECK_EQUAL(joined[0].request_id().size(), 36u);
  CHECK_EQUAL(request.request_id(), "");
  CHECK(server.tokens() == (std::vector<std::string>{"Bearer secret", "Bearer secret"}));
  client.games.JoinGame(request);
  CHECK(server.joined()[2].request_id() != joined[0].request_id());
  request.set_request_id("my own");
  client.games.JoinGame(request);
  CHECK_EQUAL(server.joined()[3].request_id(), "my own");
}

TEST(retries_are_throttled) {
  ScriptedServer server;
  server.joins = {[] { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "always"); }};
  const Client client(server.target());
  std::vector<std::thread> callers;
  for (int i = 0; i < 100; ++i) {
    callers.emplace_back([&client] { thrown<Error>([&client] { client.games.JoinGame({}); }); });
  }
  for (auto& caller : callers) caller.join();
  const auto attempts = server.joined().size();
  CHECK(attempts > 250 && attempts < 350);  // the first 249 failures are retried; without throttling, 400 are
}

TEST(a_call_waits_for_a_server_that_starts) {
  const int port = ScriptedServer().port();
  std::thread caller([port] { Client("127.0.0.1:" + std::to_string(port)).games.JoinGame({}); });
  std::this_thread::sleep_for(500ms);
  ScriptedServer server(port);
  server.joins = {answered};
  caller.join();
  CHECK_EQUAL(server.joined().size(), 1u);
}

TEST(refusals_are_typed) {
  ScriptedServer server;
  server.joins = {[] { return refused(grpc::StatusCode::ABORTED, v1::STALE_STATE, 3s); }};
  const auto error = thrown<Error>([&server] { Client(server.target()).games.JoinGame({}); });
  CHECK_EQUAL(error.method, "JoinGame");
  CHECK_EQUAL(error.code, grpc::StatusCode::ABORTED);
  CHECK_EQUAL(error.reason, v1::STALE_STATE);
  CHECK_EQUAL(error.metadata.at("revision"), "7");
  CHECK_EQUAL(error.violations.at(0).subject(), "play.table[0]");
  CHECK_EQUAL(error.fields.at(0), "ruleset.melding.deal.players_min");
  CHECK(error.retry_delay == 3s);
  CHECK_EQUAL(std::string(error.what()),
              "rummikub: JoinGame: STALE_STATE: refused; read the game again with GetGame, and let the player decide again");
}

TEST(an_unknown_reason_keeps_its_number) {
  ScriptedServer server;
  server.joins = {[] { return refused(grpc::StatusCode::ABORTED, static_cast<v1::ErrorReason>(9999)); }};
  const auto error = thrown<Error>([&server] { Client(server.target()).games.JoinGame({}); });
  CHECK_EQUAL(static_cast<int>(error.reason), 9999);
  CHECK_CONTAINS(error.what(), "JoinGame: 9999: refused; the service is newer than this client");
}

TEST(details_of_another_kind_are_passed_over) {
  const Error error("JoinGame", {grpc::StatusCode::PERMISSION_DENIED, "no", "<html>not a message</html>"});
  CHECK_EQUAL(std::string(error.what()), "rummikub: JoinGame: PERMISSION_DENIED: no");
}

TEST(an_old_server_is_explained) {
  ScriptedServer server;
  const auto error = thrown<Error>([&server] { Client(server.target()).games.ListGames({}); });
  CHECK_EQUAL(error.code, grpc::StatusCode::UNIMPLEMENTED);
  CHECK_CONTAINS(error.what(), "does not have this call: update the service");
}

TEST(the_code_of_the_page_shows_what_to_do) {
  const v1::GetGameRequest request;
  const std::string game;
  std::string shown;
  const auto show = [&shown](const std::string& text) { shown += text; };
  const auto forget = show;
  ScriptedServer server;
  const Client lobby(server.target());
  try {
    lobby.games.GetGame(request);
  } catch (const rummikub::Error& error) {
    if (error.reason == rummikub::v1::GAME_NOT_FOUND) forget(game);  // it has expired
    for (const auto& violation : error.violations) show(violation.text());  // every violation of an illegal turn
    show(error.what());  // ... no service answers at 127.0.0.1:50051; start one with `make run` ...
  }
  CHECK_CONTAINS(shown, "update the service");
}

TEST(an_absent_server_is_explained) {
  const Client client("127.0.0.1:1");
  const auto error = thrown<Error>([&client] { client.games.ListGames({}, {300ms}); });
  CHECK_EQUAL(error.code, grpc::StatusCode::DEADLINE_EXCEEDED);
  CHECK_CONTAINS(error.what(), "no service answers at 127.0.0.1:1; start one with `make run`");
}

TEST(a_slow_server_is_explained) {
  ScriptedServer server;
  server.joins = {[] {
    std::this_thread::sleep_for(400ms);
    return grpc::Status::OK;
  }};
  const auto error = thrown<Error>([&server] { Client(server.target()).games.JoinGame({}, {200ms}); });
  CHECK_CONTAINS(error.what(), "did not answer in time");
}

TEST(a_call_is_cancelled_by_its_context) {
  ScriptedServer server;
  server.joins = {[] {
    std::this_thread::sleep_for(400ms);
    return grpc::Status::OK;
  }};
  grpc::ClientContext context;
  std::thread other([&context] {
    std::this_thread::sleep_for(100ms);
    context.TryCancel();
  });
  const auto error = thrown<Error>([&] { Client(server.target()).games.JoinGame({}, {{}, &context}); });
  other.join();
  CHECK_EQUAL(error.code, grpc::StatusCode::CANCELLED);
}

TEST(a_token_that_cannot_be_sent_is_refused) {
  const Client client("127.0.0.1:1");
  for (const auto* token : {"a\nb", "\xc3\xa9"}) {
    CHECK_CONTAINS(thrown<std::invalid_argument>([&] { client.seated(token); }).what(), "visible ASCII");
  }
}

TEST(every_fifty_streams_have_a_channel_and_those_that_end_make_room) {
  const auto connect = [] { return grpc::CreateChannel("127.0.0.1:1", grpc::InsecureChannelCredentials()); };
  rummikub::Channels channels(connect);
  std::vector<std::shared_ptr<grpc::Channel>> held;
  for (int i = 0; i < 50; ++i) held.push_back(channels.enter());
  CHECK(held.back().get() == channels.first().get());
  const auto second = channels.enter();
  CHECK(second.get() != channels.first().get());
  CHECK(channels.enter().get() == second.get());
  held.pop_back();
  CHECK(channels.enter().get() == channels.first().get());
}
