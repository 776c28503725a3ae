import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Game, GameSchema, GameState, PoolEmpty, Tile, tile, tiles, TurnStep } from "rummikub-client";
import { EMPTY } from "../../src/model/arrangement.js";
import {
  cornersOf,
  discardChoices,
  hasThreeLeft,
  layingToJudge,
  namedHandsOf,
  openingOf,
  seatBefore,
  wildOf,
} from "../../src/model/discards.js";
import { layoutOfGame } from "../../src/model/layout.js";
import { isStand } from "../../src/model/stand.js";
import { okeyOf } from "../../src/model/tiles.js";
import { choices } from "../../src/model/turn.js";

/** Returns a game of Okey in which seat 1 has the turn and seat 2 has discarded K3 before. */
function game(changes: Exclude<MessageInitShape<typeof GameSchema>, Game> = {}): Game {
  return create(GameSchema, {
    state: GameState.PLAYING,
    seat: 1,
    ruleset: { game: { case: "discard", value: {} } },
    players: [{ seat: 1 }, { seat: 2 }, { seat: 3 }, { seat: 4 }],
    turnOrder: [2, 1, 4, 3],
    rack: tiles("R1 O4"),
    poolCount: 40,
    turn: { seat: 1, step: TurnStep.OPEN },
    discardBoard: {
      indicator: tile("O4"),
      okey: tile("O5"),
      piles: [{ seat: 1 }, { seat: 2, newest: tile("K3"), tileCount: 1 }, { seat: 3 }, { seat: 4 }],
      discardedSeats: [2],
    },
    ...changes,
  });
}

test("the player first takes a tile of the pool or the discard of the player before, then discards", () => {
  const none = { ...discardChoices(create(GameSchema, {})), mayShow: true };
  assert.deepEqual(discardChoices(game()), { ...none, mayTake: true, mayTakePool: true, takeable: tile("K3") });
  const discarding = discardChoices(game({ turn: { seat: 1, step: TurnStep.DISCARDING } }));
  assert.deepEqual(discarding, { ...none, mayDiscard: true, mayFinish: true });
});

test("who does not have the turn, and who watches, does nothing", () => {
  const none = discardChoices(create(GameSchema, {}));
  assert.equal(Object.values(none).some(Boolean), false);
  assert.deepEqual(discardChoices(game({ turn: { seat: 2, step: TurnStep.OPEN } })), none);
  const { seat: _, ...watched } = game();
  assert.deepEqual(discardChoices(create(GameSchema, watched)), none);
  assert.deepEqual(discardChoices(game({ state: GameState.ROUND_OVER })), none);
});

test("the indicator is shown once, by who has its twin, in the first turn, where the rules have it", () => {
  const { discardBoard: board } = game();
  const mayShow = (changes: Parameters<typeof game>[0]) => discardChoices(game(changes)).mayShow;
  assert.equal(mayShow({ rack: tiles("R1") }), false);
  assert.equal(mayShow({ discardBoard: { ...board!, shownBySeat: 3 } }), false);
  assert.equal(mayShow({ discardBoard: { ...board!, discardedSeats: [1, 2] } }), false);
  assert.equal(mayShow({ ruleset: { game: { case: "discard", value: { turn: { showIndicator: false } } } } }), false);
});

test("the player before is the last one in turn order who has not resigned", () => {
  assert.equal(seatBefore(game(), 1), 2);
  assert.equal(seatBefore(game(), 2), 3);
  const players = [{ seat: 1 }, { seat: 2, resigned: true }, { seat: 3 }, { seat: 4 }];
  assert.equal(seatBefore(game({ players }), 1), 3);
});

test("the player before sits at the left of the viewer, and the next one at the right", () => {
  const corners = (turnOrder: number[], viewer?: number) =>
    cornersOf(turnOrder, viewer).map(({ seat, corner }) => `${seat} ${corner}`);
  assert.deepEqual(corners([2, 1, 4, 3], 1), ["1 near-right", "4 far-right", "3 far-left", "2 near-left"]);
  assert.deepEqual(corners([1, 3, 2], 2), ["2 near-right", "1 far-right", "3 near-left"]);
  assert.deepEqual(corners([2, 1], 1), ["1 near-right", "2 far-left"]);
  assert.deepEqual(corners([2, 1]), ["2 near-right", "1 far-left"]);
});

test("the okey is the next tile of the indicator's color, 1 after 13", () => {
  assert.equal(okeyOf(tile("O4")), tile("O5"));
  assert.equal(okeyOf(tile("K13")), tile("K1"));
});

test("a game of discards has a rack of slots, and no choices of melding", () => {
  assert.equal(isStand(layoutOfGame(game()).start(game(), EMPTY)), true);
  const { mayPlay, mayDraw, mayPass } = choices(game());
  assert.deepEqual([mayPlay, mayDraw, mayPass], [false, false, false]);
});

/** Returns a game of 101 Okey in which seat 1 has taken K3 of the discards. */
function gameWithTable(changes: Parameters<typeof game>[0] = {}, opening = {}): Game {
  const options = { melds: { meldsOnTable: true }, opening: { points: 101, pairs: 5, ...opening } };
  return game({
    ruleset: { game: { case: "discard", value: options } },
    rack: tiles("R1 K3"),
    turn: { seat: 1, step: TurnStep.DISCARDING, tilesDrawn: tiles("K3") },
    discardBoard: {
      indicator: tile("O4"),
      okey: tile("O5"),
      table: [{ tiles: tiles("B5 K5 R5") }],
      openings: [
        { seat: 2, amount: 103 },
        { seat: 3, isPairs: true, amount: 6 },
      ],
      owedTile: tile("K3"),
    },
    ...changes,
  });
}

