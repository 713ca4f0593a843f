// The programs of this folder, bundled from the working tree: nothing changes under a run while somebody works on the sources.
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'tsup';

/** Bundles them into a folder of this process's own, and answers where it is. `remove` takes it away again. */
export async function bundle() {
  const path = (name) => fileURLToPath(new URL(name, import.meta.url));
  const outDir = path(`.build/${process.pid}-${Math.random().toString(36).slice(2)}`);
  await build({
    config: false,
    entry: { run: path('run.ts'), server: path('server.ts'), load: path('load.ts') },
    format: 'esm',
    platform: 'node',
    target: 'es2022',
    splitting: true,
    external: ['ws'],
    outDir,
    silent: true,
  });
  return { outDir, remove: () => rmSync(outDir, { recursive: true, force: true }) };
}
