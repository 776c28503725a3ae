import assert from "node:assert/strict";
import { test } from "node:test";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport, type HandlerContext } from "@connectrpc/connect";
import {
  ErrorReason,
  GameService,
  RefusalSchema,
  Rummikub,
  type Update,
  WatchContent,
  type WatchGameRequest,
  type WatchGameResponseSchema,
  type WatchOptions,
} from "rummikub-client";

type Response = MessageInitShape<typeof WatchGameResponseSchema>;
type Stream = (context: HandlerContext) => AsyncGenerator<Response>;

const FAST: WatchOptions = { backoffMs: [5, 10], silenceMs: 10_000, patienceMs: 20_000 };

const snapshot = (revision: number): Response => ({ update: { case: "snapshot", value: at(revision) } });
const change = (revision: number): Response => ({ update: { case: "change", value: at(revision) } });
const game = (revision: number): Response => ({ update: { case: "game", value: at(revision) } });
const heartbeat: Response = { update: { case: "heartbeat", value: { revision: 1 } } };
const at = (revision: number) => ({ revision, etag: `e${revision}` });

const ruleset = { game: { case: "melding" as const, value: { preset: 2 } } };
/** A game with what never changes. */
const whole = { ...at(3), ruleset, visibility: 1, labels: { region: "eu" } };

const lost = (code = Code.Unavailable) => new ConnectError("lost", code);
const refused = (code: Code, reason: ErrorReason) =>
  new ConnectError("refused", code, undefined, [{ desc: RefusalSchema, value: { reason } }]);

/** Returns a stream of these messages, which then ends, or fails with an error among them. */
function sends(...parts: (Response | ConnectError)[]): Stream {
  return async function* () {
    for (const part of parts) {
      if (part instanceof ConnectError) throw part;
      yield part;
    }
  };
}

/** Returns a stream of these messages, which then is silent. */
function hangs(...parts: Response[]): Stream {
  return async function* (context) {
    yield* parts;
    await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
  };
}

/** Returns a client whose watches get these streams in order, the last one again and again; and their requests. */
function serving(...streams: Stream[]) {
  const requests: WatchGameRequest[] = [];
  const transport = createRouterTransport((router) =>
    router.service(GameService, {
      watchGame(request, context) {
        requests.push(request);
        return streams[Math.min(requests.length, streams.length) - 1]!(context);
      },
    }),
  );
  return { service: Rummikub.over(transport), requests };
}

const text = ({ case: kind, value }: Update) => `${kind} ${"revision" in value ? value.revision : ""}`.trim();
const resumed = (requests: WatchGameRequest[]) => requests.map(({ etag }) => etag);

/** Returns the updates as text; calls `act` after each. */
async function collect(updates: AsyncIterable<Update>, act: (seen: string) => void = () => {}): Promise<string[]> {
  const seen: string[] = [];
  for await (const update of updates) {
    seen.push(text(update));
    act(text(update));
  }
  return seen;
}

test("a watch that is cut resumes with its etag; heartbeats are not passed on", async () => {
  const { service, requests } = serving(
    sends(snapshot(3), heartbeat, change(4), lost()),
    sends(heartbeat, lost(Code.Internal)),
    sends(change(5), lost(Code.Canceled)),
    sends(change(6)),
  );
  assert.deepEqual(await collect(service.watch("g", FAST)), ["snapshot 3", "change 4", "change 5", "change 6"]);
  assert.deepEqual(resumed(requests), ["", "e4", "e4", "e5"]);
});

test("every game has what only the first one of a stream has", async () => {
  for (const kind of ["snapshot", "game"] as const) {
    const { service } = serving(sends({ update: { case: kind, value: whole } }, game(4), lost()), sends(game(5)));
    const games = [];
    for await (const { case: found, value } of service.watch("g", FAST)) {
      assert.ok(found === "snapshot" || found === "game");
      games.push([value.revision, value.ruleset?.game.value?.preset, value.visibility, value.labels]);
    }
    const { visibility, labels } = whole;
    assert.deepEqual(
      games,
      [3, 4, 5].map((revision) => [revision, ruleset.game.value.preset, visibility, labels]),
    );
  }
});

