/** Taking a seat so that the server commits itself to the deals before it knows the player's part (docs/fair-deal.md). */
import { ConnectError, FairDeal, type Game, GameState } from "rummikub-client";
import type { Seats } from "../api/seats.js";
import { hexOf } from "../model/hex.js";

/** The answer to a request that took a seat. */
export interface Joined {
  game?: Game | undefined;
  seat: number;
  seatToken: string;
}

/**
 * Stores a seat with the commitment of its game, and only then draws and sends this player's seed.
 *
 * The seed is stored before it is sent, so that a lost answer does not lose it. If the server refuses it, for a game that has
 * just started, the player has none.
 */
export async function sitDown(
  seats: Seats,
  { game, seat, seatToken: token }: Joined,
  name: string,
  send: (dealSeed: Uint8Array<ArrayBuffer>) => Promise<unknown>,
): Promise<void> {
  const { gameId, dealCommitment, settings, state } = game!;
  const taken = { gameId, token, seat, name, time: Date.now(), commitment: hexOf(dealCommitment) };
  seats.keep(taken);
  if (settings?.fairDeal !== FairDeal.COMMITTED || state !== GameState.LOBBY) return;
  const seed = crypto.getRandomValues(new Uint8Array(16));
  seats.keep({ ...taken, seed: hexOf(seed) });
  try {
    await send(seed);
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    seats.keep(taken);
  }
}
