/**
 * Texts for players: the page's own, and the service's message catalog, which the build takes from docs/messages.
 * English is part of the page; another language is a file of its own, which is loaded when it is chosen.
 */
import {
  Code,
  ConnectError,
  ErrorReason,
  explain,
  type NamedRuleset,
  refusal,
  StepKind,
  type SuggestedStep,
  Tile,
  TileColor,
  type Violation,
} from "rummikub-client";
import { colors, direction, reasons } from "../../../service/messages/en.json";
import { Store } from "../control/store.js";
import { faceOf } from "../model/tiles.js";
import { en, type Key } from "./en.js";

export type { Key };

export interface Catalog {
  /** "ltr" or "rtl". */
  readonly direction: string;
  readonly colors: Readonly<Record<string, { readonly name: string; readonly symbol: string }>>;
  readonly reasons: Readonly<Record<string, string>>;
}

export interface Texts {
  /** A text that a language does not have yet is shown in English. */
  readonly texts: Readonly<Partial<Record<Key, string>>>;
  readonly catalog: Catalog;
  /** Titles and summaries of the presets by their names. English ones come from the service. */
  readonly presets?: Readonly<Record<string, readonly [title: string, summary: string]>>;
  /** The options by their places in the contract, and their values by their names there. */
  readonly options?: Readonly<Record<string, string>>;
  /** What the options mean, by their places. Those that their names and ranges explain are not there. */
  readonly meanings?: Readonly<Record<string, string>>;
}

const ENGLISH: Texts = { texts: en, catalog: { direction, colors, reasons } };

export const LANGUAGES = {
  en: { name: "English", load: (): Promise<Texts> => Promise.resolve(ENGLISH) },
  de: { name: "Deutsch", load: (): Promise<Texts> => import("./de.js") },
  es: { name: "Español", load: (): Promise<Texts> => import("./es.js") },
  fr: { name: "Français", load: (): Promise<Texts> => import("./fr.js") },
  he: { name: "עברית", load: (): Promise<Texts> => import("./he.js") },
  ja: { name: "日本語", load: (): Promise<Texts> => import("./ja.js") },
  nl: { name: "Nederlands", load: (): Promise<Texts> => import("./nl.js") },
  pl: { name: "Polski", load: (): Promise<Texts> => import("./pl.js") },
  pt: { name: "Português", load: (): Promise<Texts> => import("./pt.js") },
  tr: { name: "Türkçe", load: (): Promise<Texts> => import("./tr.js") },
} as const;

/** The language that the page speaks. */
interface Spoken extends Pick<Texts, "texts" | "catalog"> {
  readonly code: Language;
  readonly presets?: Texts["presets"] | undefined;
  readonly options?: Texts["options"] | undefined;
  readonly meanings?: Texts["meanings"] | undefined;
}

export type Language = keyof typeof LANGUAGES;

export const language = new Store<Spoken>({ code: "en", ...ENGLISH });

/** Loads a language and speaks it. Without an answer the page keeps its language. */
export async function speak(code: Language): Promise<void> {
  const { texts, catalog, presets, options, meanings } = await LANGUAGES[code].load().catch(() => language.value);
  if (texts !== language.value.texts) language.set({ code, texts, catalog, presets, options, meanings });
}

/** Returns the language to begin with: the one chosen before, else the browser's, else English. */
export function preferredLanguage(chosen: string | null, browser: readonly string[]): Language {
  const codes = [chosen ?? "", ...browser].map((tag) => tag.split("-")[0]!);
  return codes.find((code): code is Language => code in LANGUAGES) ?? "en";
}

/** Replaces keys in braces by values. */
export function fill(text: string, values: Readonly<Record<string, string | number>>): string {
  return text.replace(/\{(\w+)\}/g, (all, key: string) => String(values[key] ?? all));
}

export function t(key: Key, values: Readonly<Record<string, string | number>> = {}): string {
  return fill(language.value.texts[key] ?? en[key], values);
}

/** Returns the title of a preset. */
export function presetTitle({ name, title }: Pick<NamedRuleset, "name" | "title">): string {
  return language.value.presets?.[name]?.[0] ?? title;
}

