import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip } from "node:zlib";
import type { Plugin } from "vite";

const WORTH_IT = /\.(js|css|html|svg|json)$/;
/** A file that fits one packet of the network gains nothing. */
const SMALL_BYTES = 1200;

/** Writes each text of the build compressed beside itself: the control plane serves what the browser understands. */
export function compressedAssets(): Plugin {
  let folder = "";
  return {
    name: "compressed-assets",
    apply: "build",
    configResolved: ({ root, build }) => {
      folder = join(root, build.outDir);
    },
    closeBundle: async () => {
      for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || !WORTH_IT.test(entry.name)) continue;
        const file = join(entry.parentPath, entry.name);
        const content = await readFile(file);
        if (content.length <= SMALL_BYTES) continue;
        await writeFile(`${file}.br`, await promisify(brotliCompress)(content));
        await writeFile(`${file}.gz`, await promisify(gzip)(content, { level: 9 }));
      }
    },
  };
}
