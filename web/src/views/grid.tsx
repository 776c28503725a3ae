/** Grids: the frame in which one is enlarged and moved, and a grid that cannot be changed. */
import type { Placement, Tile } from "rummikub-client";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { t, tilesList, tileText } from "../i18n/index.js";
import { type Box, boxOf, type Cell, freshCells, type Placed } from "../model/grid.js";
import { StaticTile } from "./tile.js";

/** A tile and its cell in pixels, where a grid is not enlarged. */
const TILE = 42;
const CELL = { width: 46, height: 60 };
const ZOOM = { least: 0.35, most: 1.6, step: 1.25 };
/** The empty cells around the tiles. */
const MARGIN = 12;
const THRESHOLD = 5;

/** Returns the style of what lies in a cell, or fills a box of cells. */
export function inCell({ x, y }: Cell): Record<string, number> {
  return { "--x": x, "--y": y };
}

export function inBox({ left, top, right, bottom }: Box): Record<string, number> {
  return { "--x": left, "--y": top, "--w": right - left + 1, "--h": bottom - top + 1 };
}

/** Returns a tile in words; a joker of the table with what it stands for. */
export function lyingText(tile: Tile, faces: readonly Tile[] = []): string {
  return faces.length > 0 ? t("jokerAs", { faces: tilesList(faces) }) : tileText(tile);
}

export interface GridFrameProps {
  /** The cells with tiles. */
  cells: readonly Cell[];
  /** The grid is shown as a whole when this changes, unless the player has moved it. */
  fitKey: unknown;
  hint?: string;
  mayDrop?: boolean;
  class?: string;
  onClick?: (event: MouseEvent) => void;
  children: ComponentChildren;
}

/** The part of a grid in sight. Dragging an empty place moves it; buttons, and Ctrl with the wheel, enlarge it. */
export function GridFrame({ cells, fitKey, hint, mayDrop = false, onClick, children, ...props }: GridFrameProps) {
  const view = useRef<HTMLDivElement>(null);
  /** The point of the grid in the middle of the view, in cells. */
  const middle = useRef({ x: 0, y: 0 });
  const isMoved = useRef(false);
  const [zoom, setZoom] = useState(1);
  const { left, top, right, bottom } = boxOf(cells, MARGIN);
  const [columns, rows] = [right - left + 1, bottom - top + 1];
  const [width, height] = [CELL.width * zoom, CELL.height * zoom];
  const showAll = () => {
    const { clientWidth, clientHeight } = view.current!;
    const box = boxOf(cells, 1);
    const fits = Math.min(
      clientWidth / ((box.right - box.left + 1) * CELL.width),
      clientHeight / ((box.bottom - box.top + 1) * CELL.height),
    );
    middle.current = { x: (box.left + box.right + 1) / 2, y: (box.top + box.bottom + 1) / 2 };
    setZoom(Math.max(ZOOM.least, Math.min(1, fits)));
    center();
  };
  const center = () => {
    const { clientWidth, clientHeight } = view.current!;
    const { x, y } = middle.current;
    view.current!.scrollTo((x - left) * width - clientWidth / 2, (y - top) * height - clientHeight / 2);
  };
  const enlarge = (by: number) => {
    isMoved.current = true;
    setZoom((now) => Math.max(ZOOM.least, Math.min(ZOOM.most, now * by)));
  };
  const onScroll = () => {
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = view.current!;
    const [x, y] = [(scrollLeft + clientWidth / 2) / width, (scrollTop + clientHeight / 2) / height];
    middle.current = { x: left + x, y: top + y };
  };
  const fit = useRef((): unknown => undefined);
  fit.current = () => !isMoved.current && showAll();
  useLayoutEffect(() => void fit.current(), [fitKey]);
  useEffect(() => {
    // The first size is that of the laid out page; another width is that of a phone that was turned.
    let width = 0;
    const observer = new ResizeObserver(() => {
      if (view.current === null || view.current.clientWidth === width) return;
      width = view.current.clientWidth;
      fit.current();
    });
    observer.observe(view.current!);
    return () => observer.disconnect();
  }, []);
  // Tiles beyond the cells of before, and another size of the cells, leave in sight what was there.
  useLayoutEffect(center, [left, top, width]);
  return (
    <div class={`grid ${props.class ?? ""}`}>
      <div class="grid-bar">
        <span class="grid-hint">{hint}</span>
        <button type="button" aria-label={t("zoomOut")} title={t("zoomOut")} onClick={() => enlarge(1 / ZOOM.step)}>
          −
        </button>
        <button type="button" aria-label={t("zoomIn")} title={t("zoomIn")} onClick={() => enlarge(ZOOM.step)}>
          +
        </button>
        <button
          type="button"
          onClick={() => {
            isMoved.current = false;
            showAll();
          }}
        >
          {t("showAll")}
        </button>
      </div>
      <div
        ref={view}
        class="grid-view"
        role="group"
        aria-label={t("grid")}
        tabIndex={onClick === undefined ? 0 : undefined}
        data-drop={mayDrop ? "cell" : undefined}
        onClick={onClick}
        onScroll={onScroll}
        onTouchMove={() => (isMoved.current = true)}
        onPointerDown={(event) => pan(event, () => (isMoved.current = true))}
        onWheel={(event) => {
          isMoved.current = true;
          if (!event.ctrlKey) return;
          event.preventDefault();
          enlarge(event.deltaY < 0 ? ZOOM.step : 1 / ZOOM.step);
        }}
      >
        <div
          class="plane"
          data-left={left}
          data-top={top}
          data-columns={columns}
          data-rows={rows}
          style={{
            "--left": left,
            "--top": top,
            "--cell-w": `${width}px`,
            "--cell-h": `${height}px`,
            "--tile-w": `${TILE * zoom}px`,
            width: `${width * columns}px`,
            height: `${height * rows}px`,
          }}
        >
          {children}
        </div>
      </div>
    </div>
  );
}

