/**
 * Runs the tests in Chromium, two files at a time. In CI a test that fails is run once more alone, as those in Python are:
 * tiles are dealt at random, and the machine is busy.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { run } from "node:test";
import { tap } from "node:test/reporters";

const FOLDER = join(import.meta.dirname, "e2e");

/** Runs some tests of files, and returns the names of those that failed by file. */
async function failedOf(files, concurrency, testNamePatterns) {
  const failed = new Map();
  const tests = run({ files, concurrency, ...(testNamePatterns && { testNamePatterns }) });
  tests.on("test:fail", ({ name, file }) => failed.set(file, [...(failed.get(file) ?? []), name]));
  for await (const text of tests.compose(tap)) process.stdout.write(text);
  return failed;
}

const files = readdirSync(FOLDER).filter((name) => name.endsWith(".test.mjs"));
const failed = await failedOf(files.map((name) => join(FOLDER, name)), 2);
const again = process.env.CI ? [...failed] : [];
if (!process.env.CI && failed.size > 0) process.exitCode = 1;
for (const [file, names] of again) {
  const escaped = names.map((name) => new RegExp(`^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`));
  const isBroken = (await failedOf([file], 1, escaped)).size > 0;
  if (isBroken) process.exitCode = 1;
  else console.log(`FLAKY: ${names.join("; ")}`);
}
