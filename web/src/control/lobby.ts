/** Creating, joining and listing games: what the home page does with the service. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  BotLevel,
  type CreateGameRequestSchema,
  DraftVisibility,
  ErrorReason,
  FairDeal,
  GameState,
  type GameSummary,
  MatchEnd,
  type NamedRuleset,
  type OwnGame,
  Preset,
  RoomSettingsSchema,
  type Ruleset,
  type RulesetSchema,
  TurnDraw,
  Visibility,
} from "rummikub-client";
import { service } from "../api/connection.js";
import type { Start } from "../model/replay.js";
import { type Seat, Seats } from "../api/seats.js";
import { type Joined, sitDown } from "./sitting.js";

export const seats = new Seats(sessionStorage, localStorage);

/** Which game is played: a member of Ruleset. */
export type Family = "melding" | "discard";

/** What a player chooses for a new game. */
export interface NewGame {
  readonly name: string;
  /** The game of the preset. */
  readonly family: Family;
  readonly preset: Preset;
  readonly bots: number;
  readonly level: BotLevel;
  /** Seconds for a turn; undefined as in the preset. */
  readonly turnSeconds: number | undefined;
  readonly rounds: number;
  readonly hasRiver: boolean;
  readonly showsDrafts: boolean;
  readonly isPublic: boolean;
  /** Further options by their names in the contract, such as `deal.handSize` or `hints`. */
  readonly options: Readonly<Record<string, number | boolean>>;
}

/** What one plays at once: nobody waits, so there is no clock. */
const AGAINST_BOTS: Omit<NewGame, "name"> = {
  family: "melding",
  preset: Preset.SABRA,
  bots: 3,
  level: BotLevel.MEDIUM,
  turnSeconds: 0,
  rounds: 1,
  hasRiver: false,
  showsDrafts: true,
  isPublic: false,
  options: {},
};

/** Returns whether a setting is a length of time. */
function isLength(setting: string): boolean {
  return RoomSettingsSchema.fields.some(({ localName, fieldKind }) => localName === setting && fieldKind === "message");
}

/** Returns a length of time. */
function lengthOf(seconds: number): { seconds: bigint; nanos: number } {
  return { seconds: BigInt(Math.floor(seconds)), nanos: Math.round((seconds % 1) * 1_000) * 1_000_000 };
}

/** Returns the options that the form has fields for, where they differ from the preset. */
function optionsOf({ family, rounds, hasRiver, showsDrafts }: WantedRules): NewGame["options"] {
  if (family === "discard") return {};
  return {
    ...(rounds > 1 && { "gameEnd.matchEnd": MatchEnd.FIXED_ROUNDS, "gameEnd.matchRounds": rounds }),
    ...(hasRiver && { "turn.draw": TurnDraw.TWO_RIVER }),
    ...(showsDrafts && { draftVisibility: DraftVisibility.EVERYONE }),
  };
}

type WantedRules = Omit<NewGame, "name" | "bots" | "level" | "isPublic">;

/** Returns the ruleset and the settings of a new game: the preset and the options that differ from it. */
export function rulesOf(wanted: WantedRules): {
  ruleset: MessageInitShape<typeof RulesetSchema>;
  settings: MessageInitShape<typeof RoomSettingsSchema>;
} {
  const options: Record<string, number | boolean> = {
    ...(wanted.turnSeconds !== undefined && { turnTimeLimit: wanted.turnSeconds }),
    ...optionsOf(wanted),
    ...wanted.options,
  };
  const settings: Record<string, unknown> = {};
  const stages: Record<string, Record<string, number | boolean>> = {};
  for (const [path, value] of Object.entries(options)) {
    const [stage = "", option] = path.split(".");
    if (option !== undefined) stages[stage] = { ...stages[stage], [option]: value };
    else settings[path] = isLength(path) ? lengthOf(Number(value)) : value;
  }
  return { ruleset: { game: { case: wanted.family, value: { preset: wanted.preset, ...stages } } }, settings };
}

/**
 * Creates a game, takes a seat as its host and adds the bots. The host token takes the seat, and then the seat's token
 * has the host's rights too. Returns the game's id.
 */
