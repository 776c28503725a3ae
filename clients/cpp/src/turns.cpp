#include "rummikub/turns.hpp"

#include <algorithm>

namespace rummikub {

namespace {

v1::PlayTurnRequest turn(const v1::Game& game) {
  v1::PlayTurnRequest request;
  request.set_game_id(game.game_id());
  request.set_etag(game.etag());
  return request;
}

}  // namespace

v1::PlayTurnRequest play(const v1::Game& game, const std::vector<v1::Meld>& table) {
  auto request = turn(game);
  auto& tiles = *request.mutable_play();
  for (const auto& meld : table) *tiles.mutable_table()->add_melds() = meld;
  return request;
}

v1::PlayTurnRequest place(const v1::Game& game, const std::vector<v1::Placement>& placements) {
  auto request = turn(game);
  auto& table = *request.mutable_play()->mutable_table();
  for (const auto& placement : placements) *table.add_placements() = placement;
  return request;
}

v1::PlayTurnRequest draw(const v1::Game& game) {
  auto request = turn(game);
  request.mutable_draw();
  return request;
}

v1::PlayTurnRequest pass(const v1::Game& game) {
  auto request = turn(game);
  request.mutable_pass_turn();
  return request;
}

v1::PlayTurnRequest take_from_pool(const v1::Game& game) {
  auto request = turn(game);
  request.mutable_take_from_pool();
  return request;
}

v1::PlayTurnRequest take_discard(const v1::Game& game) {
  auto request = turn(game);
  request.mutable_take_discard();
  return request;
}

v1::PlayTurnRequest discard(const v1::Game& game, v1::Tile tile) {
  auto request = turn(game);
  request.mutable_discard()->set_tile(tile);
  return request;
}

v1::PlayTurnRequest finish(const v1::Game& game, v1::Tile tile, const std::vector<v1::HandPart>& hand) {
  auto request = turn(game);
  auto& finished = *request.mutable_finish();
  finished.set_tile(tile);
  for (const auto& part : hand) *finished.add_hand() = part;
  return request;
}

v1::PlayTurnRequest foot(const v1::Game& game, v1::Tile tile, const std::vector<v1::HandPart>& table) {
  auto request = turn(game);
  auto& finished = *request.mutable_finish();
  finished.set_tile(tile);
  for (const auto& part : table) *finished.add_table() = part;
  return request;
}

v1::PlayTurnRequest lay(const v1::Game& game, const std::vector<v1::HandPart>& table) {
  auto request = turn(game);
  auto& laid = *request.mutable_lay();
  for (const auto& part : table) *laid.add_table() = part;
  return request;
}

v1::PlayTurnRequest return_discard(const v1::Game& game) {
  auto request = turn(game);
  request.mutable_return_discard();
  return request;
}

v1::PlayTurnRequest take_trump(const v1::Game& game) {
  auto request = turn(game);
  request.mutable_take_trump();
  return request;
}

v1::PlayTurnRequest pass_empty_pool(const v1::Game& game) {
  auto request = turn(game);
  request.mutable_pass_empty_pool();
  return request;
}

v1::PlayTurnRequest show_indicator(const v1::Game& game) {
  auto request = turn(game);
  request.mutable_show_indicator();
  return request;
}

std::vector<v1::Meld> melds_of(const google::protobuf::RepeatedPtrField<v1::Meld>& table) {
  std::vector<v1::Meld> melds;
  for (const auto& meld : table) {
    auto& sent = melds.emplace_back();
    *sent.mutable_tiles() = meld.tiles();
    sent.set_kind(meld.kind());
    const auto& jokers = meld.jokers();
    if (std::all_of(jokers.begin(), jokers.end(), [](const auto& joker) { return joker.faces_size() == 1; })) {
      for (const auto& joker : jokers) sent.add_declared_faces(joker.faces(0));
    }
  }
  return melds;
}

}  // namespace rummikub
