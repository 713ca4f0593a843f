// Who asks: exec plugins, tokens in files, and whom a user acts as.
import { chmodSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, dirname } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Cluster, type LoadClusterOptions, loadCluster } from '../../src/kubernetes/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { eventually } from '../eventually.ts';
import { base64, type ClusterServer, json, serveCluster } from './cluster-server.ts';

const LIST = { kind: 'PodList', apiVersion: 'v1', metadata: { resourceVersion: '7' }, items: [] };
const UNAUTHORIZED = { kind: 'Status', code: 401, reason: 'Unauthorized', message: 'Unauthorized' };

let server: ClusterServer;
const open: Cluster[] = [];

beforeEach(async () => {
  server = await serveCluster();
  server.reply = json(LIST);
});
afterEach(async () => {
  for (const cluster of open.splice(0)) cluster.close();
  vi.restoreAllMocks();
  await server.close();
});

const load = async (user: object, options: LoadClusterOptions = {}, cluster: object = {}): Promise<Cluster> => {
  const loaded = await loadCluster({ file: server.kubeconfig(user, cluster), ...options });
  open.push(loaded);
  return loaded;
};
const list = async (cluster: Cluster): Promise<unknown> => cluster.resource('pods').list();
const bearers = (): (string | undefined)[] => server.requests.map(({ headers }) => headers.authorization?.replace('Bearer ', ''));
/** Answers 401 to all tokens but these. */
const accept = (...tokens: string[]): void => {
  server.reply = (response, noted) => {
    const fine = tokens.includes(noted.headers.authorization?.replace('Bearer ', '') ?? '');
    (fine ? json(LIST) : json(UNAUTHORIZED, 401))(response, noted);
  };
};

/** A plugin in JavaScript. `at` counts its runs, and `give` writes a status. */
function plugin(script: string, more: object = {}): { readonly exec: object; runs(): number } {
  const count = server.file('count', '');
  const path = server.file(
    'plugin.cjs',
    `const fs = require('node:fs');
     fs.appendFileSync(process.argv[2], '.');
     const at = fs.statSync(process.argv[2]).size;
     const give = (status) => console.log(JSON.stringify({ kind: 'ExecCredential', status }));
     ${script}`,
  );
  return {
    exec: { apiVersion: 'client.authentication.k8s.io/v1', command: process.execPath, args: [path, count], ...more },
    runs: () => readFileSync(count, 'utf8').length,
  };
}

describe('an exec plugin and a 401', () => {
  it('an answer without an expiry is kept', async () => {
    const { exec, runs } = plugin("give({ token: 't' + at })");
    const cluster = await load({ exec });
    for (let i = 0; i < 3; i++) await list(cluster);
    expect([bearers(), runs()]).toEqual([['t1', 't1', 't1'], 1]);
  });

  it.each(['', "expirationTimestamp: '2999-01-01T00:00:00Z'"])('a token that is revoked is replaced: %s', async (expiry) => {
    const { exec, runs } = plugin(`give({ token: 't' + at, ${expiry} })`);
    const cluster = await load({ exec });
    await list(cluster);
    accept('t2');
    expect(await list(cluster)).toMatchObject({ resourceVersion: '7' });
    expect(await list(cluster)).toMatchObject({ resourceVersion: '7' });
    expect([bearers(), runs()]).toEqual([['t1', 't1', 't2', 't2'], 2]);
  });

  it('a write is sent again, because it was not done', async () => {
    const { exec } = plugin("give({ token: 't' + at })");
    const cluster = await load({ exec });
    server.reply = (response, noted) => {
      const refused = noted.headers.authorization === 'Bearer t1';
      (refused ? json(UNAUTHORIZED, 401) : json({ metadata: { name: 'a' } }, 201))(response, noted);
    };
    await cluster
      .resource('pods')
      .in('x')
      .create({ metadata: { name: 'a' } });
    const [first, second] = server.requests.map(({ method, body }) => `${method} ${body}`);
    expect(first).toBe(second);
  });

  it('requests that start together run it once, and those that are refused together run it once more', async () => {
    const { exec, runs } = plugin("give({ token: 't' + at })");
    const cluster = await load({ exec });
    const together = (): Promise<unknown> => Promise.all(Array.from({ length: 8 }, () => list(cluster)));
    await together();
    expect(runs()).toBe(1);
    accept('t2');
    await together();
    expect(runs()).toBe(2);
  });

  it('a new token that is refused, too, is the end; so is the same one', async () => {
    accept();
    const fresh = plugin("give({ token: 't' + at })");
    await expect(list(await load({ exec: fresh.exec }))).rejects.toMatchObject({ code: 'REFUSED', status: { code: 401 } });
    expect([bearers(), fresh.runs()]).toEqual([['t1', 't2'], 2]);
    server.requests.length = 0;
    const same = plugin("give({ token: 't' })");
    await expect(list(await load({ exec: same.exec }))).rejects.toMatchObject({ code: 'REFUSED', status: { code: 401 } });
    expect([bearers(), same.runs()]).toEqual([['t'], 2]);
  });

  it('a plugin that then fails is the error', async () => {
    const { exec } = plugin("if (at > 1) process.exit(3); else give({ token: 't' })");
    const cluster = await load({ exec });
    accept();
    await expect(list(cluster)).rejects.toThrow(/plugin ".*" has exited with code 3/);
  });

  it('a certificate that is refused is replaced', async () => {
    const [ann, bob] = ['ann', 'bob'].map((name) => {
      const { cert, key } = server.client(name);
      return { clientCertificateData: cert, clientKeyData: key };
    });
    const { exec } = plugin(`give(at === 1 ? ${JSON.stringify(ann)} : ${JSON.stringify(bob)})`);
    const cluster = await load({ exec });
    server.reply = (response, noted) => (noted.client === 'bob' ? json(LIST) : json(UNAUTHORIZED, 401))(response, noted);
    await list(cluster);
    expect(server.requests.map(({ client }) => client)).toEqual(['ann', 'bob']);
  });

  it('a token in the kubeconfig that is refused is not sent again', async () => {
    accept();
    await expect(list(await load({ token: 't' }))).rejects.toMatchObject({ status: { code: 401 } });
    expect(bearers()).toEqual(['t']);
  });
});

