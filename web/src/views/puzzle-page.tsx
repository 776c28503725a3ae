/** The puzzle of the day: its position on a board of its own, and the service's judgment of an answer. */
// Files that are loaded later share all of the page's start, so that it stays one chunk.
import "./app.js";
import { type Puzzle, type Table, Tile, tiles } from "rummikub-client";
import { type BoardTexts, judgmentOf, LocalTable, RummikubBoard, tileText as boardText } from "rummikub-board";
import { useEffect, useRef, useState } from "preact/hooks";
import { service } from "../api/connection.js";
import { errorText, t, tilesList, tileText, violationText } from "../i18n/index.js";
import { levelText, pt } from "../i18n/puzzle.js";

const textOf = (tile: Tile) => `TILE_${Tile[tile]}`;
const textsOf = (table: Table | undefined) => (table?.melds ?? []).map((meld) => meld.tiles.map(textOf));
const tableOf = (table: readonly (readonly string[])[]) => ({ melds: table.map((meld) => ({ tiles: tiles(meld.join(" ")) })) });

/** Returns the texts of the board in the language of the page. */
function boardTexts(): BoardTexts {
  const number = (value: number) => ({ number: value, tiles: "" });
  return {
    tile: (tile) => tileText(tiles(boardText(tile))[0]!),
    table: t("table"),
    rack: t("rack"),
    emptyTable: t("emptyTable"),
    meld: (value, all) => t("meldOf", { number: value, tiles: all }),
    legal: t("meldLegal"),
    illegal: t("meldIllegal"),
    newMeld: t("newMeld"),
    actions: t("table"),
    undo: t("undo"),
    redo: t("redo"),
    reset: t("reset"),
    sortByColor: t("sortRuns"),
    sortByValue: t("sortGroups"),
    showMelds: t("showMelds"),
    showAgain: t("showAgain"),
    zoomIn: t("zoomIn"),
    zoomOut: t("zoomOut"),
    placeStart: (value) => t("placeStart", number(value)),
    placeAfter: (value, tile) => t("placeAfter", { ...number(value), tile }),
    placeRack: t("placeRack"),
    carrying: (all) => t("carry", { tiles: all }),
    dropped: t("dropped"),
    putBack: t("putBack"),
    fitsAt: (tile, count) => t("fitsAt", { tile, count }),
    staysOnTable: pt("stays"),
    keys: pt("keys"),
  };
}

// The element registers itself.
export { RummikubBoard };

export function PuzzlePage() {
  const [puzzle, setPuzzle] = useState<Puzzle>();
  const [problem, setProblem] = useState("");
  useEffect(() => {
    service.puzzles.getPuzzle({}).then(
      (response) => setPuzzle(response.puzzle),
      (error: unknown) => setProblem(errorText(error)),
    );
  }, []);
  return (
    <main class="page puzzle" tabIndex={-1}>
      <h1>{t("puzzleOfTheDay")}</h1>
      <p class="problem" role="alert">
        {problem}
      </p>
      {puzzle?.position && <Board puzzle={puzzle} onProblem={setProblem} />}
    </main>
  );
}

function Board({ puzzle, onProblem }: { puzzle: Puzzle; onProblem: (text: string) => void }) {
  const board = useRef<RummikubBoard>(null);
  const [answer, setAnswer] = useState("");
  const [table] = useState(() => tableFor(puzzle, () => setAnswer("")));
  useEffect(() => {
    board.current!.controller = table;
  }, []);
  useEffect(() => {
    board.current!.texts = boardTexts();
  });
  const { number, preset, tilesToPlay, position } = puzzle;
  const ask = async (question: () => Promise<string>) => {
    onProblem("");
    try {
      setAnswer(await question());
    } catch (error) {
      onProblem(errorText(error));
    }
  };
  const check = () =>
    ask(async () => {
      const tableAfter = tableOf(table.intended.table);
      const { isSolved, violations, tilesMissing } = await service.puzzles.checkPuzzle({ preset, number, tableAfter });
      if (isSolved) return pt("solved");
      const wrong = [...new Set(violations.map(violationText))].join(" ");
      return wrong === "" ? pt("missing", { tiles: tilesList(tilesMissing) }) : `${pt("illegal")} ${wrong}`;
    });
  const solve = () =>
    ask(async () => {
      const { solution } = await service.puzzles.getPuzzle({ preset, number, revealSolution: true });
      table.lay(textsOf(solution?.tableAfter));
      return pt("solution");
    });
  const isAll = tilesToPlay === position!.rack.length;
  return (
    <>
      <p>
        {pt(isAll ? "all" : "some", { count: tilesToPlay })} <span class="badge">{levelText(puzzle.difficulty)}</span>
      </p>
      <rummikub-board ref={board} />
      <p role="status" class="answer">
        {answer}
      </p>
      <p class="buttons">
        <button type="button" class="primary" onClick={check}>
          {pt("check")}
        </button>{" "}
        <button type="button" onClick={solve}>
          {pt("solve")}
        </button>{" "}
        <a class="button quiet" href="#/">
          {t("home")}
        </a>
      </p>
    </>
  );
}

/** Returns the table of a puzzle, whose melds the service judges while the player lays tiles. */
function tableFor({ position }: Puzzle, onChange: () => void): LocalTable {
  const { ruleset, table: tableBefore, rack } = position!;
  return new LocalTable({
    table: textsOf(tableBefore),
    rack: rack.map(textOf),
    onChange,
    onJudge: async ({ table }, signal) => {
      const turn = { ruleset: ruleset!, hasMelded: true, tableBefore: tableBefore!, tableAfter: tableOf(table), rack };
      const { violations } = await service.validation.validateTurn(turn, { signal });
      return judgmentOf(
        table,
        violations.map((one) => ({ ...one, text: violationText(one), tiles: one.tiles.map(textOf) })),
      );
    },
  });
}

declare module "preact" {
  namespace JSX {
    interface IntrinsicElements {
      "rummikub-board": { ref: preact.Ref<RummikubBoard> };
    }
  }
}
