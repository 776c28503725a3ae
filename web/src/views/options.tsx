/** All options of a ruleset, made from the contract's descriptor: a new option appears by itself. */
import { ScalarType, type DescField } from "@bufbuild/protobuf";
import { type Ruleset, RulesetSchema } from "rummikub-client";
import { t } from "../i18n/index.js";

type Options = Readonly<Record<string, number | boolean>>;

export function AllOptions(props: {
  options: Options;
  base: Ruleset | undefined;
  onChange: (options: Options) => void;
}) {
  const { options, base, onChange } = props;
  const set = (name: string, value: number | boolean | undefined) => {
    const { [name]: _, ...others } = options;
    onChange(value === undefined ? others : { ...others, [name]: value });
  };
  return (
    <>
      <p class="help">{t("allOptionsHelp")}</p>
      <div class="options">
        {RulesetSchema.fields
          .filter(({ name }) => name !== "preset")
          .map((field) => (
            <label key={field.name} class="field">
              <code>{field.name}</code>
              <OptionInput
                field={field}
                value={options[field.localName]}
                base={(base as Record<string, unknown> | undefined)?.[field.localName]}
                onChange={(value) => set(field.localName, value)}
              />
            </label>
          ))}
      </div>
    </>
  );
}

interface OptionProps {
  field: DescField;
  value: number | boolean | undefined;
  base: unknown;
  onChange: (value: number | boolean | undefined) => void;
}

function OptionInput({ field, value, base, onChange }: OptionProps) {
  if (field.fieldKind === "scalar" && field.scalar !== ScalarType.BOOL) {
    return (
      <input
        type="number"
        min={0}
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
