// Tiles and tables as text: `R7` is the red 7, `J` the joker, `F` a false joker, `[R7 R8 R9] | [B1 K1 J]` a table.
// `D`, `M` and `C` are the double joker, the mirror and the color change of Rummikub Twist.
#pragma once

#include <string>
#include <vector>

#include "rummikub/v1/discard.pb.h"
#include "rummikub/v1/meld.pb.h"
#include "rummikub/v1/tile.pb.h"

namespace rummikub {

// Returns the name of a tile; `?` and the number if this client does not know it.
std::string tile_name(v1::Tile tile);

// Returns the tile with a name: R, B, K (black), O, G or P and 1 to 13, J, F, D, M, or C; in capitals or not. Throws
// std::invalid_argument.
v1::Tile tile(const std::string& name);

// Returns the tiles with names separated by spaces. Throws std::invalid_argument.
std::vector<v1::Tile> tiles(const std::string& names);

// Returns the melds of a text such as `[R7 R8 R9] | [B1 K1 J]`; none for `.` and an empty text. Throws std::invalid_argument.
std::vector<v1::Meld> melds(const std::string& text);

// Returns the names of tiles, separated by spaces. `Tiles` is a repeated field of the contract, or another range of Tile.
template <typename Tiles>
std::string tiles_text(const Tiles& tiles) {
  std::string text;
  for (const auto tile : tiles) text += (text.empty() ? "" : " ") + tile_name(static_cast<v1::Tile>(tile));
  return text;
}

// Returns melds as a text such as `[R7 R8 R9] | [B1 K1 J]`; `.` for none. `Melds` is a range of any melds of the contract.
template <typename Melds>
std::string melds_text(const Melds& melds) {
  std::string text;
  for (const auto& meld : melds) text += (text.empty() ? "[" : " | [") + tiles_text(meld.tiles()) + "]";
  return text.empty() ? "." : text;
}

// Returns a table as a text: its melds, or in the cross layout the neighbors in a row, each time after the column and the row
// of the first: `0,0[R3 R4 R5] | 1,1[B4]`.
std::string table_text(const v1::Table& table);

// Returns the board of a game of discards as a text: the tiles that lie face up (the indicator and the okey, or the trump), and
// the newest discard of each player after the seat, `O4 / O5 / 1{R7} 2{}`; then a table with melds,
// `O4 / O5 / 1{R7} 2{} / [R7 R8 R9]`. It is `.` if there is none.
std::string board_text(const v1::DiscardBoard& board);

}  // namespace rummikub
