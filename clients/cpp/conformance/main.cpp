// Checks the C++ client against a live server (clients/conformance/README.md).
#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <future>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>

#include "proxy.hpp"
#include "rummikub/rummikub.hpp"

using namespace rummikub;
using namespace std::chrono_literals;
using google::protobuf::util::MessageDifferencer;

namespace {

void expect(bool ok, const std::string& what) {
  if (!ok) throw std::runtime_error(what);
}

void expect_equal(const std::string& name, const google::protobuf::Message& found, const google::protobuf::Message& expected) {
  expect(MessageDifferencer::Equals(found, expected),
         name + ": {" + found.ShortDebugString() + "} instead of {" + expected.ShortDebugString() + "}");
}

template <typename Call>
Error refused(const std::string& name, Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  throw std::runtime_error(name + " is not refused");
}

template <typename Message>
Message from_json(const google::protobuf::Message& json) {
  std::string text;
  Message message;
  expect(google::protobuf::util::MessageToJsonString(json, &text).ok() &&
             google::protobuf::util::JsonStringToMessage(text, &message).ok(), "not protojson: " + json.ShortDebugString());
  return message;
}

struct Row {
  std::string id, rpc;
  google::protobuf::Struct request, response, error;
  bool is_error;

  template <typename Request, typename Response>
  void replay(const std::function<Response(const Request&)>& call) const {
    const auto sent = from_json<Request>(request);
    if (!is_error) return expect_equal(id, call(sent), from_json<Response>(response));
    const auto found = refused(id, [&] { call(sent); });
    const auto& fields = error.fields();
    expect(code_name(found.code) == fields.at("code").string_value(), id + ": " + found.what());
    v1::Refusal refusal;
    refusal.set_reason(found.reason);
    refusal.mutable_metadata()->insert(found.metadata.begin(), found.metadata.end());
    *refusal.mutable_violations() = {found.violations.begin(), found.violations.end()};
    expect_equal(id, refusal, from_json<v1::Refusal>(fields.at("refusal").struct_value()));
    std::vector<std::string> names;
    for (const auto& name : fields.at("fields").list_value().values()) names.push_back(name.string_value());
    expect(found.fields == names, id + " names other fields: " + found.what());
  }
};

struct Turn {
  std::string id;
  v1::ValidateTurnRequest request;
  v1::ValidateTurnResponse answer;
};

std::vector<Row> read_rows(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  google::protobuf::Struct all;
  expect(google::protobuf::util::JsonStringToMessage(text, &all).ok(), path + " is not JSON");
  std::vector<Row> rows;
  for (const auto& value : all.fields().at("calls").list_value().values()) {
    auto fields = value.struct_value().fields();
    const bool is_error = fields.contains("error");
    rows.push_back({fields["id"].string_value(), fields["rpc"].string_value(), fields["request"].struct_value(),
                    fields["response"].struct_value(), fields["error"].struct_value(), is_error});
  }
  return rows;
}

class Checks {
 public:
  Checks(const std::string& target, const std::string& validation, const std::string& wire, const std::string& games)
      : target_(target), lobby_(target), validation_(Client(validation).validation), rows_(read_rows(wire)) {
    std::istringstream given(games);
    for (std::string id, token; std::getline(std::getline(given, id, ':'), token, ',');) games_.emplace_back(id, token);
  }

  void wire() {
    for (const auto& row : rows_) {
      const auto name = row.rpc.substr(row.rpc.rfind('/') + 1);
      if (name == "ValidateMelds") {
        row.replay<v1::ValidateMeldsRequest, v1::ValidateMeldsResponse>([&](const auto& sent) { return validation_.ValidateMelds(sent); });
      } else if (name == "ValidateTurn") {
        row.replay<v1::ValidateTurnRequest, v1::ValidateTurnResponse>([&](const auto& sent) { return validation_.ValidateTurn(sent); });
      } else if (name == "ValidatePlacement") {
        row.replay<v1::ValidatePlacementRequest, v1::ValidatePlacementResponse>(
            [&](const auto& sent) { return validation_.ValidatePlacement(sent); });
      } else if (name == "ValidateHand") {
        row.replay<v1::ValidateHandRequest, v1::ValidateHandResponse>([&](const auto& sent) { return validation_.ValidateHand(sent); });
      } else if (name == "ValidateDiscardTurn") {
        row.replay<v1::ValidateDiscardTurnRequest, v1::ValidateDiscardTurnResponse>(
            [&](const auto& sent) { return validation_.ValidateDiscardTurn(sent); });
      } else if (name == "ScoreRound") {
        row.replay<v1::ScoreRoundRequest, v1::ScoreRoundResponse>([&](const auto& sent) { return validation_.ScoreRound(sent); });
      } else {
        expect(false, row.id + ": add the RPC " + name + " to this program");
      }
    }
  }

