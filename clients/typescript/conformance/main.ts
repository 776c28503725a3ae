/** Checks this client against a live server; see clients/conformance/README.md for the checks and the output. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { connect as connectTcp, createServer, type Socket } from "node:net";
import { parseArgs } from "node:util";
import {
  create,
  type DescMessage,
  equals,
  fromBinary,
  fromJson,
  type JsonObject,
  type Message,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import * as node from "rummikub-client/node";
import * as grpcJs from "rummikub-client/grpc-js";
import * as web from "rummikub-client/web";
import {
  BatchValidateTurnsResponseSchema,
  BotLevel,
  Code,
  ConnectError,
  CreateGameRequestSchema,
  CreateGameResponseSchema,
  ErrorReason,
  explain,
  type Game,
  GameState,
  melds,
  newRequestId,
  play,
  PlayTilesSchema,
  refusal,
  RefusalSchema,
  RulesetSchema,
  type Rummikub,
  Tile,
  tableText,
  tiles,
  tilesText,
  ValidateTurnRequestSchema,
  type ValidateTurnResponse,
  ValidateTurnResponseSchema,
  ValidationService,
  Visibility,
} from "rummikub-client";

/** A call of wire.json. */
interface WireCall {
  id: string;
  rpc: string;
  request: JsonObject;
  response?: JsonObject;
  error?: { code: string; refusal: JsonObject; fields: string[] };
}

class Skip extends Error {}

const { values: flags } = parseArgs({
  options: {
    target: { type: "string", default: "127.0.0.1:50051" },
    validation: { type: "string" },
    wire: { type: "string", default: "tests/conformance/wire.json" },
    games: { type: "string", default: "" },
    proxy: { type: "string" },
    transport: { type: "string", default: "grpc" },
  },
});
const connect = { grpc: node.connect, "grpc-js": grpcJs.connect, web: web.connect }[flags.transport];
if (connect === undefined) throw new Error(`unknown --transport ${flags.transport}; use grpc, grpc-js or web`);
const isWeb = flags.transport === "web";

const lobby = connect(flags.target);
const validator = connect(flags.validation ?? flags.target);
const calls = (JSON.parse(await readFile(flags.wire, "utf8")) as { calls: WireCall[] }).calls;
const validTurns = calls.filter(({ rpc, response }) => rpc.endsWith("/ValidateTurn") && response !== undefined);

/** Calls an RPC of the ValidationService by its name. */
async function ask({ rpc, request }: WireCall): Promise<{ schema: DescMessage; message: Message }> {
  const method = ValidationService.methods.find(({ name }) => rpc === `${ValidationService.typeName}/${name}`);
  assert(method !== undefined, `unknown RPC ${rpc}`);
  const service = validator.validation as unknown as Record<string, (request: Message) => Promise<Message>>;
  return { schema: method.output, message: await service[method.localName]!(fromJson(method.input, request)) };
}

function assertEqual(schema: DescMessage, actual: Message, expected: JsonObject, id: string): void {
  const wanted = fromJson(schema, expected);
  if (!equals(schema, actual, wanted)) {
    assert.fail(`${id}: ${toJsonString(schema, actual)} instead of ${toJsonString(schema, wanted)}`);
  }
}

/** Returns the error of a call that must fail. */
async function failure(call: Promise<unknown>, id: string): Promise<ConnectError> {
  return call.then(
    () => assert.fail(`${id}: the call was not refused`),
    (error: unknown) => ConnectError.from(error),
  );
}

/** Returns the name of a code as gRPC writes it: INVALID_ARGUMENT. */
function codeName(code: Code): string {
  return code === Code.Canceled ? "CANCELLED" : Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}

