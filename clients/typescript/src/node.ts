import type * as http2 from "node:http2";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { Rummikub, type RummikubOptions, targetUrl } from "./client.js";
import { expandable } from "./connections.js";

export * from "./index.js";

/** Options of TLS, a part of those of Node.js. Certificates and keys are in PEM. */
export interface TlsOptions {
  /** The authorities to trust, in place of those of Node.js. */
  ca?: string | Uint8Array | (string | Uint8Array)[];
  /** The certificate of this client, if the server asks for one. */
  cert?: string | Uint8Array;
  /** The key of `cert`. */
  key?: string | Uint8Array;
  /** The name in the server's certificate, if it is not that of the target. */
  servername?: string;
  /** False accepts any certificate of the server. */
  rejectUnauthorized?: boolean;
}

/** Options of `connect` in Node.js. */
export interface ConnectOptions extends Omit<RummikubOptions, "target"> {
  /** Whether to use TLS, or the options of TLS (`ca`, `cert`, `key`). An `https://` target uses it too. */
  tls?: boolean | TlsOptions;
}

/** Returns a connection over gRPC. The target is `host:port` or a URL. It connects with the first call. */
export function connect(target = "127.0.0.1:50051", { tls = false, ...options }: ConnectOptions = {}): Rummikub {
  const baseUrl = targetUrl(target, tls !== false);
  // The server closes connections that ping more often than every 10 s.
  const keepalive = { pingIntervalMs: 20_000, pingTimeoutMs: 10_000 };
  const { transport, close } = expandable(() => {
    const nodeOptions = typeof tls === "object" ? (tls as http2.SecureClientSessionOptions) : undefined;
    const sessionManager = new Http2SessionManager(baseUrl, keepalive, nodeOptions);
    return { transport: createGrpcTransport({ baseUrl, sessionManager }), close: () => sessionManager.abort() };
  });
  return Rummikub.over(transport, { ...options, target }, close);
}
