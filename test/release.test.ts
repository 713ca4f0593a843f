// The checks before a release, in a repository of their own.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };

const script = fileURLToPath(new URL('../config/release.mjs', import.meta.url));
const cwd = mkdtempSync(join(tmpdir(), 'watchmux-release-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

function run(command: string, ...args: string[]): { readonly code: number | null; readonly err: string } {
  const { status, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  return { code: status, err: stderr };
}
const release = (...args: string[]): ReturnType<typeof run> => run(process.execPath, script, ...args);
const git = (...args: string[]): number | null => run('git', '-c', 'user.name=n', '-c', 'user.email=e@example.com', ...args).code;

test('the repository is named in one place, and a release is refused until all is in order', () => {
  writeFileSync(join(cwd, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(cwd, 'CHANGELOG.md'), `## [${manifest.version}] - unreleased\n`);
  expect(git('init', '-q')).toBe(0);
  const refused = release('check');
  expect(refused.code).toBe(1);
  expect(refused.err.trim().split('\n')).toEqual([
    'package.json: the repository is a placeholder; run node config/release.mjs repository <its address>',
    `CHANGELOG.md: no section [${manifest.version}] with a date`,
    'git: there are changes that are not committed',
    `git: this commit is not tagged v${manifest.version}`,
  ]);

  expect(release('repository', 'https://example.com/ann/watchmux').code).toBe(0);
  expect(JSON.parse(readFileSync(join(cwd, 'package.json'), 'utf8'))).toEqual({
    ...manifest,
    repository: { type: 'git', url: 'git+https://example.com/ann/watchmux.git' },
    homepage: 'https://example.com/ann/watchmux#readme',
    bugs: { url: 'https://example.com/ann/watchmux/issues' },
  });
  writeFileSync(join(cwd, 'CHANGELOG.md'), `## [${manifest.version}] - 2026-01-31\n`);
  expect(git('add', '-A') || git('commit', '-qm', 'x') || git('tag', `v${manifest.version}`)).toBe(0);
  expect(release('check')).toEqual({ code: 0, err: '' });
});

test('an address that is none is refused', () => {
  for (const address of ['ann/watchmux', 'https://example.com', 'https://example.com/OWNER'])
    expect(release('repository', address)).toMatchObject({ code: 1, err: expect.stringContaining('expected an address') });
  expect(release().code).toBe(2);
});
