/** How the player has arranged the rack of a game, over reloads of the page. */
import { Tile } from "rummikub-client";
import type { RackOrder } from "../model/tiles.js";

export interface RackNotes {
  /** The tiles in order; unspecified for an empty slot. */
  readonly tiles: readonly Tile[];
  /** The order that is kept. */
  readonly sorting?: RackOrder | undefined;
}

type Storage = Pick<globalThis.Storage, "getItem" | "setItem">;

export class RackMemory {
  readonly #storage: Storage;
  readonly #key: string;

  constructor(storage: Storage, gameId: string) {
    this.#storage = storage;
    this.#key = `rummikub.rack.${gameId}`;
  }

  read(): RackNotes | undefined {
    try {
      return JSON.parse(this.#storage.getItem(this.#key) ?? "null") ?? undefined;
    } catch {
      return undefined;
    }
  }

  write(notes: RackNotes): void {
    try {
      this.#storage.setItem(this.#key, JSON.stringify(notes));
    } catch {
      // A full or forbidden storage loses the order with the page, nothing else.
    }
  }
}