export async function createGame({ name, isPublic, bots, level, ...wanted }: NewGame): Promise<string> {
  const { ruleset, settings } = rulesOf(wanted);
  const visibility = isPublic ? Visibility.PUBLIC : Visibility.UNLISTED;
  return openGame({ ruleset, settings: { fairDeal: FairDeal.COMMITTED, ...settings }, visibility }, name, Array(bots).fill(level));
}

/** Creates a game as its host, who takes a seat, by default the first; the bots take the others. Returns its id. */
async function openGame(
  request: MessageInitShape<typeof CreateGameRequestSchema>,
  name: string,
  bots: readonly BotLevel[],
  seat?: number,
): Promise<string> {
  const { game, hostToken } = await service.games.createGame(request);
  const gameId = game!.gameId;
  seats.keep({ gameId, token: hostToken, seat: 0, name, time: Date.now() });
  await joinGame({ case: "gameId", value: gameId }, name, seat);
  const host = service.seated(seats.find(gameId)!.token);
  for (const level of bots) await host.games.addBot({ gameId, level });
  return gameId;
}

/** Creates a game against bots that begins with a position, without a clock, and starts it. Returns its id. */
export async function playFrom(
  begun: { ruleset?: Ruleset; position: Start },
  name: string,
  bots: readonly BotLevel[],
  seat: number,
): Promise<string> {
  const gameId = await openGame({ ...begun, settings: { turnTimeLimit: {} } }, name, bots, seat);
  await service.seated(seats.find(gameId)!.token).games.startGame({ gameId });
  return gameId;
}

/** Creates a game against three bots by the standard rules, without a clock, and starts it. Returns its id. */
export async function playNow(name: string): Promise<string> {
  const gameId = await createGame({ ...AGAINST_BOTS, name });
  await service.seated(seats.find(gameId)!.token).games.startGame({ gameId });
  return gameId;
}

/** Takes a seat in the lobby by the game's id or its code, and stores its token. Returns the game's id. */
export async function joinGame(
  game: { case: "gameId" | "joinCode"; value: string },
  name: string,
  seat?: number,
): Promise<string> {
  const host = game.case === "gameId" ? seats.find(game.value) : undefined;
  const caller = host?.seat === 0 ? service.seated(host.token) : service;
  return keepSeat(await caller.games.joinGame({ game, name, ...(seat !== undefined && { seat }) }), name);
}

/** Takes a seat in any public game with these rules, or in a new one. Returns the game's id. */
export async function joinAnyGame(wanted: NewGame): Promise<string> {
  const request = { ...rulesOf(wanted), name: wanted.name };
  return keepSeat(await service.games.joinOrCreateGame(request), wanted.name);
}

/** Stores a seat that was taken, and adds this player's part to the shuffles. Returns the game's id. */
export async function keepSeat(joined: Joined, name: string): Promise<string> {
  const { gameId } = joined.game!;
  const { games } = service.seated(joined.seatToken);
  await sitDown(seats, joined, name, (dealSeed) => games.setReady({ gameId, dealSeed }));
  return gameId;
}

export async function listRulesets(): Promise<NamedRuleset[]> {
  return (await service.validation.listRulesets({})).rulesets;
}

const GONE: readonly ErrorReason[] = [ErrorReason.GAME_NOT_FOUND, ErrorReason.TOKEN_VOID];

/** Returns the games of stored seats by their ids, and forgets the seats that are gone. */
export async function listOwnGames(own: readonly Seat[]): Promise<Map<string, OwnGame>> {
  if (own.length === 0) return new Map();
  const asked = own.map(({ gameId, token: seatToken }) => ({ gameId, seatToken }));
  const { games } = await service.games.listOwnGames({ seats: asked });
  games.forEach(({ found }, i) => {
    if (found.case === "refusal" && GONE.includes(found.value)) seats.forget(own[i]!);
  });
  return new Map(games.map((game) => [game.gameId, game]));
}

export async function listGames(...states: GameState[]): Promise<GameSummary[]> {
  return (await service.games.listGames({ states, pageSize: 20 })).games;
}
