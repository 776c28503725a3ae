/** Input for pages with tiles of their own: what follows a pointer, keys, zoom and motion. */
export { directionOf, focusNext, undoKey, type Direction } from "./keyboard.js";
export { cornerOf, cornersIn, idOf, isCalm, moveFrom, type Point, tilesIn } from "./motion.js";
export { followPointer, type Hands, type Scrolls } from "./pointer.js";
export { followZoom, ZOOM_STEP, zoomed } from "./zoom.js";
