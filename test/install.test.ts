// What a developer sees first: `npm ci` has nothing to warn of on the oldest supported Node.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };

const { satisfies } = createRequire(import.meta.url)('semver') as { satisfies(version: string, range: string): boolean };

interface Locked {
  readonly version?: string;
  readonly optional?: boolean;
  readonly hasInstallScript?: boolean;
  readonly engines?: { readonly node?: string };
}

const lock = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8')) as {
  readonly packages: Readonly<Record<string, Locked>>;
};
// The first entry is this package itself.
const installed = Object.entries(lock.packages).slice(1);

test('every package that npm installs supports the latest Node 20', () => {
  expect(manifest.engines.node).toBe('>=20');
  expect(installed.length).toBeGreaterThan(100);
  // npm leaves out an optional package that does not support this Node, and says nothing.
  const refusing = installed.filter(
    ([, { engines, optional }]) => optional !== true && engines?.node !== undefined && !satisfies('20.20.0', engines.node),
  );
  expect(refusing.map(([path, { version, engines }]) => `${path}@${version} needs Node ${engines?.node}`)).toEqual([]);
});

test('package.json says of every package with an install script whether it may run', () => {
  const scripts = installed.filter(([, { hasInstallScript, optional }]) => hasInstallScript === true && optional !== true);
  const names = new Set(scripts.map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)));
  expect([...names].sort()).toEqual(Object.keys(manifest.allowScripts).sort());
});
