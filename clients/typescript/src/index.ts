export { Code, ConnectError } from "@connectrpc/connect";
export { Rummikub, type RummikubOptions } from "./client.js";
export { newRequestId } from "./connection.js";
export { explain, refusal, type Refused } from "./refusal.js";
export { boardText, melds, meldsOf, meldsText, tableText, tile, tileName, tiles, tilesText } from "./tiles.js";
export {
  discard,
  draw,
  finish,
  foot,
  lay,
  pass,
  passEmptyPool,
  place,
  play,
  returnDiscard,
  showIndicator,
  takeDiscard,
  takeFromPool,
  takeTrump,
} from "./turns.js";
export { type Update, Watch, type WatchOptions } from "./watch.js";
export { Bot, type BotOptions, Legal } from "./bot.js";
export * from "./gen/rummikub/v1/analysis_service_pb.js";
export * from "./gen/rummikub/v1/challenge_service_pb.js";
export * from "./gen/rummikub/v1/discard_pb.js";
export * from "./gen/rummikub/v1/error_reason_pb.js";
export * from "./gen/rummikub/v1/game_pb.js";
export * from "./gen/rummikub/v1/game_service_pb.js";
export * from "./gen/rummikub/v1/meld_pb.js";
export * from "./gen/rummikub/v1/record_pb.js";
export * from "./gen/rummikub/v1/puzzle_service_pb.js";
export * from "./gen/rummikub/v1/record_service_pb.js";
export * from "./gen/rummikub/v1/room_settings_pb.js";
export * from "./gen/rummikub/v1/ruleset_pb.js";
export * from "./gen/rummikub/v1/score_pb.js";
export * from "./gen/rummikub/v1/tile_pb.js";
export * from "./gen/rummikub/v1/turn_service_pb.js";
export * from "./gen/rummikub/v1/validation_service_pb.js";
export * from "./gen/rummikub/v1/violation_pb.js";
