/** What is wrong with an arrangement: marks of melds and tiles. */
import { type TileLike, tileText } from "./tiles.js";

export interface MeldJudgment {
  readonly isLegal: boolean;
  /** What is wrong, in the player's language. */
  readonly text?: string;
  /** The places of the tiles at fault, from 0. */
  readonly faulty?: readonly number[];
}

export interface Judgment {
  /** Whether the table may be played as it lies. */
  readonly isLegal: boolean;
  /** The judgments of the melds in their order. A meld without one has no mark. */
  readonly melds?: readonly (MeldJudgment | undefined)[];
  /** What is wrong with the table as a whole, such as too few points. */
  readonly text?: string;
}

/** A violation as ValidateTurn returns it: `subject` is "table_after[3]" for the fourth meld. */
export interface ViolationLike {
  readonly subject?: string;
  readonly text?: string;
  readonly tiles?: readonly TileLike[];
}

/**
 * Returns the judgment of a table for which ValidateTurn has returned violations. It marks the tiles that a violation
 * names; none if it names all of the meld. Without violations, the table is legal.
 */
export function judgmentOf(table: readonly (readonly string[])[], violations: readonly ViolationLike[]): Judgment {
  const at = violations.map(({ subject = "" }) => Number(/^(?:table_after|play\.table|table)\[(\d+)\]$/.exec(subject)?.[1] ?? -1));
  const melds = table.map((meld, i): MeldJudgment => {
    const own = violations.filter((_, j) => at[j] === i);
    const named = new Set(own.flatMap(({ tiles = [] }) => tiles.map(tileText)));
    const faulty = meld.flatMap((tile, place) => (named.has(tile) ? place : []));
    return {
      isLegal: own.length === 0,
      ...(own.length > 0 && { text: textOf(own) }),
      ...(faulty.length < meld.length && { faulty }),
    };
  });
  const others = violations.filter((_, j) => melds[at[j]!] === undefined);
  return { isLegal: violations.length === 0, melds, ...(others.length > 0 && { text: textOf(others) }) };
}

function textOf(violations: readonly ViolationLike[]): string {
  return [...new Set(violations.map(({ text = "" }) => text))].join(" ");
}
