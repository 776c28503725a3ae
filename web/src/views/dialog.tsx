import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { t } from "../i18n/index.js";

/** A window over the page, which Escape and its button close. */
export function Dialog({ title, onClose, children }: { title: string; onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="card" aria-labelledby={id} onClose={onClose} onKeyDown={(event) => event.stopPropagation()}>
      <div class="head">
        <h2 id={id}>{title}</h2>
        <button type="button" class="quiet" onClick={() => dialog.current?.close()}>
          {t("close")}
        </button>
      </div>
      {children}
    </dialog>
  );
}
