/** A turn step by step: a suggestion, an explanation, or the best turn of a review. */
import type { SuggestedStep, Table } from "rummikub-client";
import { useEffect, useState } from "preact/hooks";
import { stepText, t } from "../i18n/index.js";
import { tablesOf } from "../model/steps.js";
import { ShownTable } from "./shown-table.js";
import { StaticTable } from "./tile.js";

export interface StepperProps {
  title: string;
  before: Table | undefined;
  /** The table after the turn, for a grid. */
  after?: Table | undefined;
  steps: readonly SuggestedStep[];
  onClose?: () => void;
  onApply?: () => void;
  /** Shows the last step first. */
  startAtEnd?: boolean;
}

export function Stepper({ title, before, after, steps, onClose, onApply, startAtEnd = false }: StepperProps) {
  const [at, setAt] = useState(0);
  useEffect(() => setAt(startAtEnd ? steps.length : Math.min(1, steps.length)), [steps]);
  const tables = tablesOf(before?.melds ?? [], steps);
  const step = steps[at - 1];
  return (
    <section class="card stepper" aria-label={title}>
      <div class="head">
        <h2>{title}</h2>
        {onClose && (
          <button type="button" class="quiet" onClick={onClose}>
            {t("close")}
          </button>
        )}
      </div>
      <p aria-live="polite">
        <strong>{at === 0 ? t("stepBefore") : t("step", { step: at, steps: steps.length })}</strong>{" "}
        {step && stepText(step)}
      </p>
      {after !== undefined && after.placements.length > 0 ? (
        <ShownTable table={at === 0 ? before : after} before={before} />
      ) : (
        <StaticTable melds={tables[at] ?? []} fresh={step?.tiles ?? []} />
      )}
      <div class="actions">
        <button type="button" disabled={at === 0} onClick={() => setAt(at - 1)}>
          {t("previous")}
        </button>
        <button type="button" disabled={at >= steps.length} onClick={() => setAt(at + 1)}>
          {t("next")}
        </button>
        {onApply && (
          <button type="button" class="primary" onClick={onApply}>
            {t("apply")}
          </button>
        )}
      </div>
    </section>
  );
}
