/** Prints the size of a bare page's bundle on connect-web. */
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const page = `
  import { connect, tile } from "rummikub-client";
  const service = connect();
  service.games.createGame({}).then(async ({ game }) => {
    for await (const update of service.watch(game.gameId)) document.body.append(update.case, tile("R7"));
  });
`;
const { outputFiles } = await build({
  stdin: { contents: page, resolveDir: import.meta.dirname },
  bundle: true,
  minify: true,
  format: "esm",
  platform: "browser",
  write: false,
});
const [bundle] = outputFiles;
console.log(`${bundle.contents.length} bytes, ${gzipSync(bundle.contents).length} gzipped`);