  void batch() {
    std::map<std::string, std::vector<Turn>> groups;
    for (const auto& turn : turns()) groups[turn.request.ruleset().ShortDebugString()].push_back(turn);
    for (const auto& [text, group] : groups) {
      for (size_t first = 0; first < group.size(); first += 100) {
        const std::vector<Turn> part(group.begin() + first, group.begin() + std::min(first + 100, group.size()));
        v1::BatchValidateTurnsRequest batch;
        *batch.mutable_ruleset() = part[0].request.ruleset();
        for (const auto& turn : part) {
          *batch.add_turns() = turn.request;
          batch.mutable_turns(batch.turns_size() - 1)->clear_ruleset();
        }
        const auto answers = validation_.BatchValidateTurns(batch).turns();
        expect(answers.size() == static_cast<int>(part.size()), "answers are missing");
        for (size_t i = 0; i < part.size(); ++i) expect_equal(part[i].id, answers.Get(static_cast<int>(i)), part[i].answer);
      }
    }
  }

  void stream() {
    const auto all = turns();
    auto stream = validation_.StreamValidateTurns();
    std::thread writer([&] {
      for (const auto& turn : all) {
        v1::StreamValidateTurnsRequest sent;
        *sent.mutable_turn() = turn.request;
        sent.set_correlation_id(turn.id.substr(0, 64));
        if (!stream.write(sent)) return;
      }
      stream.writes_done();
    });
    std::vector<v1::StreamValidateTurnsResponse> answers;
    try {
      while (auto answer = stream.read()) answers.push_back(*answer);
    } catch (...) {
      writer.join();
      throw;
    }
    writer.join();
    expect(answers.size() == all.size(), std::to_string(answers.size()) + " answers to " + std::to_string(all.size()));
    for (size_t i = 0; i < all.size(); ++i) {
      expect(answers[i].correlation_id() == all[i].id.substr(0, 64), "another correlation id: " + answers[i].correlation_id());
      expect_equal(all[i].id, answers[i].turn(), all[i].answer);
    }
  }

  void refusal() {
    auto [game, seats] = joined(lobby_, {"Ann", "Bob"});
    v1::StartGameRequest start;
    start.set_game_id(game.game_id());
    game = seats[0].games.StartGame(start).game();
    const auto& player = seats[game.turn().seat() - 1];
    auto turn = play(game, melds("[R1 R2]"));
    turn.set_validate_only(true);
    const auto error = refused("a meld of two", [&] { player.turns.PlayTurn(turn); });
    const auto found = std::find_if(error.violations.begin(), error.violations.end(),
                                    [](const auto& one) { return one.reason() == v1::MELD_TOO_SHORT; });
    expect(found != error.violations.end() && found->subject() == "play.table[0]" && tiles_text(found->tiles()) == "R1 R2",
           std::string("a meld of two: ") + error.what());
    const auto other = refused("the other seat", [&] { seats[2 - game.turn().seat()].turns.PlayTurn(turn); });
    expect(other.reason == v1::NOT_YOUR_TURN && other.code == grpc::StatusCode::FAILED_PRECONDITION &&
               other.metadata == std::map<std::string, std::string>{{"seat", std::to_string(game.turn().seat())}}, other.what());

    v1::ValidateTurnRequest low;
    low.set_has_melded(false);
    *low.mutable_table_after()->add_melds() = melds("[R1 R2 R3]")[0];
    *low.mutable_rack() = low.table_after().melds(0).tiles();
    const auto judged = validation_.ValidateTurn(low);
    expect(judged.violations_size() == 1 &&
               judged.violations(0).reason() == v1::INITIAL_MELD_BELOW_THRESHOLD &&
               judged.violations(0).metadata().at("total") == 6 && judged.violations(0).metadata().at("threshold") == 30,
           "an initial meld of 6 points: " + judged.ShortDebugString());

    explained(lobby_.seated("no token"), game.game_id(), "pass seated() the token");
    explained(lobby_.seated(std::string(43, 'A')), game.game_id(), "use the token that replaced it, or join again");
    explained(lobby_, std::string(32, '0'), "check the game's id");
    explained(Client("127.0.0.1:1"), game.game_id(), "no service answers at 127.0.0.1:1; start one with `make run`");
  }

