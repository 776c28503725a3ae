/**
 * The service worker: keeps the files of the page for a visit without a connection. With one, the network comes first, so
 * that a new version of the page is shown at once. Calls of the service are never touched.
 */
const worker = globalThis as unknown as ServiceWorkerGlobalScope;
/** The files of the page, which the build puts in. */
declare const PAGE_FILES: readonly string[];

const CACHE = "rummikub-page";

worker.addEventListener("install", (event) => {
  event.waitUntil(
    caches
      .open(CACHE)
      .then((cache) => cache.addAll([...PAGE_FILES]))
      .then(() => worker.skipWaiting()),
  );
});

worker.addEventListener("activate", (event) => event.waitUntil(worker.clients.claim()));

worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const path = new URL(request.url).pathname.split("/").at(-1) ?? "";
  if (request.method !== "GET" || !PAGE_FILES.includes(path || "./")) return;
  event.respondWith(fresh(request));
});

/** Returns the file from the network, else the one that is kept. */
async function fresh(request: Request): Promise<Response> {
  try {
    const response = await fetch(request);
    if (response.ok) await (await caches.open(CACHE)).put(request, response.clone());
    return response;
  } catch (error) {
    const kept = await caches.match(request, { ignoreSearch: true });
    if (kept === undefined) throw error;
    return kept;
  }
}
