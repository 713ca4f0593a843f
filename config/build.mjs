// Builds the package, if anything has changed since the last build: npm run build
//
// The tests begin with this, too, and a build takes ten seconds of both cores. `npx tsup` always builds.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
/** It belongs to what is installed: a new installation builds. */
const STAMP = join(ROOT, 'node_modules/.cache/watchmux/build.json');
/** What a build depends on. */
const SOURCES = ['src', 'config/entry-points.json', 'tsup.config.ts', 'tsconfig.json', 'package.json', 'package-lock.json'];

function filesIn(path) {
  const files = (folder) => readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true });
  if (!existsSync(join(ROOT, path))) return [];
  if (path.includes('.')) return [path];
  return files(path)
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(ROOT.length))
    .sort();
}

/** One hash of the names and bytes of these files. */
function hashOf(paths) {
  const hash = createHash('sha256').update(process.version);
  for (const file of paths.flatMap(filesIn))
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(ROOT, file)))
      .update('\0');
  return hash.digest('hex');
}

const sources = hashOf(SOURCES);
const before = existsSync(STAMP) ? JSON.parse(readFileSync(STAMP, 'utf8')) : {};
if (before.sources === sources && before.built === hashOf(['dist'])) {
  console.log('dist is up to date');
  process.exit(0);
}

console.log('building');

rmSync(STAMP, { force: true });
const { status, error } = spawnSync(process.execPath, ['node_modules/tsup/dist/cli-default.js', '--silent'], {
  cwd: ROOT,
  stdio: 'inherit',
});
if (error) throw error;
if (status !== 0) process.exit(status ?? 1);
// What was changed during the build may be in it, or not.
if (hashOf(SOURCES) !== sources) process.exit(0);
mkdirSync(dirname(STAMP), { recursive: true });
writeFileSync(STAMP, JSON.stringify({ sources, built: hashOf(['dist']) }));
