/** Violations of the rules, as marks on melds and tiles. */
import type { DiscardOpening, Violation } from "rummikub-client";
import type { Arrangement, Piece } from "./arrangement.js";

export interface MeldMark {
  readonly isLegal: boolean;
  readonly violations: readonly Violation[];
  /** The pieces at fault. */
  readonly pieces: ReadonlySet<number>;
}

export interface Marks {
  /** Marks of melds by their ids. */
  readonly melds: ReadonlyMap<number, MeldMark>;
  /** The violations that belong to no meld. */
  readonly table: readonly Violation[];
  readonly isLegal: boolean;
}

/**
 * Returns the marks of an arrangement that was judged. Subjects are `table_after[3]` in ValidateTurn, and
 * `play.table[3]` in a refused PlayTurn; `table[3]` in a game of discards.
 */
export function marksOf(arrangement: Arrangement, violations: readonly Violation[]): Marks {
  const byMeld = new Map<number, Violation[]>();
  const table: Violation[] = [];
  for (const violation of violations) {
    const index = /^(?:table_after|play\.table|draft\.table|table)\[(\d+)\]$/.exec(violation.subject)?.[1];
    const meld = index === undefined ? undefined : arrangement.melds[Number(index)];
    if (meld === undefined) table.push(violation);
    else byMeld.set(meld.id, [...(byMeld.get(meld.id) ?? []), violation]);
  }
  const isMine = ({ origin }: Piece) => origin !== "table";
  const melds = new Map(
    arrangement.melds.map((meld): [number, MeldMark] => {
      const own = byMeld.get(meld.id) ?? [];
      const pieces = own.flatMap(({ tiles }) => {
        const faulty = new Set(tiles);
        const all = meld.pieces.filter((piece) => faulty.has(piece.tile));
        // A violation that names all tiles is about the meld: then mark what the player has laid.
        return all.length < meld.pieces.length ? all : meld.pieces.filter(isMine);
      });
      return [meld.id, { isLegal: own.length === 0, violations: own, pieces: new Set(pieces.map(({ id }) => id)) }];
    }),
  );
  return { melds, table, isLegal: violations.length === 0 };
}

/** A judged arrangement: the marks, and what a legal turn would do. */
export interface Judgment {
  readonly arrangement: Arrangement;
  readonly marks: Marks;
  readonly answer: {
    readonly points?: number;
    readonly goesOut?: boolean;
    /** The player's opening in 101 Okey, if the step is one. */
    readonly opening?: DiscardOpening | undefined;
    /** Whether it is a Foot of International Rummikub. */
    readonly isFoot?: boolean;
  };
}
