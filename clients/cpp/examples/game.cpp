// Plays two rounds against a bot: rummikub-game [host:port]
#include <iostream>

#include "rummikub/rummikub.hpp"

using namespace rummikub;

int main(int argc, char** argv) try {
  const Client lobby(argc > 1 ? argv[1] : "127.0.0.1:50051");
  v1::CreateGameRequest creating;
  creating.mutable_ruleset()->set_match_end(v1::MATCH_END_FIXED_ROUNDS);
  creating.mutable_ruleset()->set_match_rounds(2);
  const auto created = lobby.games.CreateGame(creating);
  const auto id = created.game().game_id();
  v1::JoinGameRequest joining;
  joining.set_game_id(id);
  joining.set_name("Ann");
  const auto ann = lobby.seated(lobby.seated(created.host_token()).games.JoinGame(joining).seat_token());
  v1::AddBotRequest bot;
  bot.set_game_id(id);
  bot.set_level(v1::BOT_LEVEL_EASY);
  ann.games.AddBot(bot);
  v1::StartGameRequest start;
  start.set_game_id(id);
  ann.games.StartGame(start);
  v1::WatchGameRequest watching;
  watching.set_game_id(id);
  watching.set_content(v1::WATCH_CONTENT_GAMES);
  auto watch = ann.watch(watching);
  for (const auto& update : watch) {
    const auto* game = view(update);
    if (!game) continue;  // who is connected, for example
    std::cout << melds_text(game->table()) << " rack: " << tiles_text(game->rack()) << std::endl;
    if (game->has_turn() && game->turn().seat() == game->seat()) {
      v1::SuggestTurnRequest question;
      question.set_game_id(id);
      ann.turns.PlayTurn(ann.analysis.SuggestTurn(question).turn());
    } else if (game->state() == v1::GAME_STATE_ROUND_OVER) {
      v1::StartNextRoundRequest next;
      next.set_game_id(id);
      ann.games.StartNextRound(next);
    }
  }
} catch (const Error& error) {
  std::cerr << error.what() << '\n';  // what is wrong, and what to do
  return 1;
}