test("where melds lie on a table a player lays tiles and then discards, but shows no finished hand", () => {
  const { mayDiscard, mayFinish, mayLay, owed } = discardChoices(gameWithTable());
  assert.deepEqual([mayDiscard, mayFinish, mayLay, owed], [true, false, true, tile("K3")]);
});

test("the starter's first turn, in which no tile is taken, is a discard and nothing else", () => {
  const first = gameWithTable({ turn: { seat: 1, step: TurnStep.DISCARDING } });
  assert.deepEqual([discardChoices(first).mayDiscard, discardChoices(first).mayLay], [true, false]);
  const board = { okey: tile("O5"), openings: [{ seat: 1, amount: 101 }] };
  const laid = gameWithTable({ turn: { seat: 1, step: TurnStep.DISCARDING }, discardBoard: board });
  assert.equal(discardChoices(laid).mayLay, true, "after a step, further ones");
});

test("an opening needs the points or the pairs of the rules, or more than the last one where it rises", () => {
  assert.deepEqual(openingOf(gameWithTable()), { points: 101, pairs: 5 });
  assert.deepEqual(openingOf(gameWithTable({}, { rises: true })), { points: 104, pairs: 7 });
  assert.deepEqual(openingOf(gameWithTable({}, { pairs: 0 })), { points: 101, pairs: undefined });
  assert.equal(openingOf(gameWithTable({ seat: 2 })), undefined);
  assert.equal(openingOf(game()), undefined);
});

test("a step is judged with the rack, the table before, and the discard that must be laid", () => {
  const laying = layingToJudge(gameWithTable(), [{ tiles: tiles("B5 K5 R5 O5") }]);
  assert.equal(laying.owedTile, tile("K3"));
  assert.deepEqual([laying.seat, laying.rack, laying.tableBefore[0]?.tiles], [1, tiles("R1 K3"), tiles("B5 K5 R5")]);
  assert.deepEqual(laying.tableAfter, [{ tiles: tiles("B5 K5 R5 O5") }]);
});

/** Returns a game with jokers in which seat 1 has the turn, and R8 is the trump. */
function gameWithJokers(changes: Parameters<typeof game>[0] = {}, turn = {}, openings = [{ seat: 1, amount: 30 }]): Game {
  const options = { melds: { meldsOnTable: true }, opening: { points: 50 }, turn, hands: [{ name: "HIGH_RUNS" }] };
  return game({
    ruleset: { game: { case: "discard", value: options } },
    players: [{ seat: 1, tileCount: 3 }, { seat: 2 }],
    turnOrder: [1, 2],
    discardBoard: { trump: tile("R8"), openings },
    ...changes,
  });
}

test("with jokers, the joker is wild and no indicator can be shown", () => {
  assert.equal(wildOf(gameWithJokers().discardBoard!), Tile.JOKER);
  assert.equal(wildOf(game().discardBoard!), tile("O5"));
  assert.equal(discardChoices(gameWithJokers({ rack: [Tile.UNSPECIFIED] })).mayShow, false);
});

test("the trump is taken in place of a draw by who has opened, while it lies there", () => {
  assert.equal(discardChoices(gameWithJokers()).trump, tile("R8"));
  assert.equal(discardChoices(gameWithJokers({}, {}, [])).trump, undefined);
  assert.equal(discardChoices(gameWithJokers({ turn: { seat: 1, step: TurnStep.DISCARDING } })).trump, undefined);
  assert.equal(discardChoices(gameWithJokers({ discardBoard: { openings: [{ seat: 1 }] } })).trump, undefined);
});

test("with an empty pool a player passes, where the rules let the round go on", () => {
  const choicesAt = (poolCount: number, turn = { poolEmpty: PoolEmpty.DISCARD_TAKEN_OR_ENDS }) => {
    const { mayTakePool, mayPass } = discardChoices(gameWithJokers({ poolCount }, turn));
    return [mayTakePool, mayPass];
  };
  assert.deepEqual(choicesAt(1), [true, false]);
  assert.deepEqual(choicesAt(0), [false, true]);
  assert.deepEqual(choicesAt(0, { poolEmpty: PoolEmpty.ROUND_ENDS }), [false, false]);
});

test("who has not opened may win concealed where the rules have it, by a Foot or a named hand", () => {
  const turn = { seat: 1, step: TurnStep.DISCARDING, tilesDrawn: tiles("K3") };
  const mayFinish = (concealedWins: boolean, openings: { seat: number; amount: number }[]) =>
    discardChoices(gameWithJokers({ turn }, { concealedWins }, openings)).mayFinish;
  assert.deepEqual([mayFinish(true, []), mayFinish(true, [{ seat: 1, amount: 50 }]), mayFinish(false, [])], [true, false, false]);
  assert.deepEqual(namedHandsOf(gameWithJokers({}, { concealedWins: true })).map(({ name }) => name), ["HIGH_RUNS"]);
  assert.deepEqual(namedHandsOf(gameWithJokers()), []);
});

test("three tiles left are announced of a player who has opened, in a game with concealed wins", () => {
  assert.equal(hasThreeLeft(gameWithJokers({}, { concealedWins: true }), 1), true);
  assert.equal(hasThreeLeft(gameWithJokers({}, { concealedWins: true }, []), 1), false);
  assert.equal(hasThreeLeft(gameWithJokers({}, { concealedWins: true }), 2), false);
  assert.equal(hasThreeLeft(gameWithJokers(), 1), false);
});
