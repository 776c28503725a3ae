/** The developer's drawer: every call and every update with its JSON. */
import { useMemo, useState } from "preact/hooks";
import { inspector } from "../api/connection.js";
import type { Entry } from "../api/inspector.js";
import { useFollowed } from "../control/store.js";
import { t } from "../i18n/index.js";
import { CopyButton } from "./copy.js";

const follow = (listener: () => void) => inspector.subscribe(listener);

export function Drawer({ onClose }: { onClose: () => void }) {
  const entries = useFollowed(follow, () => inspector.entries);
  const [filter, setFilter] = useState("");
  const [openId, setOpenId] = useState<number>();
  const shown = useMemo(() => entries.filter((entry) => matches(entry, filter)).reverse(), [entries, filter]);
  return (
    <aside id="drawer" class="drawer" aria-label={t("drawerTitle")}>
      <div class="head">
        <h2>{t("drawerTitle")}</h2>
        <button type="button" class="quiet" onClick={onClose}>
          {t("close")}
        </button>
      </div>
      <p class="help">{t("drawerHelp")}</p>
      <div class="inline">
        <label class="field">
          {t("filter")}
          <input type="search" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
        </label>
        <button type="button" onClick={() => inspector.clear()}>
          {t("clear")}
        </button>
      </div>
      <ul class="calls">
        {shown.map((entry) => (
          <Call
            key={entry.id}
            entry={entry}
            isOpen={entry.id === openId}
            onToggle={() => setOpenId(entry.id === openId ? undefined : entry.id)}
          />
        ))}
      </ul>
    </aside>
  );
}

function matches(entry: Entry, filter: string): boolean {
  const wanted = filter.trim().toLowerCase();
  return [entry.method, entry.request, ...entry.answers, entry.error ?? ""].some((text) =>
    text.toLowerCase().includes(wanted),
  );
}

function Call({ entry, isOpen, onToggle }: { entry: Entry; isOpen: boolean; onToggle: () => void }) {
  const { method, time, state, ms, answers, error, request, token } = entry;
  const isStream = answers.length > 1 || method.endsWith("WatchGame");
  return (
    <li class={`call ${state}`}>
      <button type="button" class="call-head" aria-expanded={isOpen} onClick={onToggle}>
        <code>{method}</code>
        <span>
          {isStream && `${t("updates", { count: answers.length })} · `}
          {state === "open" ? t("inProgress") : `${Math.round(ms ?? 0)} ms`} · {time.toLocaleTimeString()}
        </span>
      </button>
      {error !== undefined && <p class="call-error">{error}</p>}
      {isOpen && (
        <div class="call-body">
          <Json title={`${t("request")}${token ? ` (${t("withToken")})` : ""}`} text={request} />
          {[...answers].reverse().map((answer, i) => (
            <Json
              key={answers.length - i}
              title={isStream ? `${t("response")} ${answers.length - i}` : t("response")}
              text={answer}
            />
          ))}
        </div>
      )}
    </li>
  );
}

function Json({ title, text }: { title: string; text: string }) {
  return (
    <div class="json">
      <div class="head">
        <strong>{title}</strong>
        <CopyButton text={text} label={t("copyJson")} />
      </div>
      <pre tabIndex={0}>{text}</pre>
    </div>
  );
}
