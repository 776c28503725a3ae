/** Enlarges the melds of a table: by buttons, by two fingers, and by the wheel with Ctrl. */
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";
import { t } from "../i18n/index.js";

const RANGE = { least: 0.7, most: 2, step: 1.25 };

/** Returns how much an element is enlarged, and a function that multiplies it. */
export function useZoom(element: RefObject<HTMLElement | null>): readonly [number, (by: number) => void] {
  const [zoom, setZoom] = useState(1);
  const enlarge = (by: number) => setZoom((now) => Math.max(RANGE.least, Math.min(RANGE.most, now * by)));
  useEffect(() => {
    const target = element.current!;
    let distance = 0;
    const apart = ({ touches: [a, b] }: TouchEvent) =>
      a === undefined || b === undefined ? 0 : Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY);
    const onStart = (event: TouchEvent) => (distance = apart(event));
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
      enlarge(event.deltaY < 0 ? RANGE.step : 1 / RANGE.step);
    };
    target.addEventListener("touchstart", onStart, { passive: true });
    target.addEventListener("touchmove", onMove, { passive: false });
    target.addEventListener("wheel", onWheel, { passive: false });
    return () => {
      target.removeEventListener("touchstart", onStart);
      target.removeEventListener("touchmove", onMove);
      target.removeEventListener("wheel", onWheel);
    };
  }, []);
  return [zoom, enlarge];
}

export function ZoomButtons({ onZoom }: { onZoom: (by: number) => void }) {
  return (
    <span class="zoom">
      <button type="button" aria-label={t("zoomOut")} title={t("zoomOut")} onClick={() => onZoom(1 / RANGE.step)}>
        −
      </button>
      <button type="button" aria-label={t("zoomIn")} title={t("zoomIn")} onClick={() => onZoom(RANGE.step)}>
        +
      </button>
    </span>
  );
}
