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

/** The texts of the levels, the weakest first, as BotLevel counts them from 1. */
export const LEVELS = ["beginner", "easy", "medium", "hard", "expert", "master"] as const;

export function LevelSelect({ value, onChange }: { value: BotLevel; onChange: (level: BotLevel) => void }) {
  return (
    <select value={value} onChange={(e) => onChange(Number(e.currentTarget.value))} aria-label={t("botLevel")}>
      {LEVELS.map((level, place) => (
        <option value={place + 1}>{t(level)}</option>
      ))}
    </select>
  );
}

