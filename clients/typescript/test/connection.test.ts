import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { test } from "node:test";
import { Code, ConnectError, createRouterTransport, type Interceptor, type ServiceImpl } from "@connectrpc/connect";
import {
  AnalysisService,
  connect,
  ErrorReason,
  explain,
  GameService,
  RefusalSchema,
  refusal,
  Rummikub,
  type RummikubOptions,
  ValidationService,
} from "rummikub-client";
import { connect as connectGrpcJs } from "rummikub-client/grpc-js";
import { connect as connectWeb } from "rummikub-client/web";
import { defaultTimeoutMs, SERVICE_CONFIG } from "../src/service-config.js";

type Games = Partial<ServiceImpl<typeof GameService>>;

function client(games: Games, options: RummikubOptions = {}): Rummikub {
  return Rummikub.over(
    createRouterTransport((router) => router.service(GameService, games)),
    options,
  );
}

/** Returns an UNAVAILABLE of the service itself. */
function overloaded(pushbackMs?: number): ConnectError {
  const metadata = pushbackMs === undefined ? undefined : { "grpc-retry-pushback-ms": String(pushbackMs) };
  return new ConnectError("busy", Code.Unavailable, metadata, [
    { desc: RefusalSchema, value: { reason: ErrorReason.OVERLOADED } },
  ]);
}

test("the service config is that of all clients", async () => {
  const shared = await readFile(new URL("../../../service_config.json", import.meta.url), "utf8");
  assert.deepEqual(SERVICE_CONFIG, JSON.parse(shared));
});

test("each method has the deadline of the service config", () => {
  assert.equal(defaultTimeoutMs(GameService.method.createGame), 10_000);
  assert.equal(defaultTimeoutMs(AnalysisService.method.suggestTurn), 70_000);
  assert.equal(defaultTimeoutMs(GameService.method.watchGame), undefined);
  assert.equal(defaultTimeoutMs(ValidationService.method.streamValidateTurns), undefined);
});

