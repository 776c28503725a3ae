// The requests to take a turn in a game as the caller has seen it. They have the game's etag.
#pragma once

#include <vector>

#include "rummikub/v1/discard.pb.h"
#include "rummikub/v1/game.pb.h"
#include "rummikub/v1/turn_service.pb.h"

namespace rummikub {

// Returns the request to play tiles; `table` has all melds after the turn.
v1::PlayTurnRequest play(const v1::Game& game, const std::vector<v1::Meld>& table);

// Returns the request to play tiles in the cross layout; `placements` has all tiles of the table after the turn. Those of the
// game's table can be sent back as they are.
v1::PlayTurnRequest place(const v1::Game& game, const std::vector<v1::Placement>& placements);

// Returns the request to draw a tile.
v1::PlayTurnRequest draw(const v1::Game& game);

// Returns the request to pass.
v1::PlayTurnRequest pass(const v1::Game& game);

// Returns the request to take a tile of the pool, in a game of discards.
v1::PlayTurnRequest take_from_pool(const v1::Game& game);

// Returns the request to take the newest discard of the player before.
v1::PlayTurnRequest take_discard(const v1::Game& game);

// Returns the request to discard a tile, which ends the turn.
v1::PlayTurnRequest discard(const v1::Game& game, v1::Tile tile);

// Returns the request to discard a tile and finish; `hand` has the melds or pairs, none: as the service finds them.
v1::PlayTurnRequest finish(const v1::Game& game, v1::Tile tile, const std::vector<v1::HandPart>& hand = {});

// Returns the request to discard a tile and finish by a Foot; `table` is as for `lay`, with all other tiles of the rack.
v1::PlayTurnRequest foot(const v1::Game& game, v1::Tile tile, const std::vector<v1::HandPart>& table);

// Returns the request to lay tiles in a game of discards with a table; `table` has all its melds and pairs afterwards. Those of
// the game's table stay at their places, grown or as they are, and new ones follow.
v1::PlayTurnRequest lay(const v1::Game& game, const std::vector<v1::HandPart>& table);

// Returns the request to put the discard or the trump taken in this turn back and take a tile of the pool.
v1::PlayTurnRequest return_discard(const v1::Game& game);

// Returns the request to take the trump in place of a tile of the pool.
v1::PlayTurnRequest take_trump(const v1::Game& game);

// Returns the request to take no tile from an empty pool, which ends the round.
v1::PlayTurnRequest pass_empty_pool(const v1::Game& game);

// Returns the request to show the indicator's twin.
v1::PlayTurnRequest show_indicator(const v1::Game& game);

// Returns the melds of a table as a player sends them back: with their kinds, and with the faces of the jokers of a meld
// if each can stand for one face only.
std::vector<v1::Meld> melds_of(const google::protobuf::RepeatedPtrField<v1::Meld>& table);

}  // namespace rummikub
