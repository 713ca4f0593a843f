// The checks before a release, in a repository of their own.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { FILES, readText } from './tracked.ts';

const script = fileURLToPath(new URL('../config/release.mjs', import.meta.url));
const cwd = mkdtempSync(join(tmpdir(), 'watchmux-release-'));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

function run(command: string, ...args: string[]): { readonly code: number | null; readonly err: string } {
  const { status, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' });
  return { code: status, err: stderr };
}
const release = (...args: string[]): ReturnType<typeof run> => run(process.execPath, script, ...args);
const git = (...args: string[]): number | null => run('git', '-c', 'user.name=n', '-c', 'user.email=e@example.com', ...args).code;

/** As it is before a release: without an address. */
const { homepage: _home, bugs: _bugs, repository: _repository, ...unpublished } = manifest as typeof manifest & Published;
interface Published {
  readonly homepage?: unknown;
  readonly bugs?: unknown;
  readonly repository?: unknown;
}

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const CLONE = /^git clone (\S+) watchmux\b/gm;

test('the repository is named by one command, and a release is refused until all is in order', () => {
  writeFileSync(join(cwd, 'package.json'), JSON.stringify(unpublished));
  writeFileSync(join(cwd, 'README.md'), readme.replace(CLONE, 'git clone ADDRESS watchmux'));
  writeFileSync(join(cwd, 'CHANGELOG.md'), `## [${manifest.version}] - unreleased\n`);
  expect(git('init', '-q')).toBe(0);
  const refused = release('check');
  expect(refused.code).toBe(1);
  expect(refused.err.trim().split('\n')).toEqual([
    'package.json: there is no repository; run node config/release.mjs repository <its address>',
    `CHANGELOG.md: no section [${manifest.version}] with a date`,
    'git: there are changes that are not committed',
    `git: this commit is not tagged v${manifest.version}`,
  ]);

  expect(release('repository', 'https://example.com/ann/watchmux').code).toBe(0);
  const { description, keywords } = manifest;
  const written = JSON.parse(readFileSync(join(cwd, 'package.json'), 'utf8'));
  expect(written).toEqual({
    ...unpublished,
    repository: { type: 'git', url: 'git+https://example.com/ann/watchmux.git' },
    homepage: 'https://example.com/ann/watchmux#readme',
    bugs: { url: 'https://example.com/ann/watchmux/issues' },
  });
  expect(Object.keys(written).slice(0, 7)).toEqual([
    ...Object.keys({ name: '', version: '', description, keywords }),
    ...['homepage', 'bugs', 'repository'],
  ]);
  const published = readFileSync(join(cwd, 'README.md'), 'utf8');
  expect(published).toContain('\ngit clone https://example.com/ann/watchmux.git watchmux');
  expect(published).not.toContain('ADDRESS');
  writeFileSync(join(cwd, 'CHANGELOG.md'), `## [${manifest.version}] - 2026-01-31\n`);
  expect(git('add', '-A') || git('commit', '-qm', 'x') || git('tag', `v${manifest.version}`)).toBe(0);
  expect(release('check')).toEqual({ code: 0, err: '' });
});

test('what is written by hand, and is another address, is refused', () => {
  writeFileSync(join(cwd, 'README.md'), readme.replace(CLONE, 'git clone https://example.com/bob/watchmux.git watchmux'));
  expect(release('check').err).toContain('README.md: it clones something else\n');
});

test('before a release, no document has an address: it would lead nowhere', () => {
  const { repository } = manifest as { readonly repository?: { readonly url: string } };
  const address = repository?.url.replace(/^git\+/, '');
  expect(Array.from(readme.matchAll(CLONE), ([, cloned]) => cloned)).toEqual([address ?? 'ADDRESS']);
  expect(readme).toContain(`/watchmux-${manifest.version}.tgz`);
  const documents = FILES.filter((path) => path === 'package.json' || /^(?:docs\/|examples\/)?[^/]+\.md$/.test(path));
  expect(documents.length).toBeGreaterThan(40);
  const named = documents.flatMap((path) =>
    Array.from(readText(path).matchAll(/https?:\/\/[^\s)"'`/]+\/[^\s)"'`/]+\/watchmux\b/g), ([url]) => `${path}: ${url}`),
  );
  const own = address?.replace(/\.git$/, '');
  expect(named.filter((each) => !each.endsWith(`: ${own}`) && !each.endsWith('/you/watchmux'))).toEqual([]);
});

test('an address that is none is refused', () => {
  for (const address of ['ann/watchmux', 'https://example.com', 'https://example.com/ann'])
    expect(release('repository', address)).toMatchObject({ code: 1, err: expect.stringContaining('expected an address') });
  expect(release().code).toBe(2);
});
