import type { Transport } from "@connectrpc/connect";

/** A transport over one connection, and what closes it. */
export interface Connection {
  readonly transport: Transport;
  readonly close: () => void;
}

/** Most streams of a connection. A server accepts 100 calls on it; one more waits in the client, without an error. */
const STREAMS_EACH = 50;

/** Returns a connection for all calls that opens further ones for many streams. */
export function expandable(connect: () => Connection): Connection {
  const first = { ...connect(), streams: 0 };
  const connections = [first];
  const enter = () => {
    let found = connections.find(({ streams }) => streams < STREAMS_EACH);
    if (found === undefined) connections.push((found = { ...connect(), streams: 0 }));
    found.streams += 1;
    return found;
  };
  return {
    transport: {
      unary: (method, signal, timeoutMs, header, input, contextValues) =>
        first.transport.unary(method, signal, timeoutMs, header, input, contextValues),
      async stream(method, signal, timeoutMs, header, input, contextValues) {
        const connection = enter();
        let isOpen = true;
        const leave = () => {
          if (isOpen) connection.streams -= 1;
          isOpen = false;
          signal?.removeEventListener("abort", leave);
        };
        signal?.addEventListener("abort", leave);
        try {
          const response = await connection.transport.stream(method, signal, timeoutMs, header, input, contextValues);
          return { ...response, message: until(response.message, leave) };
        } catch (error) {
          leave();
          throw error;
        }
      },
    },
    close: () => connections.forEach(({ close }) => close()),
  };
}

async function* until<T>(messages: AsyncIterable<T>, ended: () => void): AsyncGenerator<T> {
  try {
    yield* messages;
  } finally {
    ended();
  }
}
