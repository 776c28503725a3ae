/** The check of a recorded game's deals as texts, beside what this browser noted (docs/fair-deal.md). */
import type { GameRecord } from "rummikub-client";
import { checkDeals, type DealsCheck } from "rummikub-client/fair-deal";
import type { Seat } from "../api/seats.js";
import { t } from "../i18n/index.js";
import { bytesOf } from "./hex.js";

/** Returns what a check of a record found, a text for each point; `own` is this browser's seat in the game. */
export function dealsTexts(record: GameRecord, own: Seat | undefined): string[] {
  const check = checkDeals(record, {
    ...(own?.commitment && { commitment: bytesOf(own.commitment) }),
    ...(own?.seed && { seeds: new Map([[own.seat, bytesOf(own.seed)]]) }),
  });
  const noted = check.isCommitmentNoted;
  return [
    ...ofDeals(check),
    ...(noted === undefined ? [] : [t(noted ? "commitmentNoted" : "commitmentOther"), ofSeed(check, own)]),
    t("dealsNotChecked"),
  ];
}

function ofDeals({ problem, deals }: DealsCheck): string[] {
  const unfair = deals.filter((one) => one.problem).map(({ deal }) => t("dealUnfair", { deal }));
  switch (problem) {
    case "":
      return unfair.length ? unfair : [t("dealsFair", { count: deals.length })];
    case "no round was dealt":
    case "the game began with a position, which follows from no seeds":
      return [t("nothingDealt"), ...unfair];
    default:
      return [t("seedsBroken")];
  }
}

function ofSeed({ otherSeeds }: DealsCheck, own: Seat | undefined): string {
  if (!own?.seed) return t("seedNone");
  return t(otherSeeds.length ? "seedOther" : "seedNoted");
}