async function wire(): Promise<void> {
  for (const call of calls) {
    if (call.response !== undefined) {
      const { schema, message } = await ask(call);
      assertEqual(schema, message, call.response, call.id);
      continue;
    }
    assert(call.error !== undefined, `${call.id} has neither response nor error`);
    const error = await failure(ask(call), call.id);
    const refused = refusal(error);
    assert.equal(codeName(error.code), call.error.code, call.id);
    const detail = create(RefusalSchema, {
      reason: refused?.reason ?? ErrorReason.ERROR_REASON_UNSPECIFIED,
      metadata: { ...refused?.metadata },
      violations: [...(refused?.violations ?? [])],
    });
    assertEqual(RefusalSchema, detail, call.error.refusal, call.id);
    assert.deepEqual(refused?.fields, call.error.fields, call.id);
  }
}

/** Compares the turns of a batch or a stream with the responses of single calls. */
function assertTurns(asked: WireCall[], answers: readonly ValidateTurnResponse[]): void {
  assert.equal(answers.length, asked.length);
  asked.forEach(({ id, response }, index) => {
    const answer = answers[index] ?? create(ValidateTurnResponseSchema);
    assertEqual(ValidateTurnResponseSchema, answer, response ?? {}, id);
  });
}

async function batch(): Promise<void> {
  const groups = new Map<string, WireCall[]>();
  for (const turn of validTurns) {
    const ruleset = JSON.stringify(turn.request["ruleset"] ?? {});
    groups.set(ruleset, [...(groups.get(ruleset) ?? []), turn]);
  }
  for (const group of groups.values()) {
    for (let start = 0; start < group.length; start += 100) {
      const part = group.slice(start, start + 100);
      const requests = part.map(({ request }) => fromJson(ValidateTurnRequestSchema, request));
      const ruleset = requests[0]?.ruleset;
      const bare = requests.map(({ ruleset: _, ...turn }) => turn);
      const response = await validator.validation.batchValidateTurns({ ...(ruleset && { ruleset }), turns: bare });
      assert.equal(response.$typeName, BatchValidateTurnsResponseSchema.typeName);
      assertTurns(part, response.turns);
    }
  }
}

async function stream(): Promise<void> {
  if (isWeb) throw new Skip("gRPC-Web has no client streams");
  async function* requests() {
    for (const { id, request } of validTurns) {
      yield { turn: fromJson(ValidateTurnRequestSchema, request), correlationId: id };
    }
  }
  const answers = new Map<string, ValidateTurnResponse>();
  for await (const { correlationId, turn } of validator.validation.streamValidateTurns(requests())) {
    assert(turn !== undefined, `${correlationId} has no answer`);
    answers.set(correlationId, turn);
  }
  assertTurns(
    validTurns,
    validTurns.map(({ id }) => answers.get(id) ?? assert.fail(`${id} was not answered`)),
  );
}

/** Creates a game of two people and starts it; returns it with the client of the seat that plays first. */
async function startedGame(): Promise<{ game: Game; player: Rummikub }> {
  const { game, hostToken } = await lobby.games.createGame({});
  const gameId = game?.gameId ?? "";
  const host = lobby.seated(hostToken);
  const ann = await host.games.joinGame({ game: { case: "gameId", value: gameId }, name: "Ann" });
  const bob = await lobby.games.joinGame({ game: { case: "gameId", value: gameId }, name: "Bob" });
  const started = (await host.games.startGame({ gameId })).game;
  assert(started?.turn !== undefined);
  const first = [ann, bob].find(({ seat }) => seat === started.turn?.seat);
  return { game: started, player: lobby.seated(first?.seatToken ?? "") };
}

async function illegalTurn(): Promise<void> {
  const { game, player } = await startedGame();
  const turn = play(game, melds("[R1 R2] | [R1 B5 J]"));
  const error = await failure(player.turns.playTurn(turn), "an illegal turn");
  const refused = refusal(error);
  assert(refused !== undefined, `no reason: ${error.message}`);
  const [first] = refused.violations;
  assert.equal(refused.code, Code.FailedPrecondition);
  assert.equal(refused.reason, first?.reason);
  const short = refused.violations.find(({ reason }) => reason === ErrorReason.MELD_TOO_SHORT);
  assert.equal(short?.subject, "play.table[0]");
  assert.equal(tilesText(short?.tiles ?? []), "R1 R2");
  assert.match(explain(error), /play\.table\[0\]/);
}

