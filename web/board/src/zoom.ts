/** Enlarges by two fingers, and by the wheel with Ctrl. */

export const ZOOM_STEP = 1.25;
const LEAST = 0.7;
const MOST = 2;

/** Returns a zoom after it was multiplied. */
export function zoomed(zoom: number, by: number): number {
  return Math.max(LEAST, Math.min(MOST, zoom * by));
}

/** Calls `enlarge` with the factor by which the player enlarges an element. Returns a function that ends it. */
export function followZoom(element: HTMLElement, enlarge: (by: number) => void): () => void {
  const listening = new AbortController();
  const { signal } = listening;
  let distance = 0;
  const apart = ({ touches: [a, b] }: TouchEvent) =>
    a === undefined || b === undefined ? 0 : Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
  const onMove = (event: TouchEvent) => {
    const now = apart(event);
    if (now === 0 || distance === 0) return;
    event.preventDefault();
    enlarge(now / distance);
    distance = now;
  };
  const onWheel = (event: WheelEvent) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    enlarge(event.deltaY < 0 ? ZOOM_STEP : 1 / ZOOM_STEP);
  };
  element.addEventListener("touchstart", (event) => (distance = apart(event)), { passive: true, signal });
  element.addEventListener("touchmove", onMove, { passive: false, signal });
  element.addEventListener("wheel", onWheel, { passive: false, signal });
  return () => listening.abort();
}