/** Moves the grid under a mouse that drags an empty place; a finger scrolls by itself. */
function pan(down: PointerEvent & { currentTarget: HTMLElement }, onMove: () => void): void {
  const isTile = (down.target as Element).closest(".movable:not(.fixed)") !== null;
  if (down.pointerType !== "mouse" || down.button !== 0 || isTile) return;
  const view = down.currentTarget;
  const start = { left: view.scrollLeft, top: view.scrollTop };
  let isPanning = false;
  const move = ({ clientX, clientY }: PointerEvent) => {
    const [dx, dy] = [clientX - down.clientX, clientY - down.clientY];
    if (!isPanning && Math.hypot(dx, dy) < THRESHOLD) return;
    isPanning = true;
    onMove();
    view.scrollTo(start.left - dx, start.top - dy);
  };
  const up = () => {
    window.removeEventListener("pointermove", move);
    window.removeEventListener("pointerup", up);
    window.removeEventListener("pointercancel", up);
    if (!isPanning) return;
    // The click at the end of the way lays no tiles.
    const suppress = (event: Event) => event.stopPropagation();
    view.addEventListener("click", suppress, { capture: true, once: true });
    setTimeout(() => view.removeEventListener("click", suppress, { capture: true }));
  };
  window.addEventListener("pointermove", move);
  window.addEventListener("pointerup", up);
  window.addEventListener("pointercancel", up);
}

/** A grid that cannot be changed. Tiles that are not in `before` are marked. */
export function StaticGrid({ placements, before }: { placements: readonly Placement[]; before: readonly Placed[] }) {
  const fresh = freshCells(before, placements);
  return (
    <GridFrame cells={placements} fitKey={placements}>
      {placements.map((placement) => (
        <div key={`${placement.x},${placement.y}`} class="cell" style={inCell(placement)}>
          <StaticTile
            tile={placement.tile}
            name={lyingText(placement.tile, placement.faces)}
            mark={fresh.includes(placement) ? "fresh" : ""}
          />
        </div>
      ))}
    </GridFrame>
  );
}
