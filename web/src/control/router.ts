/**
 * The page's addresses: `#/`, `#/game/<id>`, `#/game/<id>/<join code>`, `#/replay`,
 * `#/replay/<id>`, `#/replay/<id>/<move>`, `#/replay/<id>/review`, `#/how-to-play`, `#/puzzle`.
 */
export type Route =
  | { readonly page: "home" }
  | { readonly page: "game"; readonly gameId: string; readonly joinCode?: string }
  | { readonly page: "replay"; readonly gameId?: string; readonly move?: number; readonly isReview?: boolean }
  | { readonly page: "how-to-play" | "puzzle" }
  | { readonly page: "unknown" };

/** Returns the route of an address's hash. */
export function routeOf(hash: string): Route {
  const [, page = "", id, code] = hash.split("/");
  if (page === "" && id === undefined) return { page: "home" };
  if (page === "game" && id !== undefined && /^[0-9a-f]{32}$/.test(id))
    return { page, gameId: id, ...(code && { joinCode: code }) };
  if (page === "replay") return id === undefined ? { page } : { page, gameId: id, ...replayOf(code) };
  if (page === "how-to-play" || page === "puzzle") return { page };
  return { page: "unknown" };
}

/** Returns where a replay begins: at a move, or with the review. */
function replayOf(part: string | undefined): { move?: number; isReview?: boolean } {
  const move = Number(part);
  if (Number.isInteger(move) && move > 0) return { move };
  return part === "review" ? { isReview: true } : {};
}

/** Returns the address of a move of a replay, from 1. */
export function moveLink(gameId: string, move: number): string {
  return new URL(`#/replay/${gameId}/${move}`, location.href).href;
}

/** Returns the address by which a friend finds a lobby and may join it. */
export function inviteLink(gameId: string, joinCode: string): string {
  return new URL(`#/game/${gameId}/${joinCode}`, location.href).href;
}

export function go(path: string): void {
  location.hash = `#/${path}`;
}
