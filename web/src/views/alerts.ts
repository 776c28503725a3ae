/** Tells the player that it is their turn: in the tab's title and icon, by a sound, a vibration and a notification. */
import { GameState, type Game } from "rummikub-client";
import { useEffect } from "preact/hooks";
import { Store } from "../control/store.js";
import { t } from "../i18n/index.js";

export interface Alerts {
  readonly sound: boolean;
  readonly vibration: boolean;
  readonly notification: boolean;
}

const KEY = "rummikub.alerts";
/** The notes in Hz: of a turn that begins, and of each of its last seconds. */
const TURN = [660, 880];
const TICK = [440];
const NOTE_SECONDS = 0.12;
const VIBRATION_MS = 200;
const DOT = "%3Ccircle cx='24' cy='8' r='7' fill='%2317a34a' stroke='%23fff' stroke-width='2'/%3E";

/** What the player wants to be told by. */
export const alerts = new Store<Alerts>({ sound: true, vibration: true, notification: false, ...stored() });

function stored(): Partial<Alerts> {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Alerts>;
  } catch {
    return {};
  }
}

/** Turns an alert on or off. A notification is asked for, and stays off if it is not allowed. */
export async function setAlert(name: keyof Alerts, isOn: boolean): Promise<void> {
  const isAllowed = name !== "notification" || !isOn || (await Notification.requestPermission()) === "granted";
  alerts.set({ [name]: isOn && isAllowed });
  try {
    localStorage.setItem(KEY, JSON.stringify(alerts.value));
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

let audio: AudioContext | undefined;

function ring(notes: readonly number[]): void {
  if (!alerts.value.sound) return;
  audio ??= new AudioContext();
  const volume = audio.createGain();
  volume.gain.value = 0.08;
  volume.connect(audio.destination);
  notes.forEach((frequency, i) => {
    const note = audio!.createOscillator();
    note.frequency.value = frequency;
    note.connect(volume);
    note.start(audio!.currentTime + i * NOTE_SECONDS);
    note.stop(audio!.currentTime + (i + 1) * NOTE_SECONDS);
  });
}

/** Makes one of the last seconds of a turn heard. */
export function tick(): void {
  ring(TICK);
}

function tell(): void {
  const { vibration, notification } = alerts.value;
  ring(TURN);
  // Before the first tap browsers refuse it, with an error on the console.
  if (vibration && navigator.userActivation?.hasBeenActive) navigator.vibrate?.(VIBRATION_MS);
  if (notification && document.hidden) new Notification(t("title"), { body: t("evYourTurn"), tag: KEY });
}

/** Tells when the player's turn begins, and shows it in the tab while it lasts. */
export function useTurnAlert({ state, turn, seat }: Game): void {
  const isMine = state === GameState.PLAYING && seat !== undefined && turn?.seat === seat;
  useEffect(() => {
    if (!isMine) return;
    const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]")!;
    const { href } = icon;
    document.title = `● ${t("yourTurn")} – ${t("title")}`;
    icon.href = href.replace("%3C/svg%3E", `${DOT}%3C/svg%3E`);
    tell();
    return () => {
      document.title = t("title");
      icon.href = href;
    };
  }, [isMine]);
}
