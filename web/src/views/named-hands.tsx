/** The hands with which a player of International Rummikub wins concealed, for the player to read. */
import type { NamedHand } from "rummikub-client";
import { handConditions, handName } from "../control/finish-text.js";
import { t } from "../i18n/index.js";

export function NamedHands({ hands }: { hands: readonly NamedHand[] }) {
  return (
    <details class="named-hands">
      <summary>{t("namedHands")}</summary>
      <dl>
        {hands.map((hand) => (
          <div key={hand.name}>
            <dt>{handName(hand.name)}</dt>
            <dd>{handConditions(hand).join(" · ")}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
