// Kubeconfig files without a kubectl to compare with, and the rules of NO_PROXY. test/peers/kubeconfig.test.ts has one.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { findContext, readDefault } from '../../src/kubernetes/kube-config.ts';
import { proxyOf } from '../../src/kubernetes/node-fetch.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'watchmux-files-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

const simple = (name: string, server: string): string => `
clusters: [{ name: ${name}, cluster: { server: '${server}' } }]
users: [{ name: ${name}, user: { token: of-${server.slice(8)} } }]
contexts: [{ name: ${name}, context: { cluster: ${name}, user: ${name} } }]
current-context: ${name}
`;
function given(files: Readonly<Record<string, string>>, paths: readonly string[] = Object.keys(files)): void {
  for (const [path, text] of Object.entries(files)) writeFileSync(join(folder, path), text);
  vi.stubEnv('KUBECONFIG', paths.map((path) => path && join(folder, path)).join(delimiter));
}

describe('several files', () => {
  it('the first one to name something wins', async () => {
    given({ a: simple('x', 'https://a'), b: simple('x', 'https://b'), c: simple('z', 'https://c') });
    expect(await findContext({})).toMatchObject({ context: 'x', cluster: { server: 'https://a' }, user: { token: 'of-a' } });
    expect(await findContext({ context: 'z' })).toMatchObject({ cluster: { server: 'https://c' } });
    expect([...(await readDefault()).contexts.keys()]).toEqual(['x', 'z']);
  });

  it('missing, empty and repeated ones do not matter; a file may have only a context', async () => {
    const only = 'contexts: [{ name: mine, context: { cluster: b, user: a } }]\ncurrent-context: mine\n';
    given({ none: '', only, a: simple('a', 'https://a'), b: simple('b', 'https://b') }, [
      '',
      'nowhere',
      'none',
      'only',
      'a',
      'a',
      'b',
    ]);
    expect(await findContext({})).toMatchObject({ cluster: { server: 'https://b' }, user: { token: 'of-a' } });
  });

  it.each([
    ['a broken file', 'clusters: [', 'cannot read'],
    ['another kind', 'kind: Pod', 'expected kind Config of apiVersion v1'],
    ['a text for a list', 'clusters: x', 'clusters: expected a list, got a value of type string'],
    ['a list for an object', 'users: [{ name: a, user: [] }]', 'users[0].user: expected an object, got a list'],
    [
      'a number for groups',
      'users: [{ name: a, user: { as-groups: [1] } }]',
      'users[0].user.as-groups: expected a list of strings',
    ],
    ['one name twice', 'contexts: [{ name: a }, { name: a }]', 'contexts[1]: there is another context "a"'],
    [
      'a bomb',
      `a: &a [x, x]\n${'bcdefghijk'.replace(/./g, (one, at) => `${one}: &${one} [*${'abcdefghij'[at]}, *${'abcdefghij'[at]}]\n`)}`,
      'alias',
    ],
  ])('%s is an error beside a good one, and named', async (_what, text, message) => {
    given({ good: simple('a', 'https://a'), bad: text });
    await expect(findContext({})).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) });
    await expect(findContext({})).rejects.toThrow(join(folder, 'bad'));
  });

  it('a context that is not there, or lacks something', async () => {
    given({ a: simple('x', 'https://a').replace(/current-context.*/, '') });
    await expect(findContext({})).rejects.toThrow('kubeconfig: current-context: expected one of x, got ""');
    await expect(findContext({ context: 'y' })).rejects.toThrow('context: expected one of x, got "y"');
    given({ a: simple('x', 'https://a').replace('user: x', 'user: z') });
    await expect(findContext({})).rejects.toThrow('the user of context "x": expected one of x, got "z"');
    given({ a: simple('x', 'https://a').replace('cluster: x', 'cluster: z') });
    await expect(findContext({})).rejects.toThrow('the cluster of context "x": expected one of x, got "z"');
  });
});

describe('the proxy of the environment', () => {
  const P = 'http://proxy:3128';
  it.each([
    ['https://a.example', {}, false],
    ['https://a.example', { HTTPS_PROXY: P }, true],
    ['https://a.example', { https_proxy: 'proxy:3128' }, true],
    ['https://a.example', { HTTP_PROXY: P, ALL_PROXY: P }, false],
    ['http://a.example', { HTTPS_PROXY: P }, false],
    ['https://localhost:6443', { HTTPS_PROXY: P }, false],
    ['https://127.0.0.9:6443', { HTTPS_PROXY: P }, false],
    ['https://[::1]:6443', { HTTPS_PROXY: P }, false],
    ['https://a.example', { HTTPS_PROXY: P, NO_PROXY: '*' }, false],
    ['https://a.example', { HTTPS_PROXY: P, no_proxy: 'x, A.Example' }, false],
    ['https://a.example', { HTTPS_PROXY: P, NO_PROXY: 'example' }, false],
    ['https://a.example', { HTTPS_PROXY: P, NO_PROXY: '.example' }, false],
    ['https://a.example', { HTTPS_PROXY: P, NO_PROXY: '*.example' }, false],
    ['https://example', { HTTPS_PROXY: P, NO_PROXY: '.example' }, true],
    ['https://anexample', { HTTPS_PROXY: P, NO_PROXY: 'example' }, true],
    ['https://a.example', { HTTPS_PROXY: P, NO_PROXY: 'a.example:443' }, false],
    ['https://a.example:6443', { HTTPS_PROXY: P, NO_PROXY: 'a.example:443,:6443,,' }, true],
    ['https://10.1.2.3', { HTTPS_PROXY: P, NO_PROXY: '10.0.0.0/8' }, false],
    ['https://11.1.2.3', { HTTPS_PROXY: P, NO_PROXY: '10.0.0.0/8,11.1.2.3/99,x/8' }, true],
    ['https://10.1.2.3:6443', { HTTPS_PROXY: P, NO_PROXY: '10.1.2.3:6443' }, false],
    ['https://10.1.2.3', { HTTPS_PROXY: P, NO_PROXY: '0.1.2.3' }, true],
    ['https://[fd00::1]:6443', { HTTPS_PROXY: P, NO_PROXY: 'fd00::/8' }, false],
    ['https://[fd00::1]:6443', { HTTPS_PROXY: P, NO_PROXY: '[fd00::1]:6443' }, false],
    ['https://[fd00::1]', { HTTPS_PROXY: P, NO_PROXY: 'fd00::1' }, false],
  ])('%s with %j', (server, env, used) => {
    expect(proxyOf(new URL(server), undefined, env)?.href).toBe(used ? `${P}/` : undefined);
  });

  it('a proxy-url counts before it, and has a scheme that is known', () => {
    const env = { HTTPS_PROXY: P, NO_PROXY: '*' };
    expect(proxyOf(new URL('https://a'), 'socks5://s:1080', env)?.href).toBe('socks5://s:1080');
    expect(() => proxyOf(new URL('https://a'), undefined, { HTTPS_PROXY: 'ftp://x' })).toThrow('HTTPS_PROXY: expected an http');
  });
});
