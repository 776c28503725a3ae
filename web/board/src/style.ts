/** The styles of a board, in its shadow root: classes only; custom properties and parts change them from outside. */
export const STYLE = `
:host { display: block; container-type: inline-size; font: 1rem/1.35 system-ui, sans-serif; }
:host([hidden]) { display: none; }
.board { display: grid; gap: 0.5em; touch-action: manipulation; -webkit-tap-highlight-color: transparent; }
.table { position: relative; border-radius: 0.8em; border: 1px solid transparent; background: var(--rummikub-felt, #1d5c43); color: var(--rummikub-felt-text, #fff); }
.melds { display: flex; flex-wrap: wrap; align-content: start; gap: 0.7em 0.9em; min-height: 6.5em; max-height: var(--rummikub-table-height, none); box-sizing: border-box; padding: 0.9em 0.9em 3em; overflow: auto; }
.empty { margin: 0; width: 100%; opacity: 0.85; }
.meld { position: relative; display: flex; flex-wrap: wrap; align-items: center; align-self: start; padding: 0.25em; gap: 2px; border: 2px solid transparent; border-radius: 0.5em; background: rgb(0 0 0 / 14%); }
.meld.target { border-color: #fff8; }
.meld.legal { border-color: var(--rummikub-legal, #8fe3b0); }
.meld.illegal { border-color: var(--rummikub-illegal, #ffb4a8); }
.grip { align-self: stretch; display: grid; place-items: center; padding: 0 0.15em; cursor: grab; touch-action: none; user-select: none; opacity: 0.75; }
.verdict { font-weight: 700; padding: 0 0.2em; }
.fault { flex-basis: 100%; max-width: 20em; margin: 0.2em 0 0; padding: 0.2em 0.4em; border-radius: 0.3em; background: #fff1ee; color: #7d1a10; font-size: 0.85em; }
.tile { all: unset; box-sizing: border-box; position: relative; flex: none; border-radius: 0.35em; cursor: grab; touch-action: none; user-select: none; -webkit-user-select: none; -webkit-touch-callout: none; }
.tile.fixed { cursor: default; touch-action: auto; }
.melds.scrolls .tile { touch-action: pan-x pan-y; }
.tile .rummikub-tile { display: block; width: calc(var(--rummikub-tile-width, 42px) * var(--zoom, 1) * var(--density, 1)); pointer-events: none; }
.tile.own { box-shadow: 0 0 0 2px var(--rummikub-own, #f2b705); }
.tile.fresh { box-shadow: 0 0 0 2px var(--rummikub-fresh, #6ec1ff); }
.tile.faulty { box-shadow: 0 0 0 3px var(--rummikub-fault, #e2483d); }
.tile.chosen { transform: translateY(-5px); outline: 3px solid var(--rummikub-chosen, #f2b705); outline-offset: 1px; }
.tile:focus-visible, .button:focus-visible, .place:focus-visible, .melds:focus-visible { outline: 3px solid var(--rummikub-focus, #1a73e8); outline-offset: 2px; box-shadow: 0 0 0 2px #fff; }
.tile.carried { opacity: 0.4; }
.caret { flex: none; align-self: stretch; width: 4px; min-height: calc(var(--rummikub-tile-width, 42px)); border-radius: 2px; background: var(--rummikub-chosen, #f2b705); }
.place { all: unset; box-sizing: border-box; position: absolute; top: 50%; z-index: 2; translate: 0 -50%; display: grid; place-items: center; width: 1.9em; height: 1.9em; border-radius: 1em; background: var(--rummikub-chosen, #f2b705); color: #1d1d1d; font-weight: 700; cursor: pointer; box-shadow: 0 1px 4px rgb(0 0 0 / 40%); }
.place.first { left: -0.95em; }
.place.last { right: -0.95em; }
.place.new { position: absolute; top: auto; bottom: 0.45em; left: 0.9em; translate: none; width: auto; padding: 0 0.9em; }
.place.new.target { outline: 3px solid #fff; }
.place.back { position: static; translate: none; align-self: center; }
.zoom { position: absolute; right: 0.5em; bottom: 0.4em; display: flex; gap: 0.3em; }
.rack { position: relative; display: flex; flex-wrap: wrap; gap: 3px; min-height: 3.5em; padding: 0.6em; border: 1px solid transparent; border-radius: 0.6em; background: var(--rummikub-rack, #6b4a2b); }
.rack.target { outline: 2px solid var(--rummikub-chosen, #f2b705); }
.actions { display: flex; flex-wrap: wrap; gap: 0.4em; }
.button { all: unset; box-sizing: border-box; min-width: 2em; padding: 0.3em 0.7em; border: 1px solid #0005; border-radius: 0.45em; background: var(--rummikub-button, #f4f1e6); color: var(--rummikub-button-text, #1d1d1d); text-align: center; cursor: pointer; }
.button:disabled { cursor: default; color: #0009; background: #e3e0d5; }
.message { margin: 0; padding: 0.3em 0.6em; border-radius: 0.4em; background: #fff1ee; color: #7d1a10; }
.said { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.ghost { position: fixed; inset: 0 auto auto 0; z-index: 1000; display: flex; gap: 2px; width: auto; height: auto; margin: -1.6em 0 0 -1.3em; padding: 0; border: 0; background: none; overflow: visible; pointer-events: none; filter: drop-shadow(0 6px 6px rgb(0 0 0 / 35%)); }
.ghost.above { margin-top: -4.2em; }
.none { display: none; }
@container (width < 480px) {
  .melds { padding: 0.5em 0.5em 3em; gap: 0.5em 0.6em; }
  .melds.dense { --density: 0.8; }
  .melds.full { --density: 0.667; }
}
@media (forced-colors: active) {
  .table, .rack, .meld, .button { border-color: CanvasText; }
  .tile.own, .tile.fresh, .tile.chosen { outline: 3px solid Highlight; }
  .tile.faulty { outline: 3px dashed CanvasText; }
}
`;