async function refusals(): Promise<void> {
  await illegalTurn();
  const turn = { tableAfter: { melds: melds("[R1 R2 R3]") }, rack: tiles("R1 R2 R3"), hasMelded: false };
  const { violations } = await validator.validation.validateTurn(turn);
  const below = violations.find(({ reason }) => reason === ErrorReason.INITIAL_MELD_BELOW_THRESHOLD);
  assert.deepEqual(below?.metadata, { total: 6, threshold: 30 });

  const { game } = await lobby.games.createGame({});
  const wrong = await failure(lobby.seated("x").games.getGame({ gameId: game?.gameId ?? "" }), "a wrong token");
  assert(refusal(wrong) !== undefined && /token/.test(explain(wrong)), explain(wrong));
  const unknown = await failure(lobby.games.getGame({ gameId: "0".repeat(32) }), "an unknown game");
  assert.equal(refusal(unknown)?.reason, ErrorReason.GAME_NOT_FOUND);
  assert.match(explain(unknown), /check the game's id/);

  const absent = connect!("127.0.0.1:1");
  const error = await failure(absent.games.getGame({}, { timeoutMs: 500 }), "an absent server");
  assert.equal(error.code, Code.Unavailable);
  assert.match(explain(error), /no service answers at 127\.0\.0\.1:1; start one with `make run`/);
  absent.close();
}

/** Returns a TCP proxy before the server, which can cut its connections now or instead of the next answer. */
async function startProxy(target: string) {
  const [host = "", port = ""] = target.replace(/^https?:\/\//, "").split(":");
  const sockets = new Set<Socket>();
  const cut = () => sockets.forEach((socket) => socket.destroy());
  let connections = 0;
  let losesAnswer = false;
  const server = createServer((client) => {
    connections++;
    const upstream = connectTcp(Number(port), host);
    upstream.on("data", () => {
      if (losesAnswer) cut();
      losesAnswer = false;
    });
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.pipe(other);
      socket.on("error", () => {}).on("close", () => sockets.delete(socket) && other.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert(typeof address === "object" && address !== null);
  return {
    address: `127.0.0.1:${address.port}`,
    connections: () => connections,
    cut,
    loseAnswer: () => (losesAnswer = true),
    close: () => (cut(), server.close()),
  };
}

/** Takes the suggested turn. */
async function takeTurn(person: Rummikub, gameId: string): Promise<void> {
  const { turn } = await person.analysis.suggestTurn({ subject: { case: "gameId", value: gameId } });
  assert(turn !== undefined, "no turn is suggested");
  await person.turns.playTurn(turn);
}

/** Plays the games to their ends with suggested turns, all at the same time. */
async function turns(): Promise<void> {
  await Promise.all(flags.games.split(",").map(playToTheEnd));
}

async function playToTheEnd(game: string): Promise<void> {
  const [gameId = "", token = ""] = game.split(":");
  const person = lobby.seated(token);
  for await (const seen of person.watchGames(gameId)) {
    if (seen.turn && seen.turn.seat === seen.seat) await takeTurn(person, gameId);
    else if (seen.state === GameState.ROUND_OVER) await person.turns.startNextRound({ gameId });
  }
}

/** Plays rounds until one is long enough to be cut twice: about one in 600 is not. */
async function game(): Promise<void> {
  for (let attempt = 0; attempt < 3; attempt++) if (await wasCutTwice()) return;
  assert.fail("three rounds ended before the person's second turn");
}

/** Plays a round against three bots; the watch goes through a proxy that is cut in the person's first two turns. */
async function wasCutTwice(): Promise<boolean> {
  const created = await lobby.games.createGame({});
  const gameId = created.game?.gameId ?? "";
  const host = lobby.seated(created.hostToken);
  const joined = await host.games.joinGame({ game: { case: "gameId", value: gameId }, name: "Ann" });
  const person = lobby.seated(joined.seatToken);
  for (const level of [BotLevel.EASY, BotLevel.MEDIUM, BotLevel.HARD]) await person.games.addBot({ gameId, level });

  const proxy = await startProxy(flags.target);
  const proxied = connect!(proxy.address);
  const watch = proxied.seated(joined.seatToken).watch(gameId, { content: node.WatchContent.BOTH });
  const revisions: number[] = [];
  let last: Game | undefined;
  let cuts = 0;
  try {
    for await (const update of watch) {
      if (update.case === "snapshot") {
        assert(last === undefined, "the watch started over");
        last = update.value;
        await person.games.startGame({ gameId });
      } else if (update.case === "game") {
        last = update.value;
      } else if (update.case === "change") {
        revisions.push(update.value.revision);
        const turnSeats = update.value.events.map(
          ({ event }) => event.case === "turnStarted" && event.value.turn?.seat,
        );
        if (!turnSeats.includes(joined.seat)) continue;
        if (cuts < 2) {
          cuts++;
          proxy.cut(); // no change can have been received ahead in the person's turn
        }
        await takeTurn(person, gameId);
      }
    }
  } finally {
    proxied.close();
    proxy.close();
  }
  const seen = (await person.games.getGame({ gameId })).game;
  assert(seen !== undefined && last !== undefined);
  const gap = revisions.findIndex((revision, index) => index > 0 && revision !== revisions[index - 1]! + 1);
  assert(gap < 0, `the revisions ${revisions[gap - 1]} and ${revisions[gap]} follow one another`);
  assert.equal(revisions.at(-1), seen.revision);
  assert.equal(seen.state, GameState.FINISHED);
  assert.deepEqual([last.revision, last.etag, last.winnerSeats], [seen.revision, seen.etag, seen.winnerSeats]);
  assert.deepEqual([tilesText(last.rack), tableText(last.table)], [tilesText(seen.rack), tableText(seen.table)]);
  assert.deepEqual(last.rounds, seen.rounds);
  if (cuts < 2) return false;
  assert(proxy.connections() >= 3, `the watch used ${proxy.connections()} connections`);
  return true;
}

/** Watches a game that two players join, and compares what never changes. */
async function rules(): Promise<void> {
  const created = (await lobby.games.createGame({ labels: { mode: "conformance" } })).game;
  assert(created?.ruleset !== undefined);
  const names = ["Ann", "Bob"];
  for await (const { ruleset, settings, visibility, labels } of lobby.watchGames(created.gameId)) {
    assert(ruleset !== undefined && equals(RulesetSchema, ruleset, created.ruleset), "a game has other rules");
    assert.deepEqual([settings, visibility, labels], [created.settings, created.visibility, created.labels]);
    const name = names.shift();
    if (name === undefined) return;
    await lobby.games.joinGame({ game: { case: "gameId", value: created.gameId }, name });
  }
  assert.fail("the watch ended");
}

async function names(): Promise<void> {
  const sent = ["Zoe\u0308", "李雷", "שלום", "👨‍👩‍👧"];
  const gameId = (await lobby.games.createGame({})).game?.gameId ?? "";
  for (const name of sent) await lobby.games.joinGame({ game: { case: "gameId", value: gameId }, name });
  const { game } = await lobby.games.getGame({ gameId });
  assert.deepEqual(
    game?.players.map(({ name }) => name),
    sent.map((name) => name.normalize("NFC")),
  );
}

async function unknown(): Promise<void> {
  const response = await lobby.games.createGame({});
  response.game!.visibility = 9999 as Visibility;
  const newer = Uint8Array.from([...toBinary(CreateGameResponseSchema, response), 0xc0, 0x3e, 1]); // field 1000: 1
  const parsed = fromBinary(CreateGameResponseSchema, newer);
  assert.equal(parsed.game?.visibility, 9999);
  assert.equal(parsed.hostToken, response.hostToken);
  assert.deepEqual(toBinary(CreateGameResponseSchema, parsed), newer);

  const unset = fromBinary(PlayTilesSchema, toBinary(PlayTilesSchema, create(PlayTilesSchema, {})));
  const zero = fromBinary(PlayTilesSchema, toBinary(PlayTilesSchema, create(PlayTilesSchema, { riverIndex: 0 })));
  assert.deepEqual([unset.riverIndex, zero.riverIndex], [undefined, 0]);
  const missing = await failure(validator.validation.validateTurn({ rack: [Tile.RED_1] }), "has_melded is unset");
  assert.deepEqual(refusal(missing)?.fields, ["has_melded"]);
  await validator.validation.validateTurn({ rack: [Tile.RED_1], hasMelded: false });
}

async function deadline(): Promise<void> {
  const gameId = (await lobby.games.createGame({})).game?.gameId ?? "";
  const turn = fromJson(ValidateTurnRequestSchema, validTurns[0]?.request ?? {});
  const slow = validator.validation.batchValidateTurns(
    { turns: Array(100).fill({ ...turn, ruleset: undefined }) },
    { timeoutMs: 1 },
  );
  const error = await failure(slow, "a deadline of 1 ms");
  assert.equal(error.code, Code.DeadlineExceeded);
  const silent = new AbortController();
  setTimeout(() => silent.abort(), 1_000);
  const watched: unknown[] = [];
  for await (const update of lobby.watch(gameId, { signal: silent.signal })) watched.push(update.case);
  assert.deepEqual(watched, ["snapshot"]); // it was open until it was stopped
}

async function retry(): Promise<void> {
  const request = create(CreateGameRequestSchema, { requestId: newRequestId() });
  const [first, again] = [await lobby.games.createGame(request), await lobby.games.createGame(request)];
  assert.deepEqual([again.game?.gameId, again.hostToken], [first.game?.gameId, first.hostToken]);
  const gameId = first.game?.gameId ?? "";
  const joining = { game: { case: "gameId" as const, value: gameId }, name: "Ann", requestId: newRequestId() };
  const [seat, same] = [await lobby.games.joinGame(joining), await lobby.games.joinGame(joining)];
  assert.deepEqual([same.seat, same.seatToken], [seat.seat, seat.seatToken]);

  // The client fills in the id, and repeats the request by itself when the answer is lost.
  const ids: string[] = [];
  const proxy = await startProxy(flags.target);
  const proxied = connect!(proxy.address, { requestId: () => (ids.push(newRequestId()), ids.at(-1)!) });
  await proxied.games.getGame({ gameId });
  proxy.loseAnswer();
  const filled = await proxied.games.createGame({});
  const repeated = await lobby.games.createGame({ requestId: ids[0] ?? "" });
  assert.deepEqual([ids.length, repeated.hostToken], [1, filled.hostToken]);
  assert(proxy.connections() >= 2, "no answer was lost");
  proxied.close();
  proxy.close();
}

async function watches(): Promise<void> {
  if (isWeb) throw new Skip("connections are the browser's");
  const client = connect!(flags.target);
  const gameId = (await client.games.createGame({})).game?.gameId ?? "";
  // More than a connection carries.
  const open = Array.from({ length: 150 }, () => client.watch(gameId)[Symbol.asyncIterator]());
  for (const { value } of await Promise.all(open.map((watch) => watch.next()))) {
    assert.equal(value?.case === "snapshot" && value.value.gameId, gameId);
  }
  assert.equal((await client.games.getGame({ gameId })).game?.gameId, gameId);
  client.close();
}

const checks = { wire, batch, stream, refusal: refusals, game, turns, rules, names, unknown, deadline, retry, watches };
for (const [name, check] of Object.entries(checks)) {
  const start = performance.now();
  const seconds = () => ((performance.now() - start) / 1000).toFixed(2);
  try {
    await check();
    console.log(`PASS ${name} ${seconds()}`);
  } catch (error) {
    if (error instanceof Skip) {
      console.log(`SKIP ${name} 0 ${error.message}`);
      continue;
    }
    process.exitCode = 1;
    console.log(`FAIL ${name} ${seconds()} ${explain(error).replace(/\s+/g, " ")}`);
  }
}
lobby.close();
validator.close();
process.exit(); // a check that failed may have left a proxy open
