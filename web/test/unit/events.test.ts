/** The sentences of the log: one for each kind of event that a player should not miss. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type GameEvent, GameEventSchema, GameSchema, Tile, tile, tiles, tilesText } from "rummikub-client";
import { eventText, eventTiles } from "../../src/control/events.js";

const GAME = create(GameSchema, { seat: 1, players: [{ seat: 1, name: "Ann" }, { seat: 2, name: "Ben" }] });
type Case = GameEvent["event"]["case"] & string;

/** Players need no sentence for these: they see the effect, or it was in the lobby. */
const SILENT: readonly Case[] = ["gameCreated", "playerReadied", "seatTokenRenewed", "clockStopped"];

/** Examples with their sentences. Two of one kind differ in who reads them. */
const EXAMPLES: readonly (readonly [Case, object, string])[] = [
  ["playerJoined", { seat: 3, name: "Cem" }, "Cem takes a seat."],
  ["playerJoined", { seat: 3, name: "Cem", startTime: {} }, "Cem takes a seat. The game starts in a few seconds."],
  ["playerLeft", { seat: 2 }, "Ben leaves."],
  ["playerKicked", { seat: 2 }, "Ben leaves."],
  ["roundStarted", { round: 2 }, "Round 2 is dealt."],
  ["handsDealt", { round: 2 }, "Round 2 is dealt."],
  ["turnStarted", { turn: { seat: 2 } }, "Ben is to play."],
  ["turnStarted", { turn: { seat: 1 } }, "It is your turn."],
  ["tilesPlayed", { seat: 2, tiles: tiles("R7 R8 J") }, "Ben plays red 7, red 8, joker."],
  ["tilesDrawn", { seat: 2, tileCount: 1 }, "Ben draws."],
  ["tilesDrawn", { seat: 1, tileCount: 1, tiles: tiles("K3") }, "You draw black 3."],
  ["turnPassed", { seat: 2 }, "Ben passes."],
  ["turnEnded", { seat: 2 }, "Ben passes."],
  ["turnTimedOut", { seat: 2 }, "The time of Ben is up."],
  ["turnTimedOut", { seat: 2, tileCount: 3 }, "The time of Ben is up: 3 tiles from the pool."],
  ["turnTimedOut", { seat: 1, tileCount: 1, tiles: tiles("O1") }, "Your time is up. You draw orange 1."],
  ["turnPenalised", { seat: 2, tileCount: 3 }, "Ben draws 3 penalty tiles."],
  ["turnPenalised", { seat: 1, tileCount: 1, tiles: tiles("O1") }, "You draw penalty tiles: orange 1."],
  ["playerResigned", { seat: 2 }, "Ben resigns."],
  ["seatTakenOver", { seat: 2, name: "Zoe" }, "Zoe takes over seat 2."],
  ["playerAbsent", { seat: 2 }, "Ben is absent."],
  ["playerReturned", { seat: 2 }, "Ben is back."],
  ["playerKnocked", { seat: 2 }, "Ben knocks."],
  ["riverTileLaid", { seat: 2, tile: tile("B5") }, "Ben lays blue 5 on the River."],
  ["illegalPlayShown", { seat: 2 }, "Ben shows an illegal play."],
  ["errorClaimed", { seat: 2, agrees: true }, "Ben objects to the play."],
  ["errorClaimed", { seat: 2, agrees: false }, "Ben accepts the play."],
  ["redealDemanded", { seat: 2 }, "Ben demands a new deal."],
  ["lastChanceStarted", { seats: [1, 2] }, "The last turns begin."],
  ["roundEnded", {}, "The round is over."],
  ["gameEnded", {}, "The game is over."],
  ["gameAborted", {}, "The game was aborted"],
  ["abortRequested", { seat: 2 }, "Ben wants to abort the game."],
  ["rematchCreated", {}, "A seat in the rematch is reserved for you."],
  ["poolTileTaken", { seat: 2 }, "Ben draws."],
  ["poolTileTaken", { seat: 1, tile: tile("B5") }, "You draw blue 5."],
  ["discardTaken", { seat: 2, tile: tile("B5"), fromSeat: 1 }, "Ben takes blue 5."],
  ["tileDiscarded", { seat: 2, tile: tile("B5") }, "Ben discards blue 5."],
  ["discardForced", { seat: 2, tile: tile("B5") }, "Ben discards blue 5."],
  ["discardReturned", { seat: 2, tile: tile("B5"), toSeat: 1 }, "Ben puts blue 5 back."],
  ["indicatorShown", { seat: 2 }, "Ben shows the indicator."],
  ["trumpTaken", { seat: 2, tile: tile("B5") }, "Ben takes blue 5, the trump."],
  ["threeTilesLeft", { seat: 2 }, "Ben has three tiles left."],
  ["emptyPoolPassed", { seat: 2 }, "Ben passes."],
  ["tilesLaid", { seat: 2, tiles: tiles("R7 R8 R9") }, "Ben lays red 7, red 8, red 9."],
  ["penaltyScored", { seat: 2, points: 101 }, "Ben gets 101 penalty points."],
];

function made(kind: Case, value: object): GameEvent {
  return create(GameEventSchema, { event: { case: kind, value } } as Parameters<typeof create<typeof GameEventSchema>>[1]);
}

for (const [kind, value, sentence] of EXAMPLES) {
  test(`${kind} is told: ${sentence}`, () => {
    const event = made(kind, value);
    assert.equal(eventText(event, GAME), sentence);
    const { tiles: named = [], tile: one = Tile.UNSPECIFIED } = value as { tiles?: Tile[]; tile?: Tile };
    assert.equal(tilesText(eventTiles(event)), tilesText(one === Tile.UNSPECIFIED ? named : [one]));
  });
}

test("who finishes a hand or a rack is named", () => {
  assert.match(eventText(made("handFinished", { seat: 2, tile: tile("B5") }), GAME), /^Ben .+/);
  assert.match(eventText(made("rackFinished", { seat: 2, tile: tile("B5") }), GAME), /^Ben .+blue 5/);
});

test("each kind of event of the contract has a sentence, or needs none", () => {
  const finishes: readonly Case[] = ["handFinished", "rackFinished"];
  const known = new Set<string>([...EXAMPLES.map(([kind]) => kind), ...finishes, ...SILENT]);
  assert.deepEqual(GameEventSchema.oneofs[0]!.fields.map(({ localName }) => localName).filter((kind) => !known.has(kind)), []);
  for (const kind of SILENT) assert.equal(eventText(made(kind, {}), GAME), "", kind);
});
