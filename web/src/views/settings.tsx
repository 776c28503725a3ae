/** The settings of the page, and the developer's drawer. */
// Files that are loaded later share all of the page's start, so that it stays one chunk.
import "./app.js";
import { CHOICES, type Settings, settings } from "../control/settings.js";
import { useStore } from "../control/store.js";
import { type Key, t } from "../i18n/index.js";
import { Dialog } from "./dialog.js";

export { Drawer } from "./drawer.js";

const TITLES: { readonly [name in keyof Settings]: Key } = {
  scheme: "setScheme",
  size: "setSize",
  tiles: "setTiles",
  palette: "setPalette",
  developer: "drawerTitle",
};
const VALUES: Readonly<Record<string, Key>> = {
  system: "setSystem",
  light: "setLight",
  dark: "setDark",
  small: "setSmall",
  normal: "setNormal",
  large: "setLarge",
  classic: "setClassic",
  flat: "setFlat",
  usual: "setUsual",
  distinct: "setDistinct",
  off: "no",
  on: "yes",
};

export function SettingsDialog({ onClose }: { onClose: () => void }) {
  const chosen = useStore(settings);
  return (
    <Dialog title={t("settings")} onClose={onClose}>
      {(Object.keys(TITLES) as (keyof Settings)[]).map((name) => (
        <label key={name} class="field">
          {t(TITLES[name])}
          <select value={chosen[name]} onChange={(event) => settings.set({ [name]: event.currentTarget.value })}>
            {CHOICES[name].map((value) => (
              <option key={value} value={value}>
                {t(VALUES[value]!)}
              </option>
            ))}
          </select>
        </label>
      ))}
    </Dialog>
  );
}