  // Plays rounds until one is long enough to be cut twice: about one in 600 is not.
  void game() {
    for (int attempt = 0; attempt < 3; ++attempt) {
      if (was_cut_twice()) return;
    }
    expect(false, "three rounds ended before the person's second turn");
  }

  bool was_cut_twice() {
    Proxy proxy(target_);
    const Client service(proxy.target);
    const auto created = service.games.CreateGame({});
    const auto id = created.game().game_id();
    v1::JoinGameRequest joining;
    joining.set_game_id(id);
    joining.set_name("Ann");
    const auto seat = service.seated(created.host_token()).games.JoinGame(joining);
    const auto ann = service.seated(seat.seat_token());
    for (const auto level : {v1::BOT_LEVEL_EASY, v1::BOT_LEVEL_MEDIUM, v1::BOT_LEVEL_HARD}) {
      v1::AddBotRequest bot;
      bot.set_game_id(id);
      bot.set_level(level);
      ann.games.AddBot(bot);
    }
    v1::WatchGameRequest watching;
    watching.set_game_id(id);
    watching.set_content(v1::WATCH_CONTENT_BOTH);
    auto watch = ann.watch(watching);
    auto view = watch.next()->snapshot();
    v1::StartGameRequest start;
    start.set_game_id(id);
    ann.games.StartGame(start);
    auto revision = view.revision();
    int turns = 0;
    for (const auto& update : watch) {
      expect(!update.has_snapshot(), "a resumed watch begins with a snapshot");
      if (update.has_change()) {
        expect(update.change().revision() == revision + 1,
               std::to_string(update.change().revision()) + " follows " + std::to_string(revision));
        revision = update.change().revision();
      }
      if (!update.has_game()) continue;
      view = update.game();
      if (view.turn().seat() != seat.seat()) continue;
      if (++turns <= cuts) proxy.cut();  // in a turn of the person: then no change can have been received ahead
      take_turn(ann, id);
    }
    v1::GetGameRequest read;
    read.set_game_id(id);
    const auto final = lobby_.seated(seat.seat_token()).games.GetGame(read).game();
    expect(final.state() == v1::GAME_STATE_FINISHED && revision == final.revision(), "the watch ended before the game");
    expect_equal("the last view", of_the_rules(view), of_the_rules(final));
    if (turns < cuts) return false;
    expect(proxy.connections > cuts, "the watch did not reconnect");
    return true;
  }

  // Plays the games to their ends with suggested turns, all at the same time.
  void suggested_turns() {
    std::vector<std::future<void>> games;
    for (const auto& [id, token] : games_) {
      games.push_back(std::async(std::launch::async, [this, id, token] { play_to_the_end(lobby_.seated(token), id); }));
    }
    for (auto& game : games) game.get();
  }

  static void play_to_the_end(const Client& player, const std::string& id) {
    for (const auto& game : player.watch_games(id)) {
      if (game.has_turn() && game.turn().seat() == game.seat()) {
        take_turn(player, id);
      } else if (game.state() == v1::GAME_STATE_ROUND_OVER) {
        v1::StartNextRoundRequest next;
        next.set_game_id(id);
        player.turns.StartNextRound(next);
      }
    }
  }