test("a watch reports when its stream is lost and when it is open again", async () => {
  const { service } = serving(
    sends(snapshot(3), heartbeat, lost()),
    sends(lost()),
    sends(change(4), lost()),
    sends(change(5)),
  );
  const seen: (string | boolean)[] = [];
  const options = { ...FAST, onConnection: (isOpen: boolean) => seen.push(isOpen) };
  await collect(service.watch("g", options), (update) => seen.push(update));
  assert.deepEqual(seen, [true, "snapshot 3", false, true, "change 4", false, true, "change 5"]);
});

test("a watch starts over when the history is lost", async () => {
  const { service, requests } = serving(
    sends(snapshot(9), lost()),
    sends(refused(Code.OutOfRange, ErrorReason.HISTORY_UNAVAILABLE)),
    sends(snapshot(7), change(8)),
  );
  assert.deepEqual(await collect(service.watch("g", FAST)), ["snapshot 9", "snapshot 7", "change 8"]);
  assert.deepEqual(resumed(requests), ["", "e9", ""]);
});

test("after `closing`, a watch waits as long as the server asks", async () => {
  const closing: Response = { update: { case: "closing", value: { retryDelay: { seconds: 0n, nanos: 150_000_000 } } } };
  const { service, requests } = serving(sends(snapshot(1), closing), sends(change(2)));
  const start = Date.now();
  assert.deepEqual(await collect(service.watch("g", FAST)), ["snapshot 1", "change 2"]);
  assert.ok(Date.now() - start >= 145);
  assert.deepEqual(resumed(requests), ["", "e1"]);
});

test("silence counts as a lost connection", async () => {
  const { service } = serving(hangs(snapshot(1)), sends(change(2)));
  assert.deepEqual(await collect(service.watch("g", { ...FAST, silenceMs: 50 })), ["snapshot 1", "change 2"]);
});

