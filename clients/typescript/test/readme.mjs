/** Runs the programs of README.md against a server. Usage: readme.mjs <target> <preset> */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

const [, , target = "127.0.0.1:50051", preset = "PRESET_SABRA"] = process.argv;
const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const programs = [...readme.matchAll(/^```js\n(.*?)^```/gms)].map(([, program]) =>
  program.replaceAll("127.0.0.1:50051", target).replace("Preset.SABRA", preset.replace("PRESET_", "Preset.")),
);
for (const program of programs) {
  const options = { cwd: import.meta.dirname, input: program, stdio: ["pipe", "inherit", "inherit"], timeout: 300_000 };
  const { status } = spawnSync(process.execPath, ["--input-type=module"], options);
  if (status !== 0) process.exit(1);
}
console.log(`${programs.length} programs`);