describe('how an exec plugin runs', () => {
  it('its standard input is at its end', async () => {
    const { exec } = plugin("process.stdin.on('data', () => {}).on('end', () => give({ token: 'read' }))");
    await list(await load({ exec }));
    expect(bearers()).toEqual(['read']);
  });

  it('it is told who asks it, and about the cluster if it wants to know', async () => {
    const { exec } = plugin('give({ token: Buffer.from(process.env.KUBERNETES_EXEC_INFO).toString("base64") })');
    await list(await load({ exec }));
    const wanted = { ...exec, provideClusterInfo: true, apiVersion: 'client.authentication.k8s.io/v1beta1' };
    const extensions = [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'a' } }];
    await list(await load({ exec: wanted }, {}, { extensions }));
    const [without, info] = bearers().map((token) => JSON.parse(Buffer.from(token ?? '', 'base64').toString()));
    const kind = 'ExecCredential';
    expect(without).toEqual({ kind, apiVersion: 'client.authentication.k8s.io/v1', spec: { interactive: false } });
    const cluster = { server: server.url, 'certificate-authority-data': base64(server.ca), config: { audience: 'a' } };
    expect(info).toEqual({ kind, apiVersion: wanted.apiVersion, spec: { cluster, interactive: false } });
  });

  it('a relative command is beside the kubeconfig; a bare one is looked up', async () => {
    const path = server.file('own.sh', `#!/bin/sh\necho '{"status":{"token":"beside"}}'\n`);
    chmodSync(path, 0o700);
    await list(await load({ exec: { command: './own.sh' } }));
    await list(await load({ exec: { command: `../${basename(dirname(path))}/own.sh` } }));
    expect(bearers()).toEqual(['beside', 'beside']);
    await expect(list(await load({ exec: { command: 'own.sh' } }))).rejects.toThrow('the exec plugin "own.sh" was not found');
  });

  it('its variables are set', async () => {
    const { exec } = plugin('give({ token: process.env.WHO })', { env: [{ name: 'WHO', value: 'me' }] });
    await list(await load({ exec }));
    expect(bearers()).toEqual(['me']);
  });

  it('one that does not end is killed, and named', async () => {
    const pid = server.file('pid', '');
    const { exec } = plugin(`console.error('open http://login'); fs.writeFileSync(${JSON.stringify(pid)}, String(process.pid));
      setInterval(() => {}, 1_000)`);
    const clock = new FakeClock();
    vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const cluster = await load({ exec }, { clock, execTimeoutMs: 5_000 });
    const listed = list(cluster).catch((error: Error) => error.message);
    await eventually(() => expect(readFileSync(pid, 'utf8')).not.toBe(''));
    await eventually(() => expect(process.stderr.write).toHaveBeenCalled());
    clock.advance(5_000);
    expect(await listed).toMatch(/the exec plugin ".*" has not answered within 5000 ms: open http:\/\/login/);
    await eventually(() => expect(() => process.kill(Number(readFileSync(pid, 'utf8')), 0)).toThrow('ESRCH'));
    expect(server.requests).toEqual([]);
  });

  it('one that is not installed says how to get it', async () => {
    const exec = { command: 'watchmux-no-such-plugin', installHint: 'Get it\nfrom \u001b[31mexample.com' };
    const message = /the exec plugin "watchmux-no-such-plugin" was not found\. Get it from \[31mexample\.com/;
    await expect(list(await load({ exec }))).rejects.toThrow(message);
  });

  it.each([
    ['console.log("hunter2")', 'has not written JSON'],
    ['console.log("null")', 'has handed out neither a token nor a certificate'],
    ['give({ token: 5 })', 'has written no ExecCredential'],
    ['give({ clientKeyData: "k" })', 'has handed out a certificate or a key, not both'],
    ['give({ token: "t", expirationTimestamp: "soon" })', 'has written an expirationTimestamp that is not a time: soon'],
    ['process.kill(process.pid, "SIGTERM"); setInterval(() => {}, 1_000)', 'was ended by SIGTERM'],
    ['process.stdout.write("x".repeat(2_000_000))', 'has written more than 1048576 bytes'],
  ])('%s', async (script, message) => {
    const { exec } = plugin(script);
    const error = await list(await load({ exec })).catch((each: Error) => each);
    expect((error as Error).message).toContain(message);
    expect((error as Error).message).not.toContain('hunter2');
    expect(server.requests).toEqual([]);
  });

  it('one that needs a terminal is refused', async () => {
    const { exec, runs } = plugin("give({ token: 't' })", { interactiveMode: 'Always' });
    await expect(list(await load({ exec }))).rejects.toThrow('needs a terminal (interactiveMode: Always)');
    expect(runs()).toBe(0);
  });

  it('what the kubeconfig says itself counts before it', async () => {
    const { exec, runs } = plugin("give({ token: 'plugin' })");
    await list(await load({ exec, token: 'own' }));
    expect([bearers(), runs()]).toEqual([['own'], 0]);
  });

  it('its time is less than that of a request', async () => {
    const file = server.kubeconfig({ token: 't' });
    await expect(loadCluster({ file, execTimeoutMs: 60_000 })).rejects.toThrow('less than responseTimeoutMs (60000)');
    await expect(loadCluster({ file, execTimeoutMs: 5, responseTimeoutMs: 5 })).rejects.toThrow('execTimeoutMs');
    await expect(loadCluster({ file, execTimeoutMs: 0 })).rejects.toThrow('a whole number >= 1');
    await loadCluster({ file, execTimeoutMs: 90_000, responseTimeoutMs: 0 });
    await loadCluster({ file, responseTimeoutMs: 1 });
  });
});

