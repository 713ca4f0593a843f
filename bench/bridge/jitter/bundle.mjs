// Bundles the programs of this folder from the working tree, so that changes to the sources do not affect a run.
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'tsup';

const PROGRAMS = ['run', 'server', 'load', 'replica', 'writers', 'audience'];

/** Bundles into a folder of this process. Returns its path, and `remove`, which deletes it. */
export async function bundle() {
  const path = (name) => fileURLToPath(new URL(name, import.meta.url));
  const outDir = path(`.build/${process.pid}-${Math.random().toString(36).slice(2)}`);
  await build({
    config: false,
    entry: Object.fromEntries(PROGRAMS.map((name) => [name, path(`${name}.ts`)])),
    format: 'esm',
    platform: 'node',
    target: 'es2022',
    splitting: true,
    external: ['ws', '@nats-io/jetstream', '@nats-io/transport-node'],
    outDir,
    silent: true,
  });
  return { outDir, remove: () => rmSync(outDir, { recursive: true, force: true }) };
}
