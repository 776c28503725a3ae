import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Game } from "./gen/rummikub/v1/game_pb.js";
import type { Meld, Placement } from "./gen/rummikub/v1/meld_pb.js";
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

/** Returns a turn that is refused if the game has changed since. */
function turn(game: Game, action: NonNullable<MessageInitShape<typeof PlayTurnRequestSchema>["action"]>): PlayTurnRequest {
  const { gameId, etag } = game;
  return create(PlayTurnRequestSchema, { gameId, etag, action });
}
