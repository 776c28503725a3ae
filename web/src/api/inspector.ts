/** A log of all calls and updates with their JSON, for the developer's drawer: an interceptor of the transport. */
import { type DescMessage, type Message, toJson } from "@bufbuild/protobuf";
import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { explain } from "rummikub-client";

export interface Entry {
  readonly id: number;
  readonly time: Date;
  readonly method: string;
  readonly request: string;
  readonly token: boolean;
  readonly state: "open" | "ok" | "error";
  /** Milliseconds until the answer, or until the end of the stream. */
  readonly ms?: number;
  /** The answer, or the updates of a stream, newest last. */
  readonly answers: readonly string[];
  readonly error?: string;
}

/** Fields that are as secret as a token. A repeated JoinGame with the same request id returns the token. */
const SECRET = /^(hostToken|seatToken|requestId)$/;
const MOST_ENTRIES = 300;
const MOST_ANSWERS = 200;

export class Inspector {
  #entries: readonly Entry[] = [];
  #next = 1;
  readonly #listeners = new Set<() => void>();

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  clear(): void {
    this.#entries = this.#entries.filter((entry) => entry.state === "open").map((entry) => ({ ...entry, answers: [] }));
    this.#tell();
  }

  /** The interceptor for `connect(url, { interceptors: [...] })`. */
  readonly interceptor: Interceptor = (next) => async (call) => {
    const start = performance.now();
    const toJsonText = (message: Message) => maskedJson(call.method.input, message);
    const id = this.#add({
      method: `${call.service.typeName.split(".").at(-1)}.${call.method.name}`,
      request: call.stream ? "" : toJsonText(call.message),
      token: call.header.has("authorization"),
    });
    const end = (state: "ok" | "error", error?: unknown) =>
      this.#change(id, () => ({
        state,
        ms: performance.now() - start,
        ...(error !== undefined && { error: explain(ConnectError.from(error)) }),
      }));
    const answer = (message: Message) =>
      this.#change(id, ({ answers }) => ({
        answers: [...answers.slice(1 - MOST_ANSWERS), maskedJson(call.method.output, message)],
      }));
    try {
      // The request of a stream can be read only while it is sent.
      const onRequest = (message: Message) => this.#change(id, () => ({ request: toJsonText(message) }));
      const response = await next(call.stream ? { ...call, message: tapped(call.message, onRequest) } : call);
      if (!response.stream) {
        answer(response.message);
        end("ok");
        return response;
      }
      return { ...response, message: tapped(response.message, answer, end) };
    } catch (error) {
      end("error", error);
      throw error;
    }
  };

  #add(entry: Pick<Entry, "method" | "request" | "token">): number {
    const id = this.#next++;
    const added: Entry = { ...entry, id, time: new Date(), state: "open", answers: [] };
    this.#entries = [...this.#entries.slice(1 - MOST_ENTRIES), added];
    this.#tell();
    return id;
  }

  #change(id: number, change: (entry: Entry) => Partial<Entry>): void {
    this.#entries = this.#entries.map((entry) => (entry.id === id ? { ...entry, ...change(entry) } : entry));
    this.#tell();
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}

async function* tapped<T extends Message>(
  messages: AsyncIterable<T>,
  onMessage: (message: T) => void,
  onEnd: (state: "ok" | "error", error?: unknown) => void = () => {},
): AsyncGenerator<T> {
  let failure: { error: unknown } | undefined;
  try {
    for await (const message of messages) {
      onMessage(message);
      yield message;
    }
  } catch (error) {
    failure = { error };
    throw error;
  } finally {
    if (failure === undefined) onEnd("ok");
    else onEnd("error", failure.error);
  }
}

/** Returns a message as JSON without secrets. */
export function maskedJson(schema: DescMessage, message: Message): string {
  const mask = (key: string, value: unknown) =>
    SECRET.test(key) && typeof value === "string" && value !== "" ? "(masked)" : value;
  try {
    return JSON.stringify(toJson(schema, message), mask, 2);
  } catch (error) {
    return `// no JSON: ${String(error)}`; // a value without a JSON form must not stop the call
  }
}