describe('a token in a file', () => {
  it('is read for every request, beside the kubeconfig', async () => {
    server.file('token', 'one\n');
    const cluster = await load({ tokenFile: 'token' });
    await list(cluster);
    server.file('token', 'two');
    await list(cluster);
    expect(bearers()).toEqual(['one', 'two']);
  });

  it('that is replaced while a request is under way is read again after a 401', async () => {
    server.file('token', 'one');
    const cluster = await load({ tokenFile: 'token' });
    server.reply = (response, noted) => {
      server.file('token', 'two');
      (noted.headers.authorization === 'Bearer two' ? json(LIST) : json(UNAUTHORIZED, 401))(response, noted);
    };
    await list(cluster);
    expect(bearers()).toEqual(['one', 'two']);
  });

  it('that is missing or empty is an error, not an anonymous request', async () => {
    await expect(list(await load({ tokenFile: 'nowhere' }))).rejects.toThrow(/no credentials for this request: ENOENT.*nowhere/);
    server.file('token', '\n');
    await expect(list(await load({ tokenFile: 'token' }))).rejects.toThrow(/token is empty/);
    expect(server.requests).toEqual([]);
    await list(await load({ tokenFile: 'nowhere', token: 'spare' }));
    expect(bearers()).toEqual(['spare']);
  });
});

