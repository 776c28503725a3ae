/**
 * Checks the deals of records, one GameRecord in Base64 a line of the standard input, and writes for each a line: how many
 * deals it has, and what is wrong, empty for nothing. `python -m load.deal_agreement` compares this with the engine.
 */
import { createInterface } from "node:readline";
import { fromBinary } from "@bufbuild/protobuf";
import { GameRecordSchema } from "rummikub-client";
import { checkDeals } from "rummikub-client/fair-deal";

for await (const line of createInterface({ input: process.stdin })) {
  const { isFair, problem, deals } = checkDeals(fromBinary(GameRecordSchema, Buffer.from(line, "base64")));
  const wrong = problem || deals.find((deal) => deal.problem)?.problem || (isFair ? "" : "not fair");
  process.stdout.write(`${deals.length} ${wrong}\n`);
}
