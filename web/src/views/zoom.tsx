/** Enlarges the melds of a table: by buttons, by two fingers, and by the wheel with Ctrl. */
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";
import { followZoom, ZOOM_STEP, zoomed } from "rummikub-board/zoom";
import { t } from "../i18n/index.js";

/** Returns how much an element is enlarged, and a function that multiplies it. */
export function useZoom(element: RefObject<HTMLElement | null>): readonly [number, (by: number) => void] {
  const [zoom, setZoom] = useState(1);
  const enlarge = (by: number) => setZoom((now) => zoomed(now, by));
  useEffect(() => followZoom(element.current!, enlarge), []);
  return [zoom, enlarge];
}

export function ZoomButtons({ onZoom }: { onZoom: (by: number) => void }) {
  return (
    <span class="zoom">
      <button type="button" aria-label={t("zoomOut")} title={t("zoomOut")} onClick={() => onZoom(1 / ZOOM_STEP)}>
        −
      </button>
      <button type="button" aria-label={t("zoomIn")} title={t("zoomIn")} onClick={() => onZoom(ZOOM_STEP)}>
        +
      </button>
    </span>
  );
}
