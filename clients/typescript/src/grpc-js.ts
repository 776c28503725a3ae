import { Readable } from "node:stream";
import {
  create,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Code, ConnectError, type StreamResponse, type Transport, type UnaryResponse } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import * as grpc from "@grpc/grpc-js";
import { Rummikub, type RummikubOptions } from "./client.js";
import { expandable } from "./connections.js";
import { SERVICE_CONFIG } from "./service-config.js";

export * from "./index.js";

/** Options of `connect` over @grpc/grpc-js. */
export interface ConnectOptions extends Omit<RummikubOptions, "target" | "retries" | "startMs"> {
  /** Whether to use TLS, or the credentials. */
  tls?: boolean | grpc.ChannelCredentials;
  /** The service config; the channel retries by it. */
  serviceConfig?: object;
  /** Further options of the channel. */
  channelOptions?: grpc.ChannelOptions;
}

/** Returns a connection over gRPC by @grpc/grpc-js, for programs with many calls. The target is `host:port`. */
export function connect(
  target = "127.0.0.1:50051",
  { tls = false, serviceConfig = SERVICE_CONFIG, channelOptions, ...options }: ConnectOptions = {},
): Rummikub {
  const credentials =
    typeof tls === "object" ? tls : tls ? grpc.credentials.createSsl() : grpc.credentials.createInsecure();
  const { transport, close } = expandable(() => {
    const client = new grpc.Client(target, credentials, {
      "grpc.service_config": JSON.stringify(serviceConfig),
      "grpc.use_local_subchannel_pool": 1, // else channels to one server share a connection
      "grpc.keepalive_time_ms": 20_000, // the server closes connections that ping more often than every 10 s
      "grpc.keepalive_timeout_ms": 10_000,
      ...channelOptions,
    });
    return { transport: grpcJsTransport(client), close: () => client.close() };
  });
  return Rummikub.over(transport, { ...options, target, retries: false }, close);
}

/** Returns a Connect transport over a client of @grpc/grpc-js. */
export function grpcJsTransport(client: grpc.Client): Transport {
  return {
    unary: (method, signal, timeoutMs, header, input) =>
      new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        const response = {
          stream: false,
          service: method.parent,
          method,
          header: new Headers(),
          trailer: new Headers(),
        };
        const { path, serialize, parse } = codec(method);
        const call = client.makeUnaryRequest(
          path,
          serialize,
          parse,
          input,
          toMetadata(header),
          deadline(timeoutMs),
          (error, message) => {
            signal?.removeEventListener("abort", cancel);
            if (error === null)
              resolve({ ...response, message } as UnaryResponse<typeof method.input, typeof method.output>);
            else reject(toError(error, client, signal));
          },
        );
        const cancel = () => call.cancel();
        signal?.addEventListener("abort", cancel);
        call.on("metadata", (metadata) => copyTo(response.header, metadata));
        call.on("status", ({ metadata }) => copyTo(response.trailer, metadata));
      }),
    async stream(method, signal, timeoutMs, header, input) {
      signal?.throwIfAborted();
      const { path, serialize, parse } = codec(method);
      const call = client.makeBidiStreamRequest(path, serialize, parse, toMetadata(header), deadline(timeoutMs));
      const cancel = () => call.cancel();
      signal?.addEventListener("abort", cancel);
      const response = { stream: true, service: method.parent, method, header: new Headers(), trailer: new Headers() };
      call.on("metadata", (metadata) => copyTo(response.header, metadata));
      call.on("status", ({ metadata }) => copyTo(response.trailer, metadata));
      call.on("error", () => {}); // reading the messages throws it; without a listener, an unread call would end the program
      const requests = Readable.from(input).on("error", cancel);
      requests.pipe(call as unknown as NodeJS.WritableStream).on("close", () => requests.destroy());
      const message = receive(
        call,
        (error) => toError(error, client, signal),
        () => {
          signal?.removeEventListener("abort", cancel);
          cancel();
        },
      );
      return { ...response, message } as StreamResponse<typeof method.input, typeof method.output>;
    },
  };
}

async function* receive(
  call: AsyncIterable<unknown>,
  toError: (error: grpc.ServiceError) => ConnectError,
  close: () => void,
) {
  try {
    yield* call;
  } catch (error) {
    throw toError(error as grpc.ServiceError);
  } finally {
    close();
  }
}

function codec<I extends DescMessage, O extends DescMessage>(method: DescMethod & { input: I; output: O }) {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    serialize: (message: MessageInitShape<I>) => Buffer.from(toBinary(method.input, create(method.input, message))),
    parse: (bytes: Buffer): MessageShape<O> => fromBinary(method.output, bytes),
  };
}

function deadline(timeoutMs: number | undefined): grpc.CallOptions {
  return timeoutMs === undefined || timeoutMs <= 0 ? {} : { deadline: Date.now() + timeoutMs };
}

function toMetadata(header: HeadersInit | undefined): grpc.Metadata {
  const metadata = new grpc.Metadata({ waitForReady: true }); // grpc-js does not read it from the service config
  new Headers(header).forEach((value, key) =>
    metadata.set(key, key.endsWith("-bin") ? Buffer.from(value, "base64") : value),
  );
  return metadata;
}

function copyTo(headers: Headers, metadata: grpc.Metadata): void {
  for (const [key, values] of Object.entries(metadata.toHttp2Headers())) headers.set(key, String(values));
}

function toError(error: grpc.ServiceError, client: grpc.Client, signal: AbortSignal | undefined): ConnectError {
  const headers = new Headers();
  if (error.metadata instanceof grpc.Metadata) copyTo(headers, error.metadata);
  headers.set("grpc-status", String(error.code ?? Code.Unknown));
  headers.set("grpc-message", encodeURIComponent(error.details ?? error.message));
  const found = findTrailerError(headers) ?? ConnectError.from(error);
  const isConnected = client.getChannel().getConnectivityState(false) === grpc.connectivityState.READY;
  if (found.code !== Code.DeadlineExceeded || isConnected || signal?.aborted) return found;
  return new ConnectError(found.rawMessage, Code.Unavailable, found.metadata); // waited for a server until the deadline
}
