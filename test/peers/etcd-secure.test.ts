// `watchmux serve` and a real etcd that asks for everything: TLS, a certificate of its clients, a user and a password. What it is given
// may change while it runs.
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { EtcdStorage } from '../../src/storage/etcd/index.ts';
import { component, isMissing } from '../components.ts';
import { killAll, run, type Serving, serve, until } from '../e2e/cli.ts';
import { certify } from '../unit/certificates.ts';
import { type EtcdServer, startEtcd } from './etcd-server.ts';

const missing = isMissing(component('kube-apiserver'));
const folder = mkdtempSync(join(tmpdir(), 'watchmux-etcd-secure-'));
const authority = certify();
const maps = '/api/v1/namespaces/default/configmaps';

/** Writes a file as careful programs do. */
function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
  return path;
}

const client = authority.client('me');
const files = {
  ca: file('ca.crt', authority.ca),
  cert: file('client.crt', client.cert),
  key: file('client.key', client.key),
  password: file('password', 'secret\n'),
};
const TLS = ['--etcd-ca', files.ca, '--etcd-cert', files.cert, '--etcd-key', files.key];
let etcd: EtcdServer;
let admin: EtcdStorage;

beforeAll(async () => {
  if (missing) return;
  const { cert, key } = authority.server;
  const tls = { cert: file('etcd.crt', cert), key: file('etcd.key', key), clientCa: files.ca };
  etcd = await startEtcd({ tls });
  await etcdCommand('/v3/auth/user/add', { name: 'root', password: 'secret' });
  await etcdCommand('/v3/auth/user/grant', { user: 'root', role: 'root' });
  await etcdCommand('/v3/auth/enable', {});
  admin = new EtcdStorage({
    endpoints: [etcd.url],
    user: 'root',
    password: 'secret',
    tls: { ca: authority.ca, cert: client.cert, key: client.key },
  });
}, 60_000);

afterAll(async () => {
  killAll();
  await admin?.close();
  await etcd?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** For etcd's JSON gateway, which takes no certificate with a name once there are users. */
const nobody = authority.client('');

/** Asks the gateway, which `fetch` cannot, with a certificate. */
async function etcdCommand(path: string, body: object, headers: Record<string, string> = {}): Promise<Record<string, string>> {
  const { request } = await import('node:https');
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', ca: authority.ca, cert: nobody.cert, key: nobody.key, headers, agent: false };
    const asked = request(`${etcd.url}${path}`, options, async (response) => {
      let text = '';
      for await (const chunk of response.setEncoding('utf8')) text += chunk;
      if (response.statusCode === 200) resolve(JSON.parse(text) as Record<string, string>);
      else reject(new Error(`etcd ${path}: ${response.statusCode} ${text}`));
    });
    asked.on('error', reject).end(JSON.stringify(body));
  });
}

const create = async ({ url }: Serving, name: string): Promise<number> => {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(`${url}${maps}`, { method: 'POST', headers, body: JSON.stringify({ metadata: { name } }) });
  return response.status;
};

describe.skipIf(missing)('an etcd with TLS and users', () => {
  it('takes what the files say; a server without them says what is wrong, and no secret', async () => {
    const server = await serve('--etcd', etcd.url, ...TLS, '--etcd-user', 'root', '--etcd-password-file', files.password);
    expect(await create(server, 'a')).toBe(201);
    expect((await admin.list()).items.map(({ metadata }) => metadata?.name)).toContain('a');
    server.child.kill('SIGTERM');
    expect(await server.exit).toBe(0);
    const wrong = file('wrong', 'hunter2');
    const refusals: readonly (readonly [readonly string[], RegExp])[] = [
      [['--etcd', etcd.url, ...TLS, '--etcd-user', 'root', '--etcd-password-file', wrong], /invalid user ID or password/],
      // Its certificate names a user, and there is none of that name.
      [['--etcd', etcd.url, ...TLS], /^watchmux serve: --etcd: .*permission denied/],
      [['--etcd', etcd.url, '--etcd-ca', files.ca], /^watchmux serve: --etcd: .*certificate/m],
      [['--etcd', etcd.url, ...TLS.slice(2)], /^watchmux serve: --etcd: .*certificate/m],
    ];
    const refused = refusals.map(([args, message]) => ({ message, ...run('serve', '--port', '0', ...args) }));
    for (const { exit, err, message } of refused) {
      expect(await exit).toBe(2);
      expect(err()).toMatch(message);
      expect(err()).not.toContain('hunter2');
    }
  });

  it('may change the password and the certificates: the server goes on with the new ones, without a restart', async () => {
    const server = await serve('--etcd', etcd.url, ...TLS, '--etcd-user', 'root', '--etcd-password-file', files.password);
    expect(await create(server, 'before')).toBe(201);
    const watch = await fetch(`${server.url}${maps}?watch=1&resourceVersion=0`);
    // Its token no longer counts, and the old password gets no other.
    const { token = '' } = await etcdCommand('/v3/auth/authenticate', { name: 'root', password: 'secret' });
    await etcdCommand('/v3/auth/user/changepw', { name: 'root', password: 'changed' }, { authorization: token });
    file('password', 'changed\n');
    const next = authority.client('me too');
    file('client.crt', next.cert);
    file('client.key', next.key);
    server.child.kill('SIGHUP');
    await until(() => server.err().split(' reloaded ').length === 3);
    await etcd.kill();
    await etcd.start();
    await until(async () => (await create(server, 'after')) === 201);
    const [reader, utf8] = [(watch.body as ReadableStream<Uint8Array>).getReader(), new TextDecoder()];
    let seen = '';
    while (!seen.includes('"after"')) seen += utf8.decode((await reader.read()).value, { stream: true });
    expect(seen).not.toContain('"ERROR"');
    await reader.cancel();
    server.child.kill('SIGTERM');
    expect(await server.exit).toBe(0);
    file('password', 'secret\n');
  });
});
