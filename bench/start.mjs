// node bench/start.mjs run|check|charts|cuts|plan [...]: bundles a program of this folder from the working tree, and runs it.
//
// Each run has its own bundle, so that changes to the sources do not affect it. Bundles are made like the package: one file or a
// few, not minified, and without other packages.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'tsup';
import { builtBinary } from '../test/peers/binary.mjs';

const bench = new URL('./', import.meta.url);
const path = (name) => fileURLToPath(new URL(name, bench));
const own = JSON.parse(readFileSync(path('package.json'), 'utf8'));
const dependencies = { ...own.dependencies, ...own.devDependencies };

const name = process.argv[2];
if (!['run', 'check', 'charts', 'cuts', 'plan'].includes(name)) {
  console.error('usage: node bench/start.mjs run|check|charts|cuts|plan [options]');
  process.exit(2);
}

// What a plan is made of is in this repository.
if (name !== 'plan' && !Object.keys(dependencies).every((each) => existsSync(path(`node_modules/${each}`)))) {
  console.error("bench/node_modules is missing or incomplete: installing the contenders' packages (npm ci in bench/)");
  const { status } = spawnSync('npm', ['ci'], { cwd: path('.'), stdio: ['ignore', 2, 2] });
  if (status !== 0) process.exit(status ?? 1);
}

function runs(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

// Removes bundles of runs that were killed.
if (existsSync(path('.build'))) {
  for (const each of readdirSync(path('.build'))) {
    if (!runs(Number(each))) rmSync(path(`.build/${each}`), { recursive: true, force: true });
  }
}

const outDir = path(`.build/${process.pid}`);
process.on('exit', () => rmSync(outDir, { recursive: true, force: true }));
await build({
  config: false,
  entry: {
    [name]: path(`${name}.ts`),
    worker: path('worker.ts'),
    readers: path('bridge/readers.ts'),
    server: path('stack/server.ts'),
    client: path('stack/client.ts'),
    load: path('server/load.ts'),
    'peers-load': path('peers/load.ts'),
    'storm-server': path('storm/server.ts'),
    'storm-clients': path('storm/clients.ts'),
    replica: path('replicas/replica.ts'),
    'replicas-load': path('replicas/load.ts'),
  },
  format: 'esm',
  platform: 'node',
  target: 'es2022',
  splitting: true,
  external: Object.keys(dependencies).map((each) => new RegExp(`^${each}(/|$)`)),
  outDir,
  silent: true,
});
process.env.WATCHMUX_KUBE_APISERVER ??= builtBinary() ?? ''; // it is looked for beside its sources
process.argv.splice(1, 2, `${outDir}/${name}.js`);
await import(`${outDir}/${name}.js`);