  static void take_turn(const Client& player, const std::string& id) {
    v1::SuggestTurnRequest question;
    question.set_game_id(id);
    player.turns.PlayTurn(player.analysis.SuggestTurn(question).turn());
  }

  // Watches a game that two players join, and compares what never changes.
  void rules() {
    v1::CreateGameRequest request;
    (*request.mutable_labels())["mode"] = "conformance";
    const auto created = lobby_.games.CreateGame(request).game();
    std::vector<std::string> names{"Bob", "Ann"};
    for (const auto& game : lobby_.watch_games(created.game_id())) {
      expect_equal("the ruleset", game.ruleset(), created.ruleset());
      expect_equal("the settings", game.settings(), created.settings());
      expect(game.visibility() == created.visibility() && game.labels_size() == 1 &&
                 game.labels().at("mode") == "conformance", game.ShortDebugString());
      if (names.empty()) return;
      v1::JoinGameRequest join;
      join.set_game_id(created.game_id());
      join.set_name(names.back());
      names.pop_back();
      lobby_.games.JoinGame(join);
    }
    expect(false, "the watch ended");
  }

  void names() {
    const std::vector<std::string> names{"Zoe\u0308", "李雷", "שלום", "\U0001F468\u200d\U0001F469\u200d\U0001F467"};
    const auto game = joined(lobby_, names).first;
    for (size_t i = 0; i < names.size(); ++i) {
      const auto& found = game.players(static_cast<int>(i)).name();
      expect(found == (i ? names[i] : "Zo\u00eb"), names[i] + " became " + found);
    }
  }

  void unknown() {
    const auto game = lobby_.games.CreateGame({}).game();
    const std::string field_1000("\xc0\x3e\x01"), state_9999("\x20\x8f\x4e");
    v1::Game newer;
    expect(newer.ParseFromString(game.SerializeAsString() + state_9999 + field_1000), "a newer game is not parsed");
    expect(static_cast<int>(newer.state()) == 9999 && newer.game_id() == game.game_id(), newer.ShortDebugString());
    const auto sent = newer.SerializeAsString();
    expect(sent.find(field_1000) != std::string::npos, "the unknown field is lost");
    v1::PlayTiles unset, zero, read;
    zero.set_river_index(0);
    expect(read.ParseFromString(unset.SerializeAsString()) && !read.has_river_index(), "an unset river_index is set");
    expect(read.ParseFromString(zero.SerializeAsString()) && read.has_river_index(), "river_index 0 is unset");
  }

  void deadline() {
    Proxy proxy(target_);
    proxy.forwards = false;
    const auto began = std::chrono::steady_clock::now();
    const auto error = refused("a late call", [&] { Client(proxy.target).games.CreateGame({}, {200ms}); });
    expect(error.code == grpc::StatusCode::DEADLINE_EXCEEDED && std::chrono::steady_clock::now() - began < 1s, error.what());
  }

  void retry() {
    v1::CreateGameRequest request;
    request.set_request_id(new_request_id());
    const auto first = lobby_.games.CreateGame(request), second = lobby_.games.CreateGame(request);
    expect(first.game().game_id() == second.game().game_id() && first.host_token() == second.host_token(), "two games");
    v1::JoinGameRequest join;
    join.set_game_id(first.game().game_id());
    join.set_name("Ann");
    join.set_request_id(new_request_id());
    const auto one = lobby_.games.JoinGame(join), other = lobby_.games.JoinGame(join);
    expect(one.seat() == other.seat() && one.seat_token() == other.seat_token(), "two seats");
    Proxy proxy(target_);
    Client(proxy.target).games.CreateGame({});
    const auto sent = proxy.sent();
    const std::regex uuid("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}");
    expect(std::distance(std::sregex_iterator(sent.begin(), sent.end(), uuid), {}) == 1, "no request id was filled in");
  }

