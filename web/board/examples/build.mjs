/**
 * Builds the examples into build, each in a folder of its name. With --serve, serves them at http://127.0.0.1:8090.
 * The packages are taken from this repository, as they are in no registry yet. `npm ci && npm run packages` in web comes first.
 */
import { cpSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { context } from "esbuild";
import { compile } from "svelte/compiler";
import { readFile } from "node:fs/promises";

const FOLDER = import.meta.dirname;
const WEB = join(FOLDER, "../..");
const BUILD = join(FOLDER, "build");

const svelte = {
  name: "svelte",
  setup({ onLoad }) {
    onLoad({ filter: /\.svelte$/ }, async ({ path }) => {
      const { js } = compile(await readFile(path, "utf8"), { filename: path, css: "injected" });
      return { contents: js.code, loader: "js" };
    });
  },
};

const names = readdirSync(FOLDER, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !["build", "node_modules"].includes(entry.name))
  .map(({ name }) => name);
rmSync(BUILD, { recursive: true, force: true });
mkdirSync(BUILD);
cpSync(join(WEB, "board/dist/index.js"), join(BUILD, "rummikub-board.js"));
cpSync(join(WEB, "tiles/index.js"), join(BUILD, "rummikub-tiles.js"));
const programs = names.flatMap((name) => {
  cpSync(join(FOLDER, name, "index.html"), join(BUILD, name, "index.html"));
  const program = readdirSync(join(FOLDER, name)).find((file) => file.startsWith("main."));
  return program === undefined ? [] : [{ in: join(FOLDER, name, program), out: `${name}/main` }];
});
const links = names.map((name) => `<li><a href="${name}/">${name}</a></li>`).join("");
writeFileSync(join(BUILD, "index.html"), `<!doctype html><html lang="en"><title>Examples</title><ul>${links}</ul></html>`);

const building = await context({
  entryPoints: programs,
  outdir: BUILD,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  conditions: ["browser", "production"],
  define: { "process.env.NODE_ENV": '"production"', __VUE_OPTIONS_API__: "false", __VUE_PROD_DEVTOOLS__: "false", __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: "false" },
  alias: {
    "rummikub-board": join(WEB, "board/dist/index.js"),
    "rummikub-client": join(WEB, "../clients/typescript/src/web.ts"),
    vue: "vue/dist/vue.esm-bundler.js", // compiles templates in the browser
  },
  nodePaths: [join(WEB, "node_modules")],
  plugins: [svelte],
  tsconfigRaw: {},
  logLevel: "warning",
});
await building.rebuild();
if (process.argv.includes("--serve")) {
  const { port } = await building.serve({ servedir: BUILD, host: "127.0.0.1", port: 8090 });
  console.log(`http://127.0.0.1:${port}`);
} else await building.dispose();