test("an empty request id is filled in once for all attempts, and the caller's request stays as it is", async () => {
  const ids: string[] = [];
  const { games } = client({
    createGame({ requestId }) {
      ids.push(requestId);
      if (ids.length < 3) throw overloaded(1);
      return {};
    },
  });
  const request = {};
  await games.createGame(request);
  assert.equal(new Set(ids).size, 1);
  assert.equal(ids.length, 3);
  assert.match(ids[0] ?? "", /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.deepEqual(request, {});
  await games.createGame(request);
  assert.notEqual(ids[3], ids[0]);
  await games.createGame({ requestId: "of the caller itself" });
  assert.equal(ids[4], "of the caller itself");
});

test("a call ends after five attempts, and a negative pushback ends the attempts", async () => {
  for (const [pushback, expected] of [
    [1, 5],
    [-1, 1],
  ] as const) {
    let attempts = 0;
    const { games } = client({
      getGame() {
        attempts++;
        throw overloaded(pushback);
      },
    });
    await assert.rejects(games.getGame({}), (error) => refusal(error)?.reason === ErrorReason.OVERLOADED);
    assert.equal(attempts, expected);
  }
});

test("retries stop while most calls fail, and return with successes", async () => {
  let attempts = 0;
  let isUp = false;
  const { games } = client({
    getGame() {
      attempts++;
      if (isUp) return {};
      throw overloaded(1);
    },
  });
  const failures = SERVICE_CONFIG.retryThrottling.maxTokens / 2;
  while (attempts < failures) await assert.rejects(games.getGame({}));
  attempts = 0;
  await assert.rejects(games.getGame({}));
  assert.equal(attempts, 1);
  isUp = true;
  for (let i = 0; i < 30; i++) await games.getGame({});
  isUp = false;
  attempts = 0;
  await assert.rejects(games.getGame({}));
  assert.ok(attempts > 1);
});

test("an error that is not UNAVAILABLE is not retried", async () => {
  let attempts = 0;
  const { games } = client({
    getGame() {
      attempts++;
      throw new ConnectError("no", Code.NotFound);
    },
  });
  await assert.rejects(games.getGame({}));
  assert.equal(attempts, 1);
});

test("seated sends the token with each call", async () => {
  const tokens: (string | null)[] = [];
  const lobby = client({
    getGame(_, context) {
      tokens.push(context.requestHeader.get("authorization"));
      return {};
    },
  });
  await lobby.seated("secret").games.getGame({});
  await lobby.games.getGame({});
  assert.deepEqual(tokens, ["Bearer secret", null]);
});

test("an aborted call does not wait for its retry", async () => {
  const abort = new AbortController();
  const { games } = client({
    getGame() {
      setTimeout(() => abort.abort(), 10);
      throw overloaded(5_000);
    },
  });
  const start = Date.now();
  await assert.rejects(games.getGame({}, { signal: abort.signal }));
  assert.ok(Date.now() - start < 4_500);
});

test("a refusal explains itself; an unknown reason keeps its number", () => {
  const refused = new ConnectError("not now", Code.FailedPrecondition, undefined, [
    { desc: RefusalSchema, value: { reason: 5000 as ErrorReason, metadata: { seat: "2" } } },
  ]);
  const { games } = client({
    getGame() {
      throw refused;
    },
  });
  return assert.rejects(games.getGame({}), (received) => {
    assert.equal(refusal(received)?.reason, 5000);
    assert.equal(refusal(received)?.name, "5000");
    assert.deepEqual(refusal(received)?.metadata, { seat: "2" });
    assert.match(explain(received), /does not know the reason 5000: it is older than the service/);
    return true;
  });
});

test("an unknown RPC says that the server is older", async () => {
  await assert.rejects(
    client({}).games.createRematch({}),
    /does not know .*CreateRematch: it is older than this client/,
  );
});

test("an absent server is explained by each transport", async () => {
  for (const service of [
    connect("127.0.0.1:1", { startMs: 0 }),
    connectWeb("127.0.0.1:1", { startMs: 0 }),
    connectGrpcJs("127.0.0.1:1"),
  ]) {
    await assert.rejects(service.games.getGame({}, { timeoutMs: 4_000 }), (error) => {
      assert.ok(error instanceof ConnectError);
      assert.equal(error.code, Code.Unavailable);
      assert.match(explain(error), /no service answers at 127\.0\.0\.1:1; start one with `make run`/);
      return true;
    });
    service.close();
  }
});

test("a call waits for a server that starts", async () => {
  const port = await freePort();
  const service = connect(`127.0.0.1:${port}`, { startMs: 20_000 });
  const call = service.games.getGame({}, { timeoutMs: 30_000 }).catch((error: unknown) => error);
  const start = Date.now();
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const http2 = await import("node:http2");
  const server = http2.createServer().on("stream", (stream) => {
    stream.respond(
      { "content-type": "application/grpc", "grpc-status": "5", "grpc-message": "none" },
      { endStream: true },
    );
  });
  server.listen(port, "127.0.0.1");
  const error = await call;
  assert.ok(error instanceof ConnectError && error.code === Code.NotFound, String(error));
  assert.ok(Date.now() - start < 20_000);
  service.close();
  server.close();
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" && address ? address.port : 0));
    });
  });
}

test("an interceptor of the web transport sees each call with its token", async () => {
  const seen: string[] = [];
  const interceptors: Interceptor[] = [
    (next) => async (call) => {
      seen.push(`${call.method.name} ${call.header.get("authorization")}`);
      return next(call);
    },
  ];
  const service = connectWeb("127.0.0.1:1", { startMs: 0, interceptors }).seated("secret");
  await assert.rejects(service.games.getGame({ gameId: "g" }));
  assert.deepEqual(seen, ["GetGame Bearer secret"]);
});
