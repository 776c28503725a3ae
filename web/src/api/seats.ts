/**
 * The seats that this browser holds. JoinGame and CreateGame return a token only once, so it is stored at once.
 *
 * A tab remembers its own seats in sessionStorage: two tabs can play in one game. localStorage remembers the last ones
 * for a browser that was closed.
 */
export interface Seat {
  readonly gameId: string;
  readonly token: string;
  /** 0 for the host token, which has no seat. */
  readonly seat: number;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly time: number;
  /** The server's commitment to the deals when the seat was taken, in hexadecimal digits; empty for none. */
  readonly commitment?: string;
  /** This player's part in the shuffles, in hexadecimal digits; none if the game had started before it could be sent. */
  readonly seed?: string;
}

const KEY = "rummikub.seats";
const MOST = 20;

type Storage = Pick<globalThis.Storage, "getItem" | "setItem">;

export class Seats {
  readonly #tab: Storage;
  readonly #browser: Storage;

  constructor(tab: Storage, browser: Storage) {
    this.#tab = tab;
    this.#browser = browser;
  }

  /** Returns this tab's seat in a game, else the browser's. */
  find(gameId: string): Seat | undefined {
    const isIt = (seat: Seat) => seat.gameId === gameId;
    return read(this.#tab).find(isIt) ?? read(this.#browser).find(isIt);
  }

  /** Returns the seats, newest first. */
  all(): Seat[] {
    const seats = [...read(this.#tab), ...read(this.#browser)];
    const first = seats.filter((seat, i) => seats.findIndex(({ gameId }) => gameId === seat.gameId) === i);
    return first.sort((a, b) => b.time - a.time);
  }

  keep(seat: Seat): void {
    for (const storage of [this.#tab, this.#browser]) {
      const others = read(storage).filter(({ gameId }) => gameId !== seat.gameId);
      write(storage, [seat, ...others].slice(0, MOST));
    }
  }

  /** Removes a seat. Another seat in its game stays: two tabs can play in one game. */
  forget({ gameId, token }: Pick<Seat, "gameId" | "token">): void {
    for (const storage of [this.#tab, this.#browser]) {
      write(
        storage,
        read(storage).filter((seat) => seat.gameId !== gameId || seat.token !== token),
      );
    }
  }
}

function read(storage: Storage): Seat[] {
  try {
    const value: unknown = JSON.parse(storage.getItem(KEY) ?? "[]");
    return Array.isArray(value) ? value : [];
  } catch {
    return [];
  }
}

function write(storage: Storage, seats: readonly Seat[]): void {
  try {
    storage.setItem(KEY, JSON.stringify(seats));
  } catch {
    // A full or forbidden storage loses the seat with the page, nothing else.
  }
}
