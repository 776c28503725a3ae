/** The player's name: asked for where one sits down, and remembered. */
import { t } from "../i18n/index.js";

const NAME = "rummikub.name";

export function storedName(): string {
  return localStorage.getItem(NAME) ?? "";
}

export function storeName(name: string): void {
  try {
    localStorage.setItem(NAME, name.trim());
  } catch {
    // Without storage it is asked for again.
  }
}

export function NameField({ name, onName }: { name: string; onName: (name: string) => void }) {
  return (
    <label class="field">
      {t("yourName")}
      <input
        value={name}
        maxLength={40}
        autocomplete="nickname"
        placeholder={t("player")}
        onInput={(event) => onName(event.currentTarget.value)}
      />
    </label>
  );
}
