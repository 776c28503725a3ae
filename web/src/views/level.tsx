import { BotLevel } from "rummikub-client";
import { t } from "../i18n/index.js";

export function LevelSelect({ value, onChange }: { value: BotLevel; onChange: (level: BotLevel) => void }) {
  return (
    <select value={value} onChange={(e) => onChange(Number(e.currentTarget.value))} aria-label={t("botLevel")}>
      <option value={BotLevel.EASY}>{t("easy")}</option>
      <option value={BotLevel.MEDIUM}>{t("medium")}</option>
      <option value={BotLevel.HARD}>{t("hard")}</option>
    </select>
  );
}

