/** The server's clock, estimated from its answers. Times are in milliseconds; `local` is a monotonic clock of the page. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";

export function timestampMs({ seconds, nanos }: Timestamp): number {
  return Number(seconds) * 1000 + nanos / 1e6;
}

/**
 * The offset of the server's clock lies between `server - received` and `server - sent` of every answer. Each answer
 * narrows the bounds; the estimate is their middle.
 */
export class ServerClock {
  #least = -Infinity;
  #most = Infinity;

  /** Takes a time of the server, from an answer received at `received` to a call sent at `sent`, if there was one. */
  observe(server: number, received: number, sent?: number): void {
    const least = Math.max(this.#least, server - received);
    const most = Math.min(this.#most, sent === undefined ? Infinity : server - sent);
    if (least <= most) {
      this.#least = least;
      this.#most = most;
    } else {
      // One of the clocks jumped, for example because the computer slept.
      this.#least = server - received;
      this.#most = sent === undefined ? Infinity : server - sent;
    }
  }

  /** Returns the server's time at a time of the page. */
  at(local: number): number {
    const offset = this.#most === Infinity ? this.#least : (this.#least + this.#most) / 2;
    return local + (Number.isFinite(offset) ? offset : 0);
  }

  /** Returns whole seconds until a time of the server, at least 0. */
  secondsUntil(time: Timestamp, local: number): number {
    return Math.max(0, Math.ceil((timestampMs(time) - this.at(local)) / 1000));
  }
}

/** Returns seconds as `1:05`. */
export function clockText(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
