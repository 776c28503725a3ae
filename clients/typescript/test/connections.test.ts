import assert from "node:assert/strict";
import { test } from "node:test";
import { createRouterTransport } from "@connectrpc/connect";
import { GameService, Rummikub } from "rummikub-client";
import { expandable } from "../src/connections.js";

/** Returns a client, the number of its connections, and a function that ends the streams that are open. */
function expanding() {
  let connections = 0;
  let end = () => {};
  let ended = new Promise<void>((resolve) => (end = resolve));
  const { transport } = expandable(() => {
    connections += 1;
    const games = {
      async *watchGame() {
        const end = ended;
        yield {};
        await end;
      },
    };
    return { transport: createRouterTransport((router) => router.service(GameService, games)), close: () => {} };
  });
  const endAll = () => {
    end();
    ended = new Promise<void>((resolve) => (end = resolve));
  };
  return { games: Rummikub.over(transport).games, count: () => connections, endAll };
}

test("every fifty streams have a connection, and those that end make room", async () => {
  const { games, count, endAll } = expanding();
  for (let times = 0; times < 3; times++) {
    const streams = Array.from({ length: 101 }, () => games.watchGame({})[Symbol.asyncIterator]());
    await Promise.all(streams.map((stream) => stream.next()));
    assert.equal(count(), 3);
    endAll();
    await Promise.all(streams.map((stream) => stream.next()));
  }
});

test("a stream whose caller aborts it makes room", async () => {
  const { games, count } = expanding();
  for (let times = 0; times < 3; times++) {
    const caller = new AbortController();
    const streams = Array.from({ length: 50 }, () => games.watchGame({}, { signal: caller.signal }));
    await Promise.all(streams.map((stream) => stream[Symbol.asyncIterator]().next()));
    caller.abort();
  }
  assert.equal(count(), 1);
});
