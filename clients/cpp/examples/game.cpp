// Plays two rounds against bots: rummikub-game [host:port [preset]]
#include <iostream>

#include "rummikub/rummikub.hpp"

using namespace rummikub;

int main(int argc, char** argv) try {
  const Client lobby(argc > 1 ? argv[1] : "127.0.0.1:50051");
  v1::CreateGameRequest creating;
  auto& rules = *creating.mutable_ruleset()->mutable_melding();
  auto preset = v1::PRESET_SABRA;
  if (argc > 2) v1::Preset_Parse(argv[2], &preset);
  rules.set_preset(preset);
  rules.mutable_game_end()->set_match_end(v1::MATCH_END_FIXED_ROUNDS);
  rules.mutable_game_end()->set_match_rounds(2);
  const auto created = lobby.games.CreateGame(creating);
  const auto id = created.game().game_id();
  v1::JoinGameRequest joining;
  joining.set_game_id(id);
  joining.set_name("Ann");
  const auto ann = lobby.seated(lobby.seated(created.host_token()).games.JoinGame(joining).seat_token());
  v1::AddBotRequest bot;
  bot.set_game_id(id);
  bot.set_level(v1::BOT_LEVEL_EASY);
  const auto& deal = created.game().ruleset().melding().deal();
  for (auto players = deal.players_min(); players > 1; --players) ann.games.AddBot(bot);
  v1::StartGameRequest start;
  start.set_game_id(id);
  ann.games.StartGame(start);
  for (const auto& game : ann.watch_games(id)) {
    std::cout << table_text(game.table()) << " rack: " << tiles_text(game.rack()) << std::endl;
    if (game.has_turn() && game.turn().seat() == game.seat()) {
      v1::SuggestTurnRequest question;
      question.set_game_id(id);
      ann.turns.PlayTurn(ann.analysis.SuggestTurn(question).turn());
    } else if (game.state() == v1::GAME_STATE_ROUND_OVER) {
      v1::StartNextRoundRequest next;
      next.set_game_id(id);
      ann.turns.StartNextRound(next);
    }
  }
} catch (const Error& error) {
  std::cerr << error.what() << '\n';  // what is wrong, and what to do
  return 1;
}
