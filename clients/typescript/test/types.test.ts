import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const TSC = createRequire(import.meta.url).resolve("typescript/bin/tsc");
const PACKAGES = ["@bufbuild/protobuf", "@connectrpc/connect", "@connectrpc/connect-node", "@connectrpc/connect-web"];

/** Type-checks a program in a project that has this package with its dependencies, and no @types. */
function typeErrors(program: string): string {
  const folder = mkdtempSync(join(tmpdir(), "rummikub-types-"));
  try {
    for (const scope of ["@bufbuild", "@connectrpc"]) mkdirSync(join(folder, "node_modules", scope), { recursive: true });
    for (const name of PACKAGES) symlinkSync(join(ROOT, "node_modules", name), join(folder, "node_modules", name));
    symlinkSync(ROOT, join(folder, "node_modules", "rummikub-client"));
    const compilerOptions = {
      ...{ strict: true, noEmit: true, module: "nodenext", target: "es2022", types: [] },
      preserveSymlinks: true, // else the packages of this folder are found
    };
    writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["game.ts"] }));
    writeFileSync(join(folder, "game.ts"), program);
    return spawnSync(process.execPath, [TSC, "-p", folder], { encoding: "utf8" }).stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("the programs of the README are TypeScript too", () => {
  const programs = [...readFileSync(join(ROOT, "README.md"), "utf8").matchAll(/^```js\n(.*?)^```/gms)];
  assert.notEqual(programs.length, 0);
  for (const [, program = ""] of programs) assert.equal(typeErrors(program), "");
});

test("the types of the package need no others", () => {
  const entries = ["rummikub-client", "rummikub-client/node", "rummikub-client/web"];
  const imports = entries.map((entry, index) => `import { connect as c${index} } from "${entry}";`);
  const tls = 'c1("127.0.0.1:50051", { tls: { ca: new Uint8Array(), servername: "localhost" } });';
  assert.equal(typeErrors([...imports, "c0();", tls, "c2();"].join("\n")), "");
});
