/** The menu of hints. */
import type { HintTier } from "rummikub-client";
import { useState } from "preact/hooks";
import type { GameSession } from "../control/game-session.js";
import { type Key, t } from "../i18n/index.js";
import { highestHint } from "../model/turn.js";

interface HintMenuProps {
  session: GameSession;
  isReady: boolean;
  /** The tiers with the texts of their buttons. */
  tiers: readonly (readonly [HintTier, Key])[];
}

export function HintMenu({ session, isReady, tiers }: HintMenuProps) {
  const [isOpen, setOpen] = useState(false);
  const highest = highestHint(session.state.game);
  const allowed = tiers.filter(([tier]) => tier <= highest);
  if (allowed.length === 0) return null;
  const ask = (tier: HintTier) => {
    setOpen(false);
    void session.hints.hint(tier);
  };
  return (
    <span class="menu">
      <button type="button" aria-expanded={isOpen} disabled={!isReady} onClick={() => setOpen(!isOpen)}>
        {t("hint")}
      </button>
      {isOpen && (
        <span class="menu-list up">
          {allowed.map(([tier, text]) => (
            <button key={tier} type="button" onClick={() => ask(tier)}>
              {t(text)}
            </button>
          ))}
        </span>
      )}
    </span>
  );
}
