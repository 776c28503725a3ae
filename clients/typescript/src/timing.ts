/** Resolves after `ms`, or at once when one of the signals aborts. */
export function sleep(ms: number, ...signals: (AbortSignal | undefined)[]): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      for (const signal of signals) signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    for (const signal of signals) signal?.addEventListener("abort", done);
    if (signals.some((signal) => signal?.aborted)) done();
  });
}

/** Returns the delay before the retry after `failures` failures: exponential, with 20 % of jitter. */
export function backoffMs(failures: number, initialMs: number, maxMs: number, multiplier = 2): number {
  const delay = Math.min(initialMs * multiplier ** Math.max(failures - 1, 0), maxMs);
  return delay * (0.8 + 0.4 * Math.random());
}
