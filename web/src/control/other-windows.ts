/** The other windows of this browser in which a seat is open: what is arranged in one is seen in all. */
import type { LaidTable } from "../model/layout.js";

export interface Moved {
  readonly seat: number;
  /** The revision at which the turn began. */
  readonly turn: number;
  readonly table: LaidTable;
  /** The oldest tile that is pulled from the River. */
  readonly riverIndex?: number | undefined;
}

type Channel = Pick<BroadcastChannel, "postMessage" | "close" | "onmessage">;

export class OtherWindows {
  /** Called when the player has moved tiles in another window. */
  onMoved: (moved: Moved) => void = () => {};
  readonly #channel: Channel;

  constructor(channel: Channel) {
    this.#channel = channel;
    channel.onmessage = ({ data }: MessageEvent<Moved>) => this.onMoved(data);
  }

  tell(moved: Moved): void {
    this.#channel.postMessage(moved);
  }

  close(): void {
    this.#channel.close();
  }
}
