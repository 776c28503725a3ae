/** A value that views follow. */
import { useEffect, useState } from "preact/hooks";

export class Store<T extends object> {
  #value: T;
  readonly #listeners = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(patch: Partial<T>): void {
    this.#value = { ...this.#value, ...patch };
    for (const listener of [...this.#listeners]) listener();
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** Renders again when what the component reads from a source changes. */
export function useFollowed<T>(subscribe: (listener: () => void) => () => void, read: () => T): T {
  const [value, setValue] = useState(read);
  useEffect(() => {
    const follow = () => setValue(read);
    follow();
    return subscribe(follow);
  }, [subscribe]);
  return value;
}

/** Renders again when the value changes; with `partsOf`, when one of the parts that it returns does. */
export function useStore<T extends object>(store: Store<T>, partsOf: (value: T) => readonly unknown[] = (value) => [value]): T {
  const [, setTick] = useState(0);
  const { value } = store;
  useEffect(() => {
    let seen = partsOf(value);
    const follow = () => {
      const parts = partsOf(store.value);
      if (parts.some((part, i) => part !== seen[i])) setTick((tick) => tick + 1);
      seen = parts;
    };
    follow(); // the value may have changed after it was rendered
    return store.subscribe(follow);
  }, [store]);
  return value;
}
