/** Undo and redo of immutable values. */
export { amend, begin, type History, redo, step, undo } from "rummikub-board/history";