  void watches() {
    const Client client(target_);
    const auto id = client.games.CreateGame({}).game().game_id();
    std::vector<Watch> open;
    for (int i = 0; i < 150; ++i) {  // more than a connection carries
      open.push_back(client.watch(id));
      const auto first = open.back().next();
      expect(first && first->snapshot().game_id() == id, "the first update is no snapshot of the game");
    }
    v1::GetGameRequest read;
    read.set_game_id(id);
    expect(client.games.GetGame(read).game().game_id() == id, "another game");
  }

 private:
  static constexpr int cuts = 2;

  std::vector<Turn> turns() const {
    std::vector<Turn> found;
    for (const auto& row : rows_) {
      if (row.is_error || row.rpc != "rummikub.v1.ValidationService/ValidateTurn") continue;
      found.push_back({row.id, from_json<v1::ValidateTurnRequest>(row.request), from_json<v1::ValidateTurnResponse>(row.response)});
    }
    expect(!found.empty(), "there are no calls of ValidateTurn");
    return found;
  }

  // Returns a new game with players, the first of whom is the host, and their clients.
  static std::pair<v1::Game, std::vector<Client>> joined(const Client& lobby, const std::vector<std::string>& names) {
    v1::CreateGameRequest request;
    request.mutable_ruleset()->mutable_melding()->mutable_deal()->set_players_max(4);
    const auto created = lobby.games.CreateGame(request);
    auto game = created.game();
    auto caller = lobby.seated(created.host_token());
    std::vector<Client> seats;
    for (const auto& name : names) {
      v1::JoinGameRequest join;
      join.set_game_id(game.game_id());
      join.set_name(name);
      const auto seat = caller.games.JoinGame(join);
      game = seat.game();
      seats.push_back(lobby.seated(seat.seat_token()));
      caller = lobby;
    }
    return {game, seats};
  }

  static void explained(const Client& client, const std::string& id, const std::string& advice) {
    v1::GetGameRequest read;
    read.set_game_id(id);
    const std::string text = refused(advice, [&] { client.games.GetGame(read, {1s}); }).what();
    expect(text.find(advice) != std::string::npos, "'" + text + "' lacks '" + advice + "'");
  }

  // Returns a game without what belongs to no revision: the time of the answer, presence and join code.
  static v1::Game of_the_rules(v1::Game game) {
    game.clear_server_time();
    game.clear_join_code();
    for (auto& player : *game.mutable_players()) {
      player.clear_is_connected();
      player.clear_last_seen_time();
    }
    return game;
  }

  std::string target_;
  Client lobby_;
  Validation validation_;
  std::vector<Row> rows_;
  std::vector<std::pair<std::string, std::string>> games_;  // ids and tokens
};

}  // namespace

int main(int argc, char** argv) try {
  std::map<std::string, std::string> given;
  for (int i = 1; i + 1 < argc; i += 2) given[argv[i]] = argv[i + 1];
  Checks checks(given.at("--target"), given.at("--validation"), given.at("--wire"), given.at("--games"));
  const std::pair<const char*, void (Checks::*)()> all[] = {
      {"wire", &Checks::wire}, {"batch", &Checks::batch}, {"stream", &Checks::stream},
      {"refusal", &Checks::refusal}, {"game", &Checks::game}, {"turns", &Checks::suggested_turns},
      {"rules", &Checks::rules}, {"names", &Checks::names}, {"unknown", &Checks::unknown},
      {"deadline", &Checks::deadline}, {"retry", &Checks::retry}, {"watches", &Checks::watches}};
  bool is_good = true;
  for (const auto& [name, check] : all) {
    const auto began = std::chrono::steady_clock::now();
    std::string problem;
    try {
      (checks.*check)();
    } catch (const std::exception& error) {
      problem = std::string(" ") + error.what();
      std::replace(problem.begin(), problem.end(), '\n', ' ');
      is_good = false;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
    std::cout << (problem.empty() ? "PASS " : "FAIL ") << name << ' ' << std::fixed << std::setprecision(2)
              << seconds.count() << problem << std::endl;
  }
  return is_good ? 0 : 1;
} catch (const std::out_of_range&) {
  std::cerr << "usage: rummikub-conformance --target host:port --validation host:port --wire path/to/wire.json "
               "--games id:token,...\n";
  return 2;
}
