/** Builds the package into dist: modules without dependencies, and their types. Fails if index.js is too large. */
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const LIMIT = 20 * 1024;
const FOLDER = import.meta.dirname;

rmSync(join(FOLDER, "dist"), { recursive: true, force: true });
await build({
  absWorkingDir: FOLDER,
  entryPoints: ["src/index.ts", "src/input.ts", "src/model.ts"],
  outdir: "dist",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  tsconfigRaw: {},
  logLevel: "warning",
});
execFileSync(process.execPath, [createRequire(import.meta.url).resolve("typescript/bin/tsc"), "-p", FOLDER], { stdio: "inherit" });
for (const name of ["index.js", "input.js", "model.js"]) {
  const size = gzipSync(readFileSync(join(FOLDER, "dist", name))).length;
  console.log(`board/dist/${name}: ${(size / 1024).toFixed(1)} KB gzipped`);
  if (size > LIMIT) throw new Error(`${name} has ${size} bytes gzipped; at most ${LIMIT} are allowed`);
}
