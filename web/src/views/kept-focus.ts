/** Keeps the focus on a tile that a rendering moves: sorted into its run, taken back, or laid in another window. */
import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";

/** Focuses the tile that has the focus before a rendering of its component, if the focus is lost in it. */
export function useKeptFocus(root: RefObject<HTMLElement | null>): void {
  const id = root.current?.contains(document.activeElement) ? (document.activeElement as HTMLElement).dataset.piece : undefined;
  useLayoutEffect(() => {
    if (id === undefined || document.activeElement !== document.body) return;
    root.current?.querySelector<HTMLElement>(`[data-piece="${id}"]`)?.focus({ preventScroll: true });
  });
}
