import { judgmentOf, type RummikubBoard } from "rummikub-board";
import { connect, melds, tileName, tiles } from "rummikub-client";

const service = connect(new URLSearchParams(location.search).get("edge") ?? "http://127.0.0.1:8080");
const toTable = (table: readonly (readonly string[])[]) => ({ melds: melds(table.map((meld) => `[${meld.join(" ")}]`).join(" | ")) });

const board = document.querySelector<RummikubBoard>("rummikub-board")!;
const before = board.intended; // the turn begins: nothing is moved yet
board.judge = async ({ table }, signal) => {
  const turn = { hasMelded: true, tableBefore: toTable(before.table), tableAfter: toTable(table), rack: tiles(before.rack.join(" ")) };
  const { violations } = await service.validation.validateTurn(turn, { signal });
  return judgmentOf(table, violations.map((one) => ({ ...one, tiles: one.tiles.map(tileName) })));
};
