import { useState } from "preact/hooks";
import { t } from "../i18n/index.js";

/** A button that copies a text. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2_000);
  };
  return (
    <button type="button" class="quiet" onClick={() => void copy()}>
      <span aria-live="polite">{isCopied ? t("copied") : label}</span>
    </button>
  );
}