describe('whom a user acts as', () => {
  const user = { as: 'Jürgen', 'as-uid': '7', 'as-groups': ['a', 'b'], 'as-user-extra': { 'scopes/x%': ['1', '2'], Ü: ['3'] } };
  const HEADERS = {
    'impersonate-user': Buffer.from('Jürgen').toString('latin1'),
    'impersonate-uid': '7',
    'impersonate-group': 'a, b',
    'impersonate-extra-scopes%2fx%25': '1, 2',
    'impersonate-extra-%c3%9c': '3',
  };

  it('is sent with every request', async () => {
    const cluster = await load({ token: 't', ...user });
    await list(cluster);
    await cluster
      .resource('pods')
      .in('x')
      .create({ metadata: { name: 'ü' } });
    for (const { headers } of server.requests) expect(headers).toMatchObject({ authorization: 'Bearer t', ...HEADERS });
    expect(server.requests.map(({ body }) => body && JSON.parse(body).metadata)).toEqual(['', { name: 'ü' }]);
  });

  it('is sent without TLS, too, where the token is not', async () => {
    const seen: object[] = [];
    const plain = createServer((request, response) => {
      seen.push(request.headers);
      response.setHeader('content-type', 'application/json').end(JSON.stringify(LIST));
    });
    await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(plain.address() as AddressInfo).port}`;
    await list(await load({ token: 't', ...user }, {}, { server: url }));
    expect(seen).toMatchObject([HEADERS]);
    expect(seen[0]).not.toHaveProperty('authorization');
    plain.closeAllConnections();
    await new Promise((resolve) => plain.close(resolve));
  });

  it('groups without a user are refused, not dropped', async () => {
    const file = server.kubeconfig({ token: 't', 'as-groups': ['viewers'] });
    await expect(loadCluster({ file })).rejects.toThrow('expected as together with as-uid, as-groups and as-user-extra');
  });
});

describe('other places of a kubeconfig', () => {
  it('a text, and the URL of a server', async () => {
    const text = readFileSync(server.kubeconfig({ token: 'abc' }), 'utf8');
    const cluster = await loadCluster({ text, context: 'y' });
    open.push(cluster);
    await list(cluster);
    expect([cluster.namespace, bearers()]).toEqual(['team-y', ['abc']]);
    expect((await loadCluster({ server: 'http://127.0.0.1:8080' })).server.href).toBe('http://127.0.0.1:8080/');
    await expect(loadCluster({ server: 'http://x', text })).rejects.toThrow('text: expected no text together with server');
    await expect(loadCluster({ server: 'http://x', context: 'y' })).rejects.toThrow('none together with server');
    await expect(loadCluster({ text: 'clusters: {}' })).rejects.toThrow('cannot read text: clusters: expected a list');
  });

  it('a secret of the wrong type is not shown', async () => {
    const error = await loadCluster({ file: server.kubeconfig({ token: 12345 }) }).catch((each: Error) => each.message);
    expect(error).toContain('users[0].user.token: expected a string, got a value of type number');
    expect(error).not.toContain('12345');
  });
});

describe('warnings of the server', () => {
  const WARNING = '299 - "unknown field \\"spec.ingress[0]._from\\"", 299 - "deprecated"';
  it('are printed, each once', async () => {
    server.reply = json(LIST, 200, { warning: WARNING });
    const printed = vi.spyOn(console, 'warn').mockReturnValue();
    const cluster = await load({ token: 't' });
    for (let i = 0; i < 2; i++) await list(cluster);
    expect(printed.mock.calls).toEqual([
      ['watchmux: the cluster warns: unknown field "spec.ingress[0]._from"'],
      ['watchmux: the cluster warns: deprecated'],
    ]);
  });

  it('or are given to onWarning', async () => {
    server.reply = json(LIST, 200, { warning: WARNING });
    const heard: string[] = [];
    await list(await load({ token: 't' }, { onWarning: (text) => heard.push(text) }));
    expect(heard).toEqual(['unknown field "spec.ingress[0]._from"', 'deprecated']);
    await expect(load({ token: 't' }, { onWarning: 5 as never })).rejects.toThrow('onWarning: expected a function');
  });
});
