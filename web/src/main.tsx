import "../styles/base.css";
import "../styles/table.css";
import "../styles/pages.css";
import "../styles/looks.css";
import { render } from "preact";
import { followSettings } from "./control/settings.js";
import { language, preferredLanguage, speak } from "./i18n/index.js";
import { App } from "./views/app.js";

const LANGUAGE = "rummikub.language";

followSettings(document.documentElement, localStorage);
await speak(preferredLanguage(localStorage.getItem(LANGUAGE), navigator.languages));
const tag = () => {
  document.documentElement.lang = language.value.code;
  document.documentElement.dir = language.value.catalog.direction;
};
tag();
// Only a choice is stored: until then the page follows the browser.
language.subscribe(() => {
  tag();
  try {
    localStorage.setItem(LANGUAGE, language.value.code);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
});
const root = document.getElementById("app")!;
root.replaceChildren();
render(<App />, root);
// After the page, which it must not slow down. Browsers have service workers over TLS and on this machine only.
if ("serviceWorker" in navigator) {
  const register = () => void navigator.serviceWorker.register("sw.js").catch(() => {});
  if (document.readyState === "complete") register();
  else window.addEventListener("load", register);
}
