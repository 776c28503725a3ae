/** The page's addresses: `#/`, `#/game/<id>`, `#/replay`, `#/review/<id>`. */
export type Route =
  | { readonly page: "home" }
  | { readonly page: "game"; readonly gameId: string }
  | { readonly page: "replay"; readonly gameId?: string }
  | { readonly page: "unknown" };

/** Returns the route of an address's hash. */
export function routeOf(hash: string): Route {
  const [, page = "", id] = hash.split("/");
  if (page === "" && id === undefined) return { page: "home" };
  if (page === "game" && id !== undefined && /^[0-9a-f]{32}$/.test(id)) return { page: "game", gameId: id };
  if (page === "replay") return id === undefined ? { page } : { page, gameId: id };
  return { page: "unknown" };
}

export function go(path: string): void {
  location.hash = `#/${path}`;
}
