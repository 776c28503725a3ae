/** How a round of a game of discards was finished, and what the named hands are, as sentences. */
import { type HandFinished, type NamedHand, type RackFinished, Tile } from "rummikub-client";
import { type Key, t, tilesList } from "../i18n/index.js";

/** The hands of the rules that have a text of their own. */
const HANDS: Readonly<Record<string, Key>> = { HIGH_RUNS: "handHighRuns", LOW_RUNS: "handLowRuns" };

/** Returns the name of a hand; one of a ruleset's own list has no text, and is named as it is there. */
export function handName(name: string): string {
  const key = HANDS[name];
  return key === undefined ? name.toLowerCase().replaceAll("_", " ") : t(key);
}

/** Returns who finished a hand, and how; with the wild tile, also why all lose twice as much. */
export function finishText(
  name: string,
  { tile, isPairs, name: hand = "" }: Pick<HandFinished, "tile" | "isPairs"> & { readonly name?: string },
  wild?: Tile,
): string {
  const text = hand === "" ? t(isPairs ? "finishedPairs" : "finishedMelds", { name }) : t("finishedHand", { name, hand: handName(hand) });
  if (tile !== wild) return text;
  return `${text} ${t(wild === Tile.JOKER ? "doubledJoker" : "finishedOkey")}`;
}

/** Returns who finished a rack, and how; with the wild tile, also why the points of the round are doubled; `list` returns its tile in words. */
export function rackFinishText(
  name: string,
  { tile, isFoot, isPairs, isAtOnce }: RackFinished,
  wild?: Tile,
  list: (tiles: readonly Tile[]) => string = tilesList,
): string {
  const text = t(isFoot ? "finishedFoot" : "rackFinished", { name, tile: list([tile]) });
  if (wild === undefined) return text;
  // Only in a game with an okey the way to open doubles them.
  const hasOkey = wild !== Tile.JOKER;
  const doubled = [
    tile === wild && t(hasOkey ? "doubledOkey" : "doubledJoker"),
    hasOkey && isPairs && t("doubledPairs"),
    hasOkey && isAtOnce && t("doubledAtOnce"),
  ];
  return [text, ...doubled].filter(Boolean).join(" ");
}

/** Returns what a named hand needs, and what it scores. */
export function handConditions(hand: NamedHand): string[] {
  const { runsMin = 0, runsMax = 4, groupsMin = 0, groupsMax = 4, colorsMin = 1, colorsMax = 4, lowest = 1, highest = 14 } = hand;
  const range = (least: number, most: number) => (least === most ? String(least) : t("fromTo", { least, most }));
  const [none = 0, one = 0, two = 0] = hand.scores;
  return [
    (runsMin > 0 || runsMax < 4) && t("handRuns", { range: range(runsMin, runsMax) }),
    (groupsMin > 0 || groupsMax < 4) && t("handGroups", { range: range(groupsMin, groupsMax) }),
    (colorsMin > 1 || colorsMax < 4) && t("handColors", { range: range(colorsMin, colorsMax) }),
    hand.runColorsDiffer && t("handColorsDiffer"),
    lowest > 1 && t("handLowest", { value: lowest }),
    highest < (hand.oneHigh ? 14 : 13) && t("handHighest", { value: highest }),
    hand.oneHigh && t("handOneHigh"),
    hand.allEven && t("handEven"),
    hand.allOdd && t("handOdd"),
    t("handScores", { none, one, two }),
  ].filter((text) => text !== false);
}
