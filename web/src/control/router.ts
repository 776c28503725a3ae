/** The page's addresses: `#/`, `#/game/<id>`, `#/game/<id>/<join code>`, `#/replay`, `#/replay/<id>`. */
export type Route =
  | { readonly page: "home" }
  | { readonly page: "game"; readonly gameId: string; readonly joinCode?: string }
  | { readonly page: "replay"; readonly gameId?: string }
  | { readonly page: "unknown" };

/** Returns the route of an address's hash. */
export function routeOf(hash: string): Route {
  const [, page = "", id, code] = hash.split("/");
  if (page === "" && id === undefined) return { page: "home" };
  if (page === "game" && id !== undefined && /^[0-9a-f]{32}$/.test(id))
    return { page, gameId: id, ...(code && { joinCode: code }) };
  if (page === "replay") return id === undefined ? { page } : { page, gameId: id };
  return { page: "unknown" };
}

/** Returns the address by which a friend finds a lobby and may join it. */
export function inviteLink(gameId: string, joinCode: string): string {
  return new URL(`#/game/${gameId}/${joinCode}`, location.href).href;
}

export function go(path: string): void {
  location.hash = `#/${path}`;
}
