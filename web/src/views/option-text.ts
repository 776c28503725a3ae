/** The options of the contract in words. English meanings and ranges come from its comments, by docs/generate.py. */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { DiscardRulesetSchema, type Game, MeldingRulesetSchema, type NamedRuleset, RoomSettingsSchema } from "rummikub-client";
import type { Family } from "../control/lobby.js";
import { language, t } from "../i18n/index.js";
import table from "../i18n/options.json";
import { rulesetOf } from "../model/turn.js";

export interface Option {
  readonly field: DescField;
  /** The field of the ruleset that has it; undefined for a setting of the room. */
  readonly stage?: DescField;
}

interface Told {
  readonly text: string;
  readonly least?: number;
  readonly most?: number;
}

export const OPTIONS: Readonly<Record<Family, readonly Option[]>> = {
  melding: optionsOf(MeldingRulesetSchema),
  discard: optionsOf(DiscardRulesetSchema),
};

function optionsOf(ruleset: DescMessage): Option[] {
  return [
    // A list, such as that of the named hands, has no input.
    ...ruleset.fields.flatMap((stage) => (stage.fieldKind === "message" ? stage.message.fields.map((field) => ({ field, stage })) : [])),
    ...RoomSettingsSchema.fields.map((field) => ({ field })),
  ];
}

/** Returns an option's place in the contract, such as `deal.hand_size`. */
export function pathOf({ field, stage }: Option): string {
  return stage === undefined ? field.name : `${stage.name}.${field.name}`;
}

function toldOf(family: Family, option: Option): Told | undefined {
  const path = pathOf(option);
  return (table[family] as Record<string, Told>)[path] ?? (table.melding as Record<string, Told>)[path];
}

/** Returns the range of a number: of a length of time in seconds. */
export function rangeOf(family: Family, option: Option): { least: number; most: number } | undefined {
  const { least, most } = toldOf(family, option) ?? {};
  if (least === undefined || most === undefined) return undefined;
  return { least, most };
}

/** Returns words for a name of the contract: "Hand size" for `hand_size` or `HAND_SIZE`. */
function wordsOf(name: string): string {
  const words = name.toLowerCase().replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function stageName(stage: DescField | undefined): string {
  return language.value.options?.[stage?.name ?? "settings"] ?? (stage === undefined ? t("roomSettings") : wordsOf(stage.name));
}

export function optionName(option: Option): string {
  return language.value.options?.[pathOf(option)] ?? wordsOf(option.field.name);
}

/** Returns what an option means, and its range, which the English text of the contract has already. */
export function optionHelp(family: Family, option: Option): string {
  if (language.value.code === "en") return toldOf(family, option)?.text ?? "";
  const range = rangeOf(family, option);
  return [language.value.meanings?.[pathOf(option)], range && t("rangeIs", range)].filter(Boolean).join(" ");
}

/** Returns a value of an option in a word or two. */
export function valueName(field: DescField, value: unknown): string {
  if (field.fieldKind === "scalar" && typeof value === "boolean") return value ? t("yes") : t("no");
  if (field.fieldKind !== "enum") return String(value);
  const name = field.enum.values.find(({ number }) => number === value)?.name ?? "";
  return language.value.options?.[name] ?? wordsOf(name.slice(field.enum.sharedPrefix?.length ?? 0));
}

/** Returns what a value of an enum means; empty where only English has it. */
export function valueHelp(field: DescField, value: number): string {
  if (field.fieldKind !== "enum" || language.value.code !== "en") return "";
  const name = field.enum.values.find(({ number }) => number === value)?.name ?? "";
  return (table.values as Record<string, string>)[name] ?? "";
}

/** Returns the value of an option in a game or under a preset; of a length of time its seconds. */
export function optionValue(of: Game | NamedRuleset, { field, stage }: Option): unknown {
  const part = (message: unknown, name: string) => (message as Record<string, unknown> | undefined)?.[name];
  const value = part(stage === undefined ? of.settings : part(rulesetOf(of), stage.localName), field.localName);
  if (field.fieldKind !== "message") return value;
  const { seconds = 0n, nanos = 0 } = (value as Duration | undefined) ?? {};
  return Number(seconds) + nanos / 1e9;
}
