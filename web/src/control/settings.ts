/** How the page looks to this player: kept in the browser, and set as attributes of the root that the styles read. */
import { Store } from "./store.js";

export interface Settings {
  /** Light or dark; as the system has it by default. */
  readonly scheme: "system" | "light" | "dark";
  readonly size: "normal" | "large" | "small";
  /** The faces of the tiles: ivory, or flat with large numbers. */
  readonly tiles: "classic" | "flat";
  /** The colors of the tiles: those of the game, or four that differ for all kinds of color blindness. */
  readonly palette: "usual" | "distinct";
  /** Whether the developer's drawer has a button. */
  readonly developer: "off" | "on";
}

const KEY = "rummikub.settings";

/** The values of each setting, the default first. */
export const CHOICES: { readonly [name in keyof Settings]: readonly Settings[name][] } = {
  scheme: ["system", "light", "dark"],
  size: ["normal", "large", "small"],
  tiles: ["classic", "flat"],
  palette: ["usual", "distinct"],
  developer: ["off", "on"],
};

const NAMES = Object.keys(CHOICES) as (keyof Settings)[];

/** Returns the stored settings. One that is unknown has its default. */
export function readSettings(text: string | null): Settings {
  let stored: Record<string, unknown> = {};
  try {
    stored = (JSON.parse(text ?? "{}") ?? {}) as Record<string, unknown>;
  } catch {
    // A broken store begins anew.
  }
  const value = (name: keyof Settings) => (CHOICES[name] as readonly unknown[]).find((one) => one === stored[name]) ?? CHOICES[name][0];
  return Object.fromEntries(NAMES.map((name) => [name, value(name)])) as unknown as Settings;
}

export const settings = new Store<Settings>(readSettings(null));

/** Reads the settings, and keeps the root's attributes and the store as they are chosen. */
export function followSettings(root: HTMLElement, storage: Pick<Storage, "getItem" | "setItem">): void {
  const show = () => NAMES.forEach((name) => (root.dataset[name] = settings.value[name]));
  settings.set(readSettings(storage.getItem(KEY)));
  show();
  settings.subscribe(() => {
    show();
    try {
      storage.setItem(KEY, JSON.stringify(settings.value));
    } catch {
      // Without storage the choice lasts as long as the page.
    }
  });
}
