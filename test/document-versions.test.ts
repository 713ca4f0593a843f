// The versions that documents name are those that are tested, and the package's own is the same everywhere.
import { describe, expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { CLIENT_GO, KUBE_APISERVER, KUBE_RS, release } from './peers/binary.mjs';
import { DOCUMENTS, FILES, readText as read } from './tracked.ts';

/** The part of a version that says as much as another one: 1.37 of 1.37.2. */
const alike = (said: string, version: string): boolean => version === said || version.startsWith(`${said}.`);

describe('the versions in the documents', () => {
  const ci = `${read('.ci/steps.sh')}${read('.ci/full')}`;
  const inGo = (file: string, line: RegExp): string => line.exec(read(file))?.[1] ?? '';
  const kubernetes = release(KUBE_APISERVER);
  const etcd = inGo('test/peers/kube-apiserver/go.mod', /go\.etcd\.io\/etcd\/server\/v3 v(\S+)/);
  const debian = /kubectl, which is ([\d.]+),/.exec(read('test/peers/debian.mjs'))?.[1] ?? '';
  const oldest = /(\d+\.\d+\.\d+), (\d+\.\d+\.\d+) or newer is needed/.exec(read('src/storage/etcd/wire/channel.ts')) ?? [];
  const compilers = /COMPILERS = \[(.*)\]/.exec(read('test/pack/check-types.mjs'))?.[1]?.match(/[\d.]+/g) ?? [];
  const node = [manifest.engines.node.replace(/\D/g, ''), ...(/other_nodes=\((.*)\)/.exec(ci)?.[1]?.split(' ') ?? [])];
  const nodes = [...node, /newest_node=(\d+)/.exec(ci)?.[1] ?? ''];
  const bench: { dependencies: Readonly<Record<string, string>> } = JSON.parse(read('bench/package.json'));

  /** What documents may say, by the name before it. A version is from one source, or from two where two are used. */
  const VERSIONS: readonly (readonly [string, readonly string[]])[] = [
    ['kubectl', [kubernetes, debian]],
    ['(?:kube-apiserver|Kubernetes)', [kubernetes]],
    ['client-go', [release(CLIENT_GO).replace(/^1/, '0'), kubernetes]],
    ['kube-rs', [release(KUBE_RS)]],
    ['client-node', [manifest.devDependencies['@kubernetes/client-node'], bench.dependencies['@kubernetes/client-node'] ?? '']],
    ['etcd(?= v?3)', [etcd, ...oldest.slice(1)]],
    ['Go', [inGo('test/peers/kube-apiserver/go.mod', /^go (\S+)$/m)]],
    ['Rust', [/Rust ([\d.]+) or newer/.exec(read('test/peers/toolchains.mjs'))?.[1] ?? '']],
    ['Bun', [/^bun_version=(.*)$/m.exec(ci)?.[1] ?? '']],
    ['Deno', [/^deno_version=(.*)$/m.exec(ci)?.[1] ?? '']],
    ['TypeScript', compilers],
  ];

  test.each(VERSIONS)('%s', (name, versions) => {
    for (const version of versions) expect(version).toMatch(/^\d+(?:\.\d+)*$/);
    const pattern = new RegExp(
      `(?<![\\w@./-])(?:@kubernetes/)?${name}\`? v?(\\d+(?:\\.\\d+)*)(?: and (\\d+(?:\\.\\d+)+))?(?![\\w-])(?!\\.\\d)`,
      'g',
    );
    const said = DOCUMENTS.flatMap((path) =>
      Array.from(read(path).matchAll(pattern), ([text, one = '', other]) => ({
        path,
        text,
        found: other ? [one, other] : [one],
      })),
    );
    expect(said.length).toBeGreaterThan(0);
    expect(said.filter(({ found }) => !found.every((one) => versions.some((version) => alike(one, version))))).toEqual([]);
  });

  test('etcd and TypeScript: the oldest ones', () => {
    const [, old34, old35] = oldest;
    for (const path of ['README.md', 'docs/etcd.md'])
      expect(read(path)).toMatch(new RegExp(`${old34}, ${old35}(?: or| and) newer`));
    for (const path of DOCUMENTS) {
      for (const [, version] of read(path).matchAll(/(\d+\.\d+\.\d+) or newer/g))
        expect(`${path}: ${version}`).toBe(`${path}: ${old35}`);
    }
    const platforms = read('docs/platforms.md');
    expect(platforms).toMatch(new RegExp(`TypeScript ${compilers[0]} (?:and newer, up )?to ${compilers.at(-1)}\\b`));
  });

  test('Node: what CI runs, and the oldest one', () => {
    expect(nodes.map(Number)).toEqual([...nodes.map(Number)].sort((a, b) => a - b));
    const list = `Node ${nodes.slice(0, -1).join(', ')} and ${nodes.at(-1)}`;
    for (const path of ['README.md', 'docs/platforms.md', 'CONTRIBUTING.md']) expect(read(path), path).toContain(list);
    const older = DOCUMENTS.flatMap((path) =>
      Array.from(read(path).matchAll(/\bNode (\d+) or (?:newer|later)/g), ([text, version]) => ({ path, text, version })),
    );
    expect(older.length).toBeGreaterThan(1);
    expect(older.filter(({ version }) => version !== nodes[0])).toEqual([]);
    for (const path of DOCUMENTS) {
      for (const [text, version] of read(path).matchAll(/\bNode (\d+)\b(?!\.)/g))
        expect(nodes, `${path}: ${text}`).toContain(version);
    }
  });
});

describe('the version of the package', () => {
  interface Section {
    readonly name: string;
    /** Empty: the next release. */
    readonly date: string;
    readonly text: string;
  }

  const sectionsOf = (changelog: string): Section[] =>
    changelog
      .split(/^## /m)
      .slice(1)
      .filter((part) => part.startsWith('['))
      .map((part) => {
        const [heading = '', ...lines] = part.split('\n');
        const [, name = '', date = ''] = /^\[([^\]]+)\](?: - (.*))?$/.exec(heading) ?? [];
        return { name, date: date === 'unreleased' ? '' : date, text: lines.join('\n') };
      });

  /** What keeps changelog, package.json and README.md from telling one story. */
  function contradictions(changelog: string, version: string, readme: string): string[] {
    const sections = sectionsOf(changelog);
    const dated = sections.filter(({ date }) => date !== '');
    const problems = sections.flatMap(({ name, date, text }, at) => {
      const found: string[] = [];
      if (date !== '' && !/^\d{4}-\d\d-\d\d$/.test(date)) found.push(`[${name}]: ${date} is no date`);
      if (date === '' && at > 0) found.push(`[${name}] has no date, and is not the first`);
      if (date !== '' && name === 'Unreleased') found.push('what is unreleased has a date');
      if (name !== 'Unreleased' && compare(name, version) > 0) found.push(`[${name}] is newer than ${version}`);
      const older = sections[at + 1]?.name;
      if (older !== undefined && name !== 'Unreleased' && compare(name, older) <= 0)
        found.push(`[${name}] stands above [${older}]`);
      if (/^### Breaking|\bbreaks? code\b/m.test(text) && dated.every((each) => each.name === name))
        found.push(`[${name}] breaks what was never released`);
      return found;
    });
    if (!sections.some(({ name }) => name === version)) problems.push(`no section [${version}]`);
    const released = dated.length > 0;
    const open = /\b(?:not (?:been |yet )*released|unreleased|no release)\b/i.test(readme);
    if (open === released) problems.push(`README.md: there is ${released ? 'a' : 'no'} release`);
    const [, said = ''] = /\bVersion (\d+\.\d+(?:\.\d+)?)\b/.exec(readme) ?? [];
    if (!alike(said, version)) problems.push(`README.md: the version is ${version}`);
    return problems;
  }

  function compare(one: string, other: string): number {
    const [a, b] = [one, other].map((version) => version.split('.').map(Number));
    const at = a?.findIndex((part, place) => part !== b?.[place]) ?? -1;
    return at < 0 ? 0 : (a?.[at] ?? 0) - (b?.[at] ?? 0);
  }

  const READY = 'Version 0.2.0, for Node';
  const DATED = '## [0.2.0] - 2026-02-01\n\n### Breaking\n\n## [0.1.0] - 2026-01-01\n';

  test.each([
    ['## [0.1.0] - unreleased\n', '0.1.0', 'Version 0.1.0, not released yet', []],
    [DATED, '0.2.0', READY, []],
    [`## [Unreleased]\n\n${DATED}`, '0.2.0', READY, []],
    [`${DATED}## [0.0.9] - unreleased\n`, '0.2.0', READY, ['[0.0.9] has no date, and is not the first']],
    ['## [0.2.0] - 2026\n', '0.2.0', READY, ['[0.2.0]: 2026 is no date']],
    [DATED, '0.3.0', 'Version 0.3', ['no section [0.3.0]']],
    [DATED, '0.1.0', 'Version 0.1.0', ['[0.2.0] is newer than 0.1.0']],
    [
      '## [0.1.0] - unreleased\n\n### Breaking\n',
      '0.1.0',
      'Version 0.1.0, not released yet',
      ['[0.1.0] breaks what was never released'],
    ],
    ['## [0.1.0] - unreleased\n', '0.1.0', 'Version 0.1.0', ['README.md: there is no release']],
    [DATED, '0.2.0', 'Version 0.2, not yet released', ['README.md: there is a release']],
    [DATED, '0.2.0', 'Version 0.1, for Node', ['README.md: the version is 0.2.0']],
    ['## [0.1.0] - 2026-01-01\n\n## [0.2.0] - 2026-02-01\n', '0.2.0', READY, ['[0.1.0] stands above [0.2.0]']],
  ])('%j, %s, %j', (changelog, version, readme, problems) => {
    expect(contradictions(changelog, version, readme)).toEqual(problems);
  });

  test('is the same in CHANGELOG.md, package.json and README.md', () => {
    const lock: { version: string; packages: Readonly<Record<string, { version: string }>> } = JSON.parse(
      read('package-lock.json'),
    );
    expect([lock.version, lock.packages['']?.version]).toEqual([manifest.version, manifest.version]);
    expect(contradictions(read('CHANGELOG.md'), manifest.version, read('README.md').replaceAll('\n', ' '))).toEqual([]);
  });

  test('no text refers to a version of the package that has no section', () => {
    const sections = sectionsOf(read('CHANGELOG.md')).map(({ name }) => name);
    const unknown = (text: string): string[] =>
      Array.from(
        text.matchAll(/\b(?:watchmux@|watchmux |Version |as in |since |before |until |compiled with )v?(0\.\d+\.\d+)\b/g),
        ([, one = '']) => one,
      ).filter((one) => !sections.includes(one));
    expect(unknown('npm i watchmux@0.0.7, as in 0.0.8, since 0.1.0')).toEqual(['0.0.7', '0.0.8']);
    const texts = FILES.filter((path) => /\.md$|^(?:src|examples|config)\//.test(path));
    expect(texts.flatMap((path) => unknown(read(path)).map((one) => `${path}: ${one}`))).toEqual([]);
  });
});