test("the time that the caller takes for an update is no silence", async () => {
  const { service, requests } = serving(sends(snapshot(1), change(2)));
  const seen: string[] = [];
  for await (const update of service.watch("g", { ...FAST, silenceMs: 300 })) {
    seen.push(text(update));
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
  assert.deepEqual(seen, ["snapshot 1", "change 2"]);
  assert.equal(requests.length, 1);
});

test("a watch gives up after its patience, with the last error", async () => {
  const { service, requests } = serving(sends(snapshot(1), lost()), sends(lost()));
  const start = Date.now();
  await assert.rejects(collect(service.watch("g", { ...FAST, patienceMs: 100 })), /lost/);
  assert.ok(Date.now() - start >= 95);
  assert.ok(requests.length > 1);
});

test("a refusal ends a watch; an overloaded server does not", async () => {
  const notFound = serving(sends(refused(Code.NotFound, ErrorReason.GAME_NOT_FOUND)));
  await assert.rejects(collect(notFound.service.watch("g", FAST)));
  assert.equal(notFound.requests.length, 1);
  const tooMany = serving(sends(refused(Code.ResourceExhausted, ErrorReason.TOO_MANY_GUESSES)));
  await assert.rejects(collect(tooMany.service.watch("g", FAST)));
  const busy = serving(sends(refused(Code.ResourceExhausted, ErrorReason.OVERLOADED)), sends(snapshot(1)));
  assert.deepEqual(await collect(busy.service.watch("g", FAST)), ["snapshot 1"]);
});

test("stop, a signal and leaving the loop end a watch", async () => {
  const { service } = serving(hangs(snapshot(1)));
  const watch = service.watch("g", FAST);
  assert.deepEqual(await collect(watch, () => setTimeout(() => watch.stop(), 10)), ["snapshot 1"]);
  const abort = new AbortController();
  const signaled = service.watch("g", { ...FAST, signal: abort.signal });
  assert.deepEqual(await collect(signaled, () => setTimeout(() => abort.abort(), 10)), ["snapshot 1"]);
  assert.deepEqual(await collect(service.watch("g", { ...FAST, signal: AbortSignal.abort() })), []);
  for await (const _ of service.watch("g", FAST)) break;
});

test("a paused watch has no stream until it is resumed", async () => {
  const { service, requests } = serving(hangs(snapshot(1)), sends(change(2)));
  const watch = service.watch("g", FAST);
  const seen = await collect(watch, (update) => {
    if (update !== "snapshot 1") return;
    setTimeout(() => watch.pause(), 10);
    setTimeout(() => {
      assert.equal(requests.length, 1);
      watch.resume();
    }, 60);
  });
  assert.deepEqual(seen, ["snapshot 1", "change 2"]);
  assert.deepEqual(resumed(requests), ["", "e1"]);
  assert.equal(watch.etag, "e2");
});

test("resume ends the delay before a new connection, and keeps an open stream", async () => {
  const { service, requests } = serving(sends(snapshot(1), lost()), hangs(change(2)));
  const watch = service.watch("g", { ...FAST, backoffMs: [60_000, 60_000] });
  const resuming = setInterval(() => watch.resume(), 10);
  const seen = await collect(watch, (update) => {
    if (update === "change 2") setTimeout(() => watch.stop(), 50);
  });
  clearInterval(resuming);
  assert.deepEqual(seen, ["snapshot 1", "change 2"]);
  assert.equal(requests.length, 2);
});

test("the visibility of the page pauses and resumes a watch", async () => {
  const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const show = (state: string) => {
    page.visibilityState = state;
    page.dispatchEvent(new Event("visibilitychange"));
  };
  Object.assign(globalThis, { document: page });
  try {
    const { service, requests } = serving(hangs(snapshot(1)), sends(change(2)));
    const seen = await collect(service.watch("g", { ...FAST, pauseWhenHidden: true }), (update) => {
      if (update !== "snapshot 1") return;
      setTimeout(() => show("hidden"), 10);
      setTimeout(() => {
        assert.equal(requests.length, 1);
        show("visible");
      }, 60);
    });
    assert.deepEqual(seen, ["snapshot 1", "change 2"]);
  } finally {
    Reflect.deleteProperty(globalThis, "document");
  }
});

test("with games and changes, a watch that is cut between them misses neither and repeats none", async () => {
  const { service, requests } = serving(
    sends(snapshot(1), change(2), lost()),
    sends(change(2), game(2), change(3), game(3)),
  );
  const seen = await collect(service.watch("g", { ...FAST, content: WatchContent.BOTH }));
  assert.deepEqual(seen, ["snapshot 1", "change 2", "game 2", "change 3", "game 3"]);
  assert.deepEqual(resumed(requests), ["", "e1"]);
});

test("updates that this client does not know are passed over", async () => {
  const { service } = serving(sends(snapshot(1), {}, change(2)));
  assert.deepEqual(await collect(service.watch("g", FAST)), ["snapshot 1", "change 2"]);
});

test("a watch can start with an etag that was stored", async () => {
  const { service, requests } = serving(sends(change(5)));
  assert.deepEqual(await collect(service.watch("g", { ...FAST, etag: "e4" })), ["change 5"]);
  assert.deepEqual(resumed(requests), ["e4"]);
});

test("a game is watched as a whole", async () => {
  const { service, requests } = serving(sends(snapshot(1), heartbeat, game(2)));
  const seen: number[] = [];
  for await (const { revision } of service.watchGames("g", FAST)) seen.push(revision);
  assert.deepEqual(seen, [1, 2]);
  assert.equal(requests[0]?.content, WatchContent.GAMES);
});
