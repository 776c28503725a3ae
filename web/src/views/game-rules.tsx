/** The rules of a game to read: their name, and what differs from the standard game. */
import { type Game, type NamedRuleset } from "rummikub-client";
import { useEffect, useState } from "preact/hooks";
import { type Family, listRulesets } from "../control/lobby.js";
import { errorText, presetSummary, presetTitle, t } from "../i18n/index.js";
import { meldingOf, rulesetOf } from "../model/turn.js";
import { type Option, optionHelp, optionName, OPTIONS, optionValue, pathOf, stageName, valueHelp, valueName } from "./option-text.js";

export function GameRules({ game }: { game: Game }) {
  const [rulesets, setRulesets] = useState<readonly NamedRuleset[]>([]);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    listRulesets().then(setRulesets, (error: unknown) => setProblem(errorText(error)));
  }, []);
  const family = game.ruleset?.game.case ?? "melding";
  const named = rulesets.find((one) => rulesetOf(one)?.preset === rulesetOf(game)?.preset);
  // The first preset of a family is its standard game.
  const usual = rulesets.find((one) => one.ruleset?.game.case === family);
  if (named === undefined || usual === undefined) return <p role="status">{problem || "…"}</p>;
  const differing = OPTIONS[family].filter((option) => optionValue(game, option) !== optionValue(usual, option));
  const threshold = meldingOf(game)?.initialMeld?.threshold;
  return (
    <div class="game-rules">
      <p>
        <strong>{presetTitle(named)}.</strong> {presetSummary(named)}
      </p>
      {threshold !== undefined && <p>{t("initialMeld", { points: threshold })}</p>}
      {differing.length === 0 ? (
        <p>{t("rulesStandard")}</p>
      ) : (
        <>
          <h3>{t("rulesDiffer", { name: presetTitle(usual) })}</h3>
          <ul>
            {differing.map((option) => (
              <Difference key={pathOf(option)} option={option} game={game} usual={usual} family={family} />
            ))}
          </ul>
        </>
      )}
      <a href="#/how-to-play">{t("howToPlay")}</a>
    </div>
  );
}

interface DifferenceProps {
  option: Option;
  game: Game;
  usual: NamedRuleset;
  family: Family;
}

function Difference({ option, game, usual, family }: DifferenceProps) {
  const [value, standard] = [optionValue(game, option), optionValue(usual, option)];
  const meaning = valueHelp(option.field, Number(value)) || optionHelp(family, option);
  return (
    <li>
      <strong>
        {stageName(option.stage)} · {optionName(option)}: {valueName(option.field, value)}
      </strong>{" "}
      ({t("standardIs", { value: valueName(option.field, standard) })}). <span class="help">{meaning}</span>
    </li>
  );
}
