/** A table of either layout that cannot be changed. */
import type { Table, Tile } from "rummikub-client";
import { lazy } from "./lazy.js";
import { StaticTable } from "./tile.js";

const StaticGrid = lazy(async () => (await import("./grid-table.js")).StaticGrid);

export interface ShownTableProps {
  table: Table | undefined;
  /** The table before the play: what a grid has besides is marked. */
  before: Table | undefined;
  /** The tiles that are marked in melds. */
  fresh?: readonly Tile[];
}

export function ShownTable({ table, before, fresh = [] }: ShownTableProps) {
  if (table === undefined || table.placements.length === 0)
    return <StaticTable melds={table?.melds ?? []} fresh={fresh} />;
  return <StaticGrid placements={table.placements} before={before?.placements ?? []} />;
}
