/**
 * Focuses an element when the changes made so far are rendered, before the next event. After a frame it would be too late:
 * until then keys are lost with the element that had the focus, and a focus that the player has moved is taken back.
 */
export function focusWhenRendered(find: () => HTMLElement | null): void {
  queueMicrotask(() => find()?.focus()); // Preact renders in a microtask that is queued already
}
