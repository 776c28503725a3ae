/**
 * Builds the page into dist: index.html, app.js with chunk.js, app.css, and files that are loaded when they are needed: parts
 * of the page, each language but English, icons, and the service worker. With --tests, builds the unit tests into build/test.
 * The TypeScript client is compiled from its source beside this folder, with the packages that are installed here.
 */
import { cp, readdir, readFile, rm } from "node:fs/promises";
import { gzipSync } from "node:zlib";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { build } from "esbuild";

const LIMIT = 120 * 1024;

/** Returns a descriptor as bytes without what only generators need: URLs and the behavior of fields. */
function pruned(base64) {
  const file = fromBinary(FileDescriptorProtoSchema, Buffer.from(base64, "base64"));
  const prune = (types) =>
    types.forEach((type) => {
      for (const field of type.field) field.options = undefined;
      prune(type.nestedType);
    });
  prune(file.messageType);
  for (const method of file.service.flatMap((service) => service.method)) method.options = undefined;
  file.options = undefined;
  return toBinary(FileDescriptorProtoSchema, file);
}

/**
 * Descriptors of the contract as bytes instead of Base64, in which gzip finds no repeated names, and pruned: some KB less.
 */
const descriptors = {
  name: "descriptors",
  setup({ onLoad }) {
    onLoad({ filter: /_pb\.ts$/ }, async ({ path }) => {
      const source = await readFile(path, "utf8");
      const bytes = (base64) => JSON.stringify(Buffer.from(pruned(base64)).toString("latin1"));
      const contents = source.replace(/(fileDesc\(\s*)"([^"]+)"/, (_, call, base64) => `${call}btoa(${bytes(base64)})`)
        .replaceAll(/^import .*google\/api\/.*\n|\bfile_google_api_(annotations|field_behavior)(, )?/gm, "");
      return { contents, loader: "ts" };
    });
  },
};

/** The page reads binary messages only: what parses JSON is left out, 2 KB. */
const noJson = {
  name: "no JSON",
  setup({ onLoad }) {
    const parsers = ["fromJson", "fromJsonString", "mergeFromJson", "mergeFromJsonString", "enumFromJson", "isEnumJson"];
    const contents = parsers.map((name) => `export const ${name} = undefined;`).join("\n");
    onLoad({ filter: /protobuf\/dist\/esm\/from-json\.js$/ }, () => ({ contents }));
  },
};

const client = {
  name: "client",
  setup({ onResolve, resolve }) {
    const resolveDir = import.meta.dirname;
    onResolve({ filter: /^rummikub-client$/ }, () =>
      resolve("../clients/typescript/src/web.ts", { resolveDir, kind: "import-statement" }),
    );
    onResolve({ filter: /^rummikub-client\/fair-deal$/ }, () =>
      resolve("../clients/typescript/src/fair-deal.ts", { resolveDir, kind: "import-statement" }),
    );
    onResolve({ filter: /^@(bufbuild|connectrpc|noble)\// }, ({ path, kind, pluginData }) =>
      pluginData === client ? undefined : resolve(path, { resolveDir, kind, pluginData: client }),
    );
  },
};

const common = {
  absWorkingDir: import.meta.dirname,
  alias: { "rummikub-board": "./board/src" },
  bundle: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  plugins: [client, descriptors, noJson],
  // Without the paths of tsconfig.json, which are for the type check: esbuild would ignore the exports of packages.
  tsconfigRaw: {},
  logLevel: "warning",
};

if (process.argv.includes("--tests")) {
  await rm("build/test", { recursive: true, force: true });
  const tests = (await readdir("test/unit")).filter((name) => name.endsWith(".test.ts"));
  await build({
    ...common,
    entryPoints: tests.map((name) => `test/unit/${name}`),
    outdir: "build/test",
    platform: "node",
    sourcemap: "inline",
  });
} else {
  await rm("dist", { recursive: true, force: true });
  await build({
    ...common,
    entryPoints: { app: "src/main.tsx" },
    outdir: "dist",
    splitting: true,
    chunkNames: "[name]",
    minify: !process.argv.includes("--readable"),
    charset: "utf8",
  });
  await cp("index.html", "dist/index.html");
  await cp("public", "dist", { recursive: true });
  // The service worker keeps what a visit without a connection shows.
  const kept = (await readdir("dist")).filter((name) => /\.(js|css|svg)$/.test(name));
  await build({
    ...common,
    entryPoints: { sw: "worker/sw.ts" },
    outdir: "dist",
    minify: true,
    define: { PAGE_FILES: JSON.stringify(["./", ...kept]) },
  });
  const size = async (name) => gzipSync(await readFile(`dist/${name}`)).length;
  const page = ["index.html", "app.js", "chunk.js", "app.css"];
  const others = (await readdir("dist")).filter((name) => name.endsWith(".js") && !page.includes(name));
  const sizes = await Promise.all(page.map(size));
  const largest = Math.max(...(await Promise.all(others.map(size))));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  console.log(`dist: ${(total / 1024).toFixed(1)} KB gzipped; another file at most ${(largest / 1024).toFixed(1)} KB`);
  if (total > LIMIT) throw new Error(`the page has ${total} bytes gzipped; at most ${LIMIT} are allowed`);
}
