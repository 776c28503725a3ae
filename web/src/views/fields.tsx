/** Fields of several forms: the player's name, which is remembered, and the strength of bots. */
import { BotLevel } from "rummikub-client";
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

export function LevelSelect({ value, onChange }: { value: BotLevel; onChange: (level: BotLevel) => void }) {
  return (
    <select value={value} onChange={(e) => onChange(Number(e.currentTarget.value))} aria-label={t("botLevel")}>
      <option value={BotLevel.EASY}>{t("easy")}</option>
      <option value={BotLevel.MEDIUM}>{t("medium")}</option>
      <option value={BotLevel.HARD}>{t("hard")}</option>
    </select>
  );
}

