import { create, type DescMessage, isMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { isLost } from "./refusal.js";
import { defaultTimeoutMs, RETRY } from "./service-config.js";
import { backoffMs, sleep } from "./timing.js";

/** How a connection treats calls. */
export interface CallOptions {
  /** The address, for error messages. */
  target: string;
  /** Whether to retry calls that end as UNAVAILABLE. False for a transport that retries by itself. */
  retries: boolean;
  /** How long to wait for a server that does not answer, such as one that starts. In milliseconds. */
  startMs: number;
  /** Returns a fresh request id. */
  requestId: () => string;
}

/** Returns a transport that fills in request ids and deadlines, retries, and explains errors of the connection. */
export function dependable(base: Transport, options: CallOptions): Transport {
  const throttle = new Throttle();
  return {
    async unary(method, signal, timeoutMs, header, input, contextValues) {
      const request = withRequestId(method.input, input, options.requestId);
      const timeout = effectiveTimeout(timeoutMs ?? defaultTimeoutMs(method));
      const start = Date.now();
      for (let attempt = 1; ; attempt++) {
        const elapsed = Date.now() - start;
        const left = timeout === undefined ? undefined : Math.max(timeout - elapsed, 1);
        try {
          const response = await base.unary(method, signal, left, header, request, contextValues);
          throttle.onSuccess();
          return response;
        } catch (reason) {
          const error = connectionError(reason, signal);
          const delay = options.retries ? retryDelay(error, attempt, Date.now() - start) : undefined;
          if (delay === undefined || Date.now() - start + delay >= (timeout ?? Infinity)) {
            throw explained(error, method.toString(), options.target);
          }
          await sleep(delay, signal);
          if (signal?.aborted) throw ConnectError.from(signal.reason, Code.Canceled);
        }
      }
    },
    async stream(method, signal, timeoutMs, header, input, contextValues) {
      const timeout = effectiveTimeout(timeoutMs ?? defaultTimeoutMs(method));
      const explainedError = (reason: unknown) =>
        explained(connectionError(reason, signal), method.toString(), options.target);
      try {
        const response = await base.stream(method, signal, timeout, header, input, contextValues);
        return { ...response, message: mapErrors(response.message, explainedError) };
      } catch (reason) {
        throw explainedError(reason);
      }
    },
  };

  /** Returns the delay before the next attempt; undefined if the call is not retried. */
  function retryDelay(error: ConnectError, attempt: number, elapsedMs: number): number | undefined {
    if (error.code !== Code.Unavailable) return undefined;
    const backoff = backoffMs(attempt, RETRY.initialBackoffMs, RETRY.maxBackoffMs, RETRY.backoffMultiplier);
    // As with wait-for-ready, a call that no server answered uses up neither attempts nor tokens.
    if (isLost(error)) return elapsedMs < options.startMs ? backoff : undefined;
    const mayRetry = throttle.onFailure();
    if (attempt >= RETRY.maxAttempts || !mayRetry) return undefined;
    const pushback = error.metadata.get("grpc-retry-pushback-ms");
    if (pushback === null) return backoff;
    return Number(pushback) >= 0 ? Number(pushback) : undefined;
  }
}

/** Retry throttling: a failure costs a token, a success returns a part of one, and retries need half of the tokens. */
class Throttle {
  #tokens = RETRY.maxTokens;

  onSuccess(): void {
    this.#tokens = Math.min(this.#tokens + RETRY.tokenRatio, RETRY.maxTokens);
  }

  /** Returns whether the call may be retried. */
  onFailure(): boolean {
    this.#tokens = Math.max(this.#tokens - 1, 0);
    return this.#tokens > RETRY.maxTokens / 2;
  }
}

/** Returns a transport that sends a token with every call. */
export function authorized(base: Transport, token: string): Transport {
  return withHeader(base, "authorization", `Bearer ${token}`);
}

/** Returns a transport that sends a header with every call. */
export function withHeader(base: Transport, name: string, value: string): Transport {
  const withToken = (header: HeadersInit | undefined) => {
    const headers = new Headers(header);
    headers.set(name, value);
    return headers;
  };
  return {
    unary: (method, signal, timeoutMs, header, input, contextValues) =>
      base.unary(method, signal, timeoutMs, withToken(header), input, contextValues),
    stream: (method, signal, timeoutMs, header, input, contextValues) =>
      base.stream(method, signal, timeoutMs, withToken(header), input, contextValues),
  };
}

/** Returns a random UUID; also works on plain HTTP pages, which have no `crypto.randomUUID`. */
export function newRequestId(): string {
  if (typeof globalThis.crypto?.getRandomValues !== "function") {
    throw new Error("crypto.getRandomValues is missing; in React Native, import react-native-get-random-values first");
  }
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** Returns the request with a fresh request id if it has an empty one; does not change the caller's message. */
function withRequestId<I extends DescMessage>(
  schema: I,
  input: MessageInitShape<I>,
  requestId: () => string,
): MessageShape<I> {
  const message = isMessage(input, schema) ? input : create(schema, input);
  const field = schema.fields.find(({ name }) => name === "request_id");
  if (field === undefined || (message as Record<string, unknown>)[field.localName] !== "") return message;
  return { ...message, [field.localName]: requestId() };
}

/** As in Connect, a timeout of 0 or less means no deadline. */
function effectiveTimeout(timeoutMs: number | undefined): number | undefined {
  return timeoutMs === undefined || timeoutMs <= 0 ? undefined : timeoutMs;
}

/** Returns the error with the code that gRPC has for it: UNAVAILABLE if the connection failed. */
function connectionError(reason: unknown, signal: AbortSignal | undefined): ConnectError {
  const error = ConnectError.from(reason);
  const isFromServer = error.metadata.has("grpc-status");
  if (signal?.aborted || isFromServer || !isLost(error) || !isNetworkFailure(error)) return error;
  return new ConnectError(error.rawMessage, Code.Unavailable, error.metadata, undefined, error.cause);
}

/** Whether the network failed: an error of the HTTP/2 stream, or one with a code of Node's such as ECONNREFUSED. */
function isNetworkFailure(error: ConnectError): boolean {
  if (/^http\/2 stream closed/.test(error.rawMessage)) return true;
  for (let cause: unknown = error.cause; cause instanceof Error; cause = cause.cause) {
    if ("code" in cause && typeof cause.code === "string") return true;
  }
  return false;
}

/** Returns the error with a text that says what to do. */
function explained(error: ConnectError, method: string, target: string): ConnectError {
  if (error.details.length > 0) return error;
  const because = `(${error.rawMessage})`;
  switch (error.code) {
    case Code.Unavailable:
      return copy(
        error,
        `no service answers at ${target}; start one with \`make run\`, or check address and TLS ${because}`,
      );
    case Code.Unimplemented:
      return copy(
        error,
        `the service at ${target} does not know ${method}: it is older than this client; update it ${because}`,
      );
    default:
      return error;
  }
}

function copy(error: ConnectError, text: string): ConnectError {
  return new ConnectError(text, error.code, error.metadata, undefined, error.cause ?? error);
}

async function* mapErrors<T>(messages: AsyncIterable<T>, map: (reason: unknown) => unknown): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (reason) {
    throw map(reason);
  }
}
