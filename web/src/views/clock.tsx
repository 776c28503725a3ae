import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { useEffect, useState } from "preact/hooks";
import { clockText, type ServerClock } from "../model/clock.js";

/** Seconds until a time of the server, counted down. */
export function useSecondsUntil(time: Timestamp | undefined, clock: ServerClock): number | undefined {
  const [, setTick] = useState(0);
  useEffect(() => {
    if (time === undefined) return;
    const timer = setInterval(() => setTick((tick) => tick + 1), 250);
    return () => clearInterval(timer);
  }, [time]);
  return time === undefined ? undefined : clock.secondsUntil(time, performance.now());
}

interface CountdownProps {
  time: Timestamp | undefined;
  clock: ServerClock;
  /** Called when so many seconds are left. */
  onSeconds?: (seconds: number) => void;
}

export function Countdown({ time, clock, onSeconds }: CountdownProps) {
  const seconds = useSecondsUntil(time, clock);
  useEffect(() => {
    if (seconds !== undefined) onSeconds?.(seconds);
  }, [seconds]);
  if (seconds === undefined) return null;
  return (
    <span class={seconds <= 10 ? "clock urgent" : "clock"} role="timer" aria-live="off">
      {clockText(seconds)}
    </span>
  );
}
