/** Asks the service about the newest arrangement only: debounced, and without answers that came too late. */
export class Judge<Question, Answer> {
  readonly #ask: (question: Question, signal: AbortSignal) => Promise<Answer>;
  readonly #onAnswer: (question: Question, answer: Answer) => void;
  readonly #delayMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #call: AbortController | undefined;

  constructor(
    ask: (question: Question, signal: AbortSignal) => Promise<Answer>,
    onAnswer: (question: Question, answer: Answer) => void,
    delayMs = 80,
  ) {
    this.#ask = ask;
    this.#onAnswer = onAnswer;
    this.#delayMs = delayMs;
  }

  /** Asks after the delay, unless another question comes first. An answer to an earlier question is dropped. */
  consider(question: Question): void {
    this.cancel();
    this.#timer = setTimeout(() => void this.#send(question), this.#delayMs);
  }

  cancel(): void {
    clearTimeout(this.#timer);
    this.#call?.abort();
  }

  async #send(question: Question): Promise<void> {
    const call = new AbortController();
    this.#call = call;
    try {
      const answer = await this.#ask(question, call.signal);
      if (!call.signal.aborted) this.#onAnswer(question, answer);
    } catch {
      // Marks are an aid: without an answer there are none, and PlayTurn judges in any case.
    }
  }
}
