/** Asks about the newest arrangement only. */
export { Judge } from "rummikub-board/judge";
