/** Parts of the page that are files of their own. */
import type { ComponentType, FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Returns a component that is loaded when it is first shown. Until then, and without a connection, it shows nothing. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): FunctionComponent<P> {
  let loaded: ComponentType<P> | undefined;
  return function Part(props: P) {
    const [, setLoaded] = useState(loaded !== undefined);
    useEffect(() => {
      if (loaded !== undefined) return setLoaded(true); // perhaps after the first rendering
      load().then(
        (part) => {
          loaded = part;
          setLoaded(true);
        },
        () => {},
      );
    }, []);
    const Loaded = loaded;
    return Loaded === undefined ? null : <Loaded {...props} />;
  };
}