/** Returns what is special about a preset, in one line. */
export function presetSummary({ name, summary }: Pick<NamedRuleset, "name" | "summary">): string {
  return language.value.presets?.[name]?.[1] ?? summary;
}

/** Returns a number, with a true minus. */
export function numberText(number: number): string {
  return String(number).replace("-", "−");
}

/** Returns points with their sign. */
export function signed(points: number): string {
  return points > 0 ? `+${points}` : numberText(points);
}

export function colorOf(color: TileColor): { name: string; symbol: string } {
  return language.value.catalog.colors[TileColor[color] ?? ""] ?? { name: "?", symbol: "?" };
}

const JOKER_TEXTS: { readonly [tile in Tile]?: Key } = {
  [Tile.FALSE_JOKER]: "falseJoker",
  [Tile.DOUBLE_JOKER]: "doubleJoker",
  [Tile.MIRROR]: "mirror",
  [Tile.COLOR_CHANGE]: "colorChange",
};

/** Returns a tile's name, such as "red 7". */
export function tileText(tile: Tile): string {
  const face = faceOf(tile);
  if (face === undefined) return t(JOKER_TEXTS[tile] ?? "joker");
  return t("tileName", { color: colorOf(face.color).name, value: face.value });
}

/** Returns a cell of a grid, such as "column 2, row -1". */
export function cellText({ x, y }: { readonly x: number; readonly y: number }): string {
  return t("cell", { x, y });
}

/** Returns a slot of a rack of two rows, such as "row 2, slot 3". */
export function slotText({ columns }: { readonly columns: number }, index: number): string {
  return t("slot", { row: Math.floor(index / columns) + 1, slot: (index % columns) + 1 });
}

export function tilesList(tiles: readonly Tile[]): string {
  return tiles.map(tileText).join(", ");
}

const STEP_TEXTS: { readonly [kind in StepKind]?: Key } = {
  [StepKind.PULL]: "stepPull",
  [StepKind.SPLIT]: "stepSplit",
  [StepKind.SUBSTITUTE]: "stepSubstitute",
  [StepKind.ARRANGE]: "stepArrange",
  [StepKind.TAKE]: "stepTake",
  [StepKind.JOIN]: "stepJoin",
  [StepKind.PLACE]: "stepPlace",
  [StepKind.EXTEND]: "stepExtend",
  [StepKind.LAY_JOKERS]: "stepJokers",
};

/** Returns a step of a suggested or explained turn in words. */
export function stepText({ kind, text, tiles, laid, parts }: SuggestedStep): string {
  const key = STEP_TEXTS[kind];
  if (key === undefined) return text;
  return t(key, {
    tiles: tilesList(tiles),
    laid: tilesList(laid?.tiles ?? []),
    parts: parts.map((part) => `[${tilesList(part.laid?.tiles ?? [])}]`).join(t("and")),
  });
}

/** Returns the service's text for a reason. A reason of a newer service has none. */
export function reasonText(
  reason: ErrorReason,
  values: Readonly<Record<string, string | number>> = {},
): string | undefined {
  const text = language.value.catalog.reasons[ErrorReason[reason] ?? ""];
  return text === undefined ? undefined : fill(text, values);
}

export function violationText(violation: Violation): string {
  return reasonText(violation.reason, violation.metadata) ?? violation.text;
}

/** Returns why a call failed, for a player. */
export function errorText(error: unknown): string {
  const refused = refusal(error);
  if (refused !== undefined) {
    // A code of a wrong form is as unknown to a player as one that no game has.
    const isCode = refused.fields.includes("join_code");
    const reason = isCode ? ErrorReason.JOIN_CODE_UNKNOWN : refused.reason;
    const text = reasonText(reason, refused.metadata) ?? explain(error);
    return isCode || refused.fields.length === 0 ? text : `${text} (${refused.fields.join(", ")})`;
  }
  if (!(error instanceof ConnectError)) return String(error);
  if (error.code === Code.Unimplemented) return t("oldServer");
  return error.code === Code.Unavailable || error.code === Code.DeadlineExceeded ? t("noConnection") : explain(error);
}
