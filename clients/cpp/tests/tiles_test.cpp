#include "check.hpp"
#include "rummikub/tiles.hpp"
#include "rummikub/turns.hpp"

using namespace rummikub;

TEST(tiles_have_names) {
  const auto* descriptor = v1::Tile_descriptor();
  int named = 0;
  for (int i = 0; i < descriptor->value_count(); ++i) {
    const auto number = static_cast<v1::Tile>(descriptor->value(i)->number());
    if (number == v1::TILE_UNSPECIFIED) continue;
    CHECK_EQUAL(tile(tile_name(number)), number);
    ++named;
  }
  CHECK_EQUAL(named, 6 * 13 + 5);
  CHECK_EQUAL(tile("K13"), v1::TILE_BLACK_13);
  CHECK_EQUAL(tile("r7"), v1::TILE_RED_7);
  CHECK_EQUAL(tile("F"), v1::TILE_FALSE_JOKER);
  CHECK_EQUAL(tile("D"), v1::TILE_DOUBLE_JOKER);
  CHECK_EQUAL(tile("M"), v1::TILE_MIRROR);
  CHECK_EQUAL(tile("C"), v1::TILE_COLOR_CHANGE);
  CHECK_EQUAL(tile_name(static_cast<v1::Tile>(99)), "?99");
  for (const auto* name : {"", "R", "R0", "R07", "R14", "X1", "J1", "R1 ", "R-1"}) {
    CHECK_CONTAINS(thrown<std::invalid_argument>([name] { tile(name); }).what(), "no tile is named");
  }
}

TEST(melds_have_a_text) {
  const std::string text = "[R7 R8 R9] | [B1 K1 J]";
  CHECK_EQUAL(melds_text(melds(text)), text);
  CHECK_EQUAL(melds(".").size() + melds("").size(), 0u);
  CHECK_EQUAL(melds_text(std::vector<v1::Meld>()), ".");
  for (const auto* wrong : {"R7", "[R7", "[", "[R7] |", "[R7] [R8]"}) thrown<std::invalid_argument>([wrong] { melds(wrong); });
}

namespace {

v1::Placement at(const std::string& name, int x, int y) {
  v1::Placement placement;
  placement.set_tile(tile(name));
  placement.set_x(x);
  placement.set_y(y);
  return placement;
}

}  // namespace

TEST(a_table_of_the_cross_layout_is_the_text_of_its_rows) {
  v1::Table table;
  CHECK_EQUAL(table_text(table), ".");
  for (const auto& placement : {at("R4", 1, 0), at("R3", 0, 0)}) *table.add_placements() = placement;
  CHECK_EQUAL(table_text(table), "0,0[R3 R4]");
  for (const auto& placement : {at("B4", 1, 1), at("J", 3, 0), at("R9", -2, -1)}) *table.add_placements() = placement;
  CHECK_EQUAL(table_text(table), "-2,-1[R9] | 0,0[R3 R4] | 3,0[J] | 1,1[B4]");
  v1::Table with_melds;
  *with_melds.add_melds() = melds("[R7 R8 R9]")[0];
  CHECK_EQUAL(table_text(with_melds), "[R7 R8 R9]");
}

TEST(a_board_is_the_text_of_its_indicator_okey_newest_discards_and_table) {
  v1::DiscardBoard board;
  CHECK_EQUAL(board_text(board), ".");
  board.set_indicator(v1::TILE_ORANGE_4);
  board.set_okey(v1::TILE_ORANGE_5);
  auto* pile = board.add_piles();
  pile->set_seat(1);
  pile->set_newest(v1::TILE_FALSE_JOKER);
  board.add_piles()->set_seat(3);
  CHECK_EQUAL(board_text(board), "O4 / O5 / 1{F} 3{}");
  auto* pair = board.add_table();
  for (const auto tile : tiles("B1 B1")) pair->add_tiles(tile);
  CHECK_EQUAL(board_text(board), "O4 / O5 / 1{F} 3{} / [B1 B1]");
  board.clear_indicator();
  board.clear_okey();
  board.set_trump(v1::TILE_RED_8);
  CHECK_EQUAL(board_text(board), "R8 / 1{F} 3{} / [B1 B1]");
}

TEST(turns_have_the_etag) {
  v1::Game game;
  game.set_game_id("id");
  game.set_etag("etag");
  CHECK(draw(game).has_draw() && pass(game).has_pass_turn());
  const auto turn = play(game, melds("[R7 R8 R9]"));
  CHECK_EQUAL(melds_text(turn.play().table().melds()), "[R7 R8 R9]");
  CHECK_EQUAL(turn.etag(), "etag");
  CHECK_EQUAL(table_text(place(game, {at("R7", -1, 2)}).play().table()), "-1,2[R7]");
  CHECK(take_from_pool(game).has_take_from_pool() && take_discard(game).has_take_discard());
  CHECK_EQUAL(discard(game, v1::TILE_RED_1).discard().tile(), v1::TILE_RED_1);
  v1::HandPart pair;
  for (const auto tile : tiles("R7 R7")) pair.add_tiles(tile);
  const auto finished = finish(game, v1::TILE_RED_1, {pair});
  CHECK_EQUAL(finished.finish().tile(), v1::TILE_RED_1);
  CHECK_EQUAL(melds_text(finished.finish().hand()), "[R7 R7]");
  CHECK_EQUAL(melds_text(lay(game, {pair, pair}).lay().table()), "[R7 R7] | [R7 R7]");
  CHECK(return_discard(game).has_return_discard());
  const auto footed = foot(game, v1::TILE_RED_1, {pair});
  CHECK_EQUAL(footed.finish().tile(), v1::TILE_RED_1);
  CHECK_EQUAL(melds_text(footed.finish().table()), "[R7 R7]");
  CHECK(take_trump(game).has_take_trump() && pass_empty_pool(game).has_pass_empty_pool());
  CHECK_EQUAL(show_indicator(game).etag(), "etag");
  CHECK(show_indicator(game).has_show_indicator());
}

TEST(melds_declare_the_faces_of_jokers_that_can_stand_for_one_only) {
  google::protobuf::RepeatedPtrField<v1::Meld> table;
  auto* meld = table.Add();
  *meld->mutable_tiles() = melds("[R7 J R9]")[0].tiles();
  meld->set_kind(v1::MELD_KIND_RUN);
  meld->add_jokers()->add_faces(v1::TILE_RED_8);
  CHECK_EQUAL(melds_of(table)[0].declared_faces(0), v1::TILE_RED_8);
  meld->mutable_jokers(0)->add_faces(v1::TILE_RED_7);
  CHECK_EQUAL(melds_of(table)[0].declared_faces_size(), 0);
}
