/** The steps of a suggested or explained turn, as tables one after the other. */
import { create } from "@bufbuild/protobuf";
import {
  StepKind,
  type StepMeld,
  type SuggestedStep,
  SuggestedStepSchema,
  type Suggestion,
  type Tile,
} from "rummikub-client";

export interface SteppedMeld {
  readonly key: string;
  readonly tiles: readonly Tile[];
  /** Whether the step changed the meld. */
  readonly isChanged: boolean;
}

/** Returns the steps of a suggestion. On a grid there is one: the tiles are laid in the cells of its table. */
export function stepsOf({ steps, tilesPlayed: tiles, table }: Suggestion): SuggestedStep[] {
  const isOnGrid = (table?.placements.length ?? 0) > 0;
  return isOnGrid ? [create(SuggestedStepSchema, { kind: StepKind.PLACE, tiles })] : steps;
}

/** Returns the table before the first step, and the table after each. */
export function tablesOf(
  before: readonly { tiles: readonly Tile[] }[],
  steps: readonly SuggestedStep[],
): SteppedMeld[][] {
  let table = before.map(({ tiles }, i): SteppedMeld => ({ key: `before${i}`, tiles, isChanged: false }));
  const tables = [table];
  for (const step of steps) {
    const after = new Map<string, readonly Tile[]>();
    if (step.source !== undefined) after.set(keyOf(step.source), step.left?.tiles ?? []);
    for (const part of step.parts) after.set(keyOf(part.meld), part.laid?.tiles ?? []);
    if (step.meld !== undefined && step.laid !== undefined) after.set(keyOf(step.meld), step.laid.tiles);
    const kept = table.map((meld) => {
      const tiles = after.get(meld.key);
      after.delete(meld.key);
      return { ...meld, tiles: tiles ?? meld.tiles, isChanged: tiles !== undefined };
    });
    const made = [...after].map(([key, tiles]) => ({ key, tiles, isChanged: true }));
    table = [...kept, ...made].filter((meld) => meld.tiles.length > 0);
    tables.push(table);
  }
  return tables;
}

function keyOf(meld: StepMeld | undefined): string {
  return meld?.place.case === "tableBefore" ? `before${meld.place.value}` : `after${meld?.place.value}`;
}
