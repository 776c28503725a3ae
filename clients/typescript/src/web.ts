import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { createGrpcWebTransport } from "@connectrpc/connect-web";
import { Rummikub, type RummikubOptions, targetUrl } from "./client.js";

export * from "./index.js";

/** Options of `connect` in browsers and React Native. */
export interface ConnectOptions extends Omit<RummikubOptions, "target"> {
  /** Whether a `host:port` target uses TLS. */
  tls?: boolean;
  /** Replaces the global `fetch`; React Native needs one that streams responses. */
  fetch?: typeof globalThis.fetch;
  /** See and change every attempt of a call, for example to log it. The token is among its headers. */
  interceptors?: Interceptor[];
}

/**
 * Returns a connection over gRPC-Web. The target is a URL or `host:port`; without one, the page's own origin. `close`
 * has nothing to close here: the browser owns the connections. Stop watches with their `stop` or `signal`.
 */
export function connect(
  target: string = globalThis.location?.origin ?? "127.0.0.1:8080",
  { tls = false, fetch, interceptors = [], ...options }: ConnectOptions = {},
): Rummikub {
  const transport = createGrpcWebTransport({
    baseUrl: targetUrl(target, tls),
    interceptors,
    fetch: reporting(fetch ?? ((input, init) => globalThis.fetch(input, init))),
  });
  return Rummikub.over(transport, { ...options, target });
}

/** Returns a fetch that reports a network failure, for fetch a TypeError, as UNAVAILABLE. */
function reporting(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    try {
      return await fetch(input, init);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw new ConnectError(error.message, Code.Unavailable, undefined, undefined, error);
    }
  };
}
