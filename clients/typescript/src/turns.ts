import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { HandPart } from "./gen/rummikub/v1/discard_pb.js";
import type { Game } from "./gen/rummikub/v1/game_pb.js";
import type { Meld, Placement } from "./gen/rummikub/v1/meld_pb.js";
import type { Tile } from "./gen/rummikub/v1/tile_pb.js";
import { type PlayTurnRequest, PlayTurnRequestSchema } from "./gen/rummikub/v1/turn_service_pb.js";

/** Returns the request to play tiles in a game as the caller has seen it; `table` has all melds after the turn. */
export function play(game: Game, table: readonly Meld[]): PlayTurnRequest {
  return turn(game, { case: "play", value: { table: { melds: [...table] } } });
}

/**
 * Returns the request to play tiles in the cross layout, in a game as the caller has seen it; `placements` has all tiles
 * of the table after the turn. Those of the game's table can be sent back as they are.
 */
export function place(game: Game, placements: readonly Placement[]): PlayTurnRequest {
  return turn(game, { case: "play", value: { table: { placements: [...placements] } } });
}

/** Returns the request to draw a tile in a game as the caller has seen it. */
export function draw(game: Game): PlayTurnRequest {
  return turn(game, { case: "draw", value: {} });
}

/** Returns the request to pass in a game as the caller has seen it. */
export function pass(game: Game): PlayTurnRequest {
  return turn(game, { case: "passTurn", value: {} });
}

/** Returns the request to take a tile of the pool, in a game of discards as the caller has seen it. */
export function takeFromPool(game: Game): PlayTurnRequest {
  return turn(game, { case: "takeFromPool", value: {} });
}

/** Returns the request to take the newest discard of the player before. */
export function takeDiscard(game: Game): PlayTurnRequest {
  return turn(game, { case: "takeDiscard", value: {} });
}

/** Returns the request to discard a tile, which ends the turn. */
export function discard(game: Game, tile: Tile): PlayTurnRequest {
  return turn(game, { case: "discard", value: { tile } });
}

/** Returns the request to discard a tile and finish; `hand` has the melds or pairs, none: as the service finds them. */
export function finish(game: Game, tile: Tile, hand: readonly Pick<HandPart, "tiles">[] = []): PlayTurnRequest {
  return turn(game, { case: "finish", value: { tile, hand: hand.map(({ tiles }) => ({ tiles })) } });
}

/**
 * Returns the request to discard a tile and finish by a Foot; `table` is as for `lay`, with all other tiles of the rack.
 */
export function foot(game: Game, tile: Tile, table: readonly Pick<HandPart, "tiles">[]): PlayTurnRequest {
  return turn(game, { case: "finish", value: { tile, table: table.map(({ tiles }) => ({ tiles })) } });
}

/**
 * Returns the request to lay tiles in a game of discards with a table; `table` has all its melds and pairs afterwards. Those
 * of the game's table stay at their places, grown or as they are, and new ones follow.
 */
export function lay(game: Game, table: readonly Pick<HandPart, "tiles">[]): PlayTurnRequest {
  return turn(game, { case: "lay", value: { table: table.map(({ tiles }) => ({ tiles })) } });
}

/** Returns the request to put the discard or the trump taken in this turn back and take a tile of the pool. */
export function returnDiscard(game: Game): PlayTurnRequest {
  return turn(game, { case: "returnDiscard", value: {} });
}

/** Returns the request to take the trump in place of a tile of the pool. */
export function takeTrump(game: Game): PlayTurnRequest {
  return turn(game, { case: "takeTrump", value: {} });
}

/** Returns the request to take no tile from an empty pool, which ends the round. */
export function passEmptyPool(game: Game): PlayTurnRequest {
  return turn(game, { case: "passEmptyPool", value: {} });
}

/** Returns the request to show the indicator's twin. */
export function showIndicator(game: Game): PlayTurnRequest {
  return turn(game, { case: "showIndicator", value: {} });
}

/** Returns a turn that is refused if the game has changed since. */
function turn(game: Game, action: NonNullable<MessageInitShape<typeof PlayTurnRequestSchema>["action"]>): PlayTurnRequest {
  const { gameId, etag } = game;
  return create(PlayTurnRequestSchema, { gameId, etag, action });
}
