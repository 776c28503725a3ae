#include "rummikub/tiles.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace rummikub {

namespace {

constexpr int values = 13;

struct Color {
  char letter;
  v1::Tile first;  // the 1 of the color; the numbers of the others follow
};
constexpr Color colors[] = {{'R', v1::TILE_RED_1},    {'B', v1::TILE_BLUE_1},  {'K', v1::TILE_BLACK_1},
                            {'O', v1::TILE_ORANGE_1}, {'G', v1::TILE_GREEN_1}, {'P', v1::TILE_PURPLE_1}};

// The names of the tiles without a number.
const std::map<v1::Tile, std::string> no_number = {{v1::TILE_JOKER, "J"},
                                                   {v1::TILE_FALSE_JOKER, "F"},
                                                   {v1::TILE_DOUBLE_JOKER, "D"},
                                                   {v1::TILE_MIRROR, "M"},
                                                   {v1::TILE_COLOR_CHANGE, "C"}};

const std::map<std::string, v1::Tile>& tiles_by_name() {
  static const auto made = [] {
    std::map<std::string, v1::Tile> found;
    for (const auto& [number, name] : no_number) found[name] = number;
    for (const auto& color : colors) {
      for (int value = 1; value <= values; ++value) {
        found[color.letter + std::to_string(value)] = static_cast<v1::Tile>(color.first + value - 1);
      }
    }
    return found;
  }();
  return made;
}

}  // namespace

std::string tile_name(v1::Tile tile) {
  if (const auto found = no_number.find(tile); found != no_number.end()) return found->second;
  for (const auto& color : colors) {
    if (color.first <= tile && tile < color.first + values) {
      return color.letter + std::to_string(tile - color.first + 1);
    }
  }
  return "?" + std::to_string(static_cast<int>(tile));
}

v1::Tile tile(const std::string& name) {
  auto capitals = name;
  for (auto& letter : capitals) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  const auto found = tiles_by_name().find(capitals);
  if (found == tiles_by_name().end()) {
    throw std::invalid_argument("rummikub: no tile is named '" + name + "'; names are like R7, B13, K1, O10, G5, P2, J, F, D, M and C");
  }
  return found->second;
}

std::vector<v1::Tile> tiles(const std::string& names) {
  std::vector<v1::Tile> found;
  std::istringstream words(names);
  for (std::string name; words >> name;) found.push_back(tile(name));
  return found;
}

std::vector<v1::Meld> melds(const std::string& text) {
  std::vector<v1::Meld> found;
  if (text.find_first_not_of(" ") == std::string::npos || text == ".") return found;
  for (size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find('|', begin), text.size());
    const auto part = text.substr(begin, end - begin);
    begin = end + 1;
    const auto first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
    if (first == std::string::npos || last == first || part[first] != '[' || part[last] != ']') {
      throw std::invalid_argument("rummikub: '" + part + "' is no meld; write it as [R7 R8 R9]");
    }
    found.emplace_back();
    for (const auto tile : tiles(part.substr(first + 1, last - first - 1))) found.back().add_tiles(tile);
  }
  return found;
}

std::string table_text(const v1::Table& table) {
  if (table.placements().empty()) return melds_text(table.melds());
  std::vector<v1::Placement> placements(table.placements().begin(), table.placements().end());
  const auto place = [](const v1::Placement& placement) { return std::make_pair(placement.y(), placement.x()); };
  std::stable_sort(placements.begin(), placements.end(),
                   [&](const auto& left, const auto& right) { return place(left) < place(right); });
  std::string text;
  auto next = place(placements.front());  // where a tile continues the row
  for (const auto& placement : placements) {
    const auto [y, x] = place(placement);
    if (!text.empty() && next == std::make_pair(y, x)) {
      text += " ";
    } else {
      text += (text.empty() ? "" : "] | ") + std::to_string(x) + "," + std::to_string(y) + "[";
    }
    text += tile_name(placement.tile());
    next = {y, x + 1};
  }
  return text + "]";
}

std::string board_text(const v1::DiscardBoard& board) {
  if (board.piles().empty()) return ".";
  std::string text;
  for (const auto tile : {board.indicator(), board.okey(), board.trump()}) {
    if (tile != v1::TILE_UNSPECIFIED) text += tile_name(tile) + " / ";
  }
  for (const auto& pile : board.piles()) {
    const auto newest = pile.newest() == v1::TILE_UNSPECIFIED ? "" : tile_name(pile.newest());
    text += std::to_string(pile.seat()) + "{" + newest + "} ";
  }
  text.pop_back();
  if (!board.table().empty()) text += " / " + melds_text(board.table());
  return text;
}

}  // namespace rummikub
