// What `watchmux new operator website-operator` writes, ready to be built.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { CLI } from './cli.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The folder of a new project, with its dependencies; `remove` removes it. */
export function newProject(): { readonly project: string; readonly remove: () => void } {
  const parent = mkdtempSync(join(tmpdir(), 'watchmux-new-'));
  const created = spawnSync(process.execPath, [CLI, 'new', 'operator', 'website-operator'], { cwd: parent, encoding: 'utf8' });
  expect([created.status, created.stderr]).toEqual([0, '']);
  const project = join(parent, 'website-operator');
  install(project);
  return { project, remove: () => rmSync(parent, { recursive: true, force: true }) };
}

/** As `npm install` does it, but from what is installed here. */
function install(project: string): void {
  const packages = { watchmux: '.', typescript: 'node_modules/typescript-7', yaml: 'node_modules/yaml' };
  const modules = join(project, 'node_modules');
  mkdirSync(join(modules, '.bin'), { recursive: true });
  mkdirSync(join(modules, '@types'));
  for (const [name, path] of Object.entries(packages)) symlinkSync(join(root, path), join(modules, name));
  symlinkSync(join(root, 'node_modules/@types/node'), join(modules, '@types/node'));
  symlinkSync('../typescript/bin/tsc', join(modules, '.bin/tsc'));
}
