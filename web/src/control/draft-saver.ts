/** Saves drafts: the newest one only, one call at a time, at most one every `intervalMs`. */
export class DraftSaver<Draft> {
  readonly #save: (draft: Draft) => Promise<unknown>;
  readonly #intervalMs: number;
  #newest: { draft: Draft } | undefined;
  #isRunning = false;

  constructor(save: (draft: Draft) => Promise<unknown>, intervalMs = 150) {
    this.#save = save;
    this.#intervalMs = intervalMs;
  }

  offer(draft: Draft): void {
    this.#newest = { draft };
    if (!this.#isRunning) void this.#run();
  }

  /** Drops a draft that is not sent yet, because the turn is over. */
  drop(): void {
    this.#newest = undefined;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#newest !== undefined) {
      const { draft } = this.#newest;
      this.#newest = undefined;
      // A refused draft is of a turn that is over; a lost one is replaced by the next.
      await this.#save(draft).catch(() => undefined);
      await new Promise((resolve) => setTimeout(resolve, this.#intervalMs));
    }
    this.#isRunning = false;
  }
}
