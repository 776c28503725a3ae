/** All options of a ruleset and the settings of a room, made from the contract's descriptors: a new one appears by itself. */
import { ScalarType, type DescField, type DescMessage } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { DiscardRulesetSchema, MeldingRulesetSchema, type NamedRuleset, RoomSettingsSchema } from "rummikub-client";
import type { Family } from "../control/lobby.js";
import { t } from "../i18n/index.js";
import { rulesetOf } from "../model/turn.js";

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
  return (
    <>
      <p class="help">{t("allOptionsHelp")}</p>
      <div class="options">
        {OPTIONS[family].map(({ field, stage }) => (
          <label key={path(field.name, stage?.name)} class="field">
            <code>{path(field.name, stage?.name)}</code>
            <OptionInput
              field={field}
              value={options[path(field.localName, stage?.localName)]}
              base={baseOf(field, stage, base)}
              onChange={(value) => set(path(field.localName, stage?.localName), value)}
            />
          </label>
        ))}
      </div>
    </>
  );
}

interface Option {
  readonly field: DescField;
  /** The field of the ruleset that has it; undefined for a setting of the room. */
  readonly stage?: DescField;
}

const OPTIONS: Readonly<Record<Family, readonly Option[]>> = {
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

function path(name: string, stage: string | undefined): string {
  return stage === undefined ? name : `${stage}.${name}`;
}

/** Returns the value of an option under a preset; of a length of time its seconds. */
function baseOf(field: DescField, stage: DescField | undefined, base: NamedRuleset | undefined): unknown {
  const part = (message: unknown, name: string) => (message as Record<string, unknown> | undefined)?.[name];
  const message = stage === undefined ? base?.settings : part(rulesetOf(base), stage.localName);
  const value = part(message, field.localName);
  return field.fieldKind === "message" ? (value as Duration | undefined)?.seconds : value;
}

interface OptionProps {
  field: DescField;
  value: number | boolean | undefined;
  base: unknown;
  onChange: (value: number | boolean | undefined) => void;
}

function OptionInput({ field, value, base, onChange }: OptionProps) {
  if (field.fieldKind === "message" || (field.fieldKind === "scalar" && field.scalar !== ScalarType.BOOL)) {
    return (
      <input
        type="number"
        min={0}
        step={field.fieldKind === "message" ? "any" : 1}
        value={value === undefined ? "" : Number(value)}
        placeholder={String(base ?? "")}
        onInput={({ currentTarget: { value: text } }) => onChange(text === "" ? undefined : Number(text))}
      />
    );
  }
  const isBool = field.fieldKind === "scalar";
  const choices: [string, number][] =
    field.fieldKind === "enum"
      ? field.enum.values.filter(({ number }) => number > 0).map(({ localName, number }) => [localName, number])
      : [
          ["true", 1],
          ["false", 0],
        ];
  const baseName = isBool ? String(base) : choices.find(([, number]) => number === base)?.[0];
  return (
    <select
      value={value === undefined ? "" : Number(value)}
      onChange={({ currentTarget: { value: text } }) => {
        if (text === "") onChange(undefined);
        else onChange(isBool ? text === "1" : Number(text));
      }}
    >
      <option value="">{base === undefined ? "–" : `– (${baseName})`}</option>
      {choices.map(([name, number]) => (
        <option key={name} value={number}>
          {name}
        </option>
      ))}
    </select>
  );
}
