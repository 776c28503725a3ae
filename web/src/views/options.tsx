/** All options of a ruleset and the settings of a room, made from the contract's descriptors: a new one appears by itself. */
import { ScalarType, type DescField } from "@bufbuild/protobuf";
import { type NamedRuleset } from "rummikub-client";
import type { Family } from "../control/lobby.js";
import { t } from "../i18n/index.js";
import {
  type Option,
  optionHelp,
  optionName,
  OPTIONS,
  optionValue,
  pathOf,
  rangeOf,
  stageName,
  valueName,
  valueHelp,
} from "./option-text.js";

type Options = Readonly<Record<string, number | boolean>>;

export function AllOptions(props: {
  family: Family;
  options: Options;
  base: NamedRuleset | undefined;
  onChange: (options: Options) => void;
}) {
  const { family, options, base, onChange } = props;
  const set = (name: string, value: number | boolean | undefined) => {
    const { [name]: _, ...others } = options;
    onChange(value === undefined ? others : { ...others, [name]: value });
  };
  const stages = [...new Set(OPTIONS[family].map(({ stage }) => stage))];
  return (
    <>
      <p class="help">{t("allOptionsHelp")}</p>
      <div class="options">
        {stages.map((stage) => (
          <fieldset key={stage?.name ?? ""}>
            <legend>{stageName(stage)}</legend>
            {OPTIONS[family].filter((option) => option.stage === stage).map((option) => (
              <OptionField
                key={pathOf(option)}
                family={family}
                option={option}
                value={options[keyOf(option)]}
                base={base && optionValue(base, option)}
                onChange={(value) => set(keyOf(option), value)}
              />
            ))}
          </fieldset>
        ))}
      </div>
    </>
  );
}

/** The key of an option in a new game. */
function keyOf({ field, stage }: Option): string {
  return stage === undefined ? field.localName : `${stage.localName}.${field.localName}`;
}

/** Returns what is wrong with the first number out of its range, in words. */
export function firstOutOfRange(family: Family, options: Options): string | undefined {
  const wrong = OPTIONS[family].find((option) => isOutOfRange(family, option, options[keyOf(option)]));
  return wrong && `${optionName(wrong)}: ${t("rangeIs", rangeOf(family, wrong)!)}`;
}

function isOutOfRange(family: Family, option: Option, value: number | boolean | undefined): boolean {
  const range = rangeOf(family, option);
  return typeof value === "number" && range !== undefined && (value < range.least || value > range.most);
}

interface OptionProps {
  family: Family;
  option: Option;
  value: number | boolean | undefined;
  base: unknown;
  onChange: (value: number | boolean | undefined) => void;
}

function OptionField({ family, option, value, base, onChange }: OptionProps) {
  const path = pathOf(option);
  const id = `option-${path}`;
  const range = rangeOf(family, option);
  const isWrong = isOutOfRange(family, option, value);
  const { field } = option;
  const chosen = field.fieldKind === "enum" ? valueHelp(field, Number(value ?? base ?? 0)) : "";
  return (
    <div class="option" data-option={path}>
      <label class="field">
        {optionName(option)}
        <OptionInput
          field={field}
          value={value}
          base={base}
          aria-describedby={id}
          aria-invalid={isWrong}
          onChange={onChange}
        />
      </label>
      <p id={id} class={isWrong ? "problem" : "help"}>
        {isWrong ? t("rangeIs", range!) : [optionHelp(family, option), chosen].filter(Boolean).join(" ")}
      </p>
    </div>
  );
}

type InputProps = Pick<OptionProps, "value" | "base" | "onChange"> & {
  field: DescField;
  "aria-describedby": string;
  "aria-invalid": boolean;
};

function OptionInput({ field, value, base, onChange, ...aria }: InputProps) {
  if (field.fieldKind === "message" || (field.fieldKind === "scalar" && field.scalar !== ScalarType.BOOL)) {
    return (
      <input
        {...aria}
        type="number"
        min={0}
        step="any"
        value={value === undefined ? "" : Number(value)}
        placeholder={String(base ?? "")}
        onInput={({ currentTarget: { value: text } }) => onChange(text === "" ? undefined : Number(text))}
      />
    );
  }
  const isBool = field.fieldKind === "scalar";
  const choices: [string, number][] =
    field.fieldKind === "enum"
      ? field.enum.values.filter(({ number }) => number > 0).map(({ number }) => [valueName(field, number), number])
      : [
          [t("yes"), 1],
          [t("no"), 0],
        ];
  return (
    <select
      {...aria}
      value={value === undefined ? "" : Number(value)}
      onChange={({ currentTarget: { value: text } }) => {
        if (text === "") onChange(undefined);
        else onChange(isBool ? text === "1" : Number(text));
      }}
    >
      <option value="">{base === undefined ? "–" : `– (${valueName(field, base)})`}</option>
      {choices.map(([name, number]) => (
        <option key={name} value={number}>
          {name}
        </option>
      ))}
    </select>
  );
}
