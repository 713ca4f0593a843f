// The verbs of a resource, as requests to a server of TLS, and what becomes of its answers.
import type { ServerResponse } from 'node:http';
import { constants, createGzip, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { KubernetesObject } from '../../src/cache/index.ts';
import { isWatchError } from '../../src/index.ts';
import { Cluster, type KubeConfigLike, type Resource } from '../../src/kubernetes/index.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { type ClusterServer, json, serveCluster } from './cluster-server.ts';
import { macrotask } from './support.ts';

interface Thing extends KubernetesObject {
  readonly data?: Readonly<Record<string, string>>;
}

let server: ClusterServer;
let cluster: Cluster;
let things: Resource<Thing>;

const config: KubeConfigLike = {
  getCurrentContext: () => 'c',
  getContextObject: () => null,
  getCurrentCluster: () => ({ server: server.url }),
  getCurrentUser: () => ({}),
  applyToHTTPSOptions: async (options) => void Object.assign(options, { ca: server.ca }),
};
const clock = new FakeClock();
const thing: Thing = { metadata: { name: 'a', namespace: 'team', resourceVersion: '5' }, data: { k: 'v' } };
const status = (code: number, reason: string): object => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: `because of ${reason}`,
  reason,
  code,
});

beforeEach(async () => {
  server = await serveCluster();
  server.reply = json(thing);
  cluster = new Cluster(config, { clock, maxFrameBytes: 1_000, responseTimeoutMs: 5_000 });
  things = cluster.resource<Thing>({ group: 'example.com', version: 'v1', plural: 'things', kind: 'Thing', namespaced: true });
});
afterEach(async () => {
  cluster.close();
  await server.close();
  expect(clock.pending).toBe(0);
});

const BASE = '/apis/example.com/v1';
const asked = (): string[] => server.requests.map(({ method, url, body }) => `${method} ${url} ${body}`.trim());
const sent = (): unknown => JSON.parse(server.requests.at(-1)?.body ?? '');

it('sends nothing that JSON does not have', async () => {
  const failing = [
    [things.create({ ...thing, data: { k: 1n as never } }), 'object.data.k: expected a value that JSON has'],
    [
      things.patch('team/a', { spec: { items: [0, { count: 0 / 0 }] } }),
      'patch.spec.items[1].count: expected a value that JSON has',
    ],
  ] as const;
  for (const [write, message] of failing) await expect(write).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', message });
  expect(asked()).toEqual([]);
});

describe('paths', () => {
  it.each([
    ['pods', '/api/v1/pods'],
    ['pods/v1', '/api/v1/pods'],
    ['deployments.apps/v1', '/apis/apps/v1/deployments'],
    ['orders.shop.example.com/v1beta1', '/apis/shop.example.com/v1beta1/orders'],
  ])('%s is %s', async (name, path) => {
    server.reply = json({ metadata: { resourceVersion: '1' }, items: [] });
    await cluster.resource(name).list({ limit: 3 });
    await cluster.resource(name).in('x').list({ labelSelector: 'a=b' });
    const within = path.replace(/\/(\w+)$/, '/namespaces/x/$1');
    expect(asked()).toEqual([`GET ${path}?limit=3`, `GET ${within}?labelSelector=a%3Db`]);
  });

  it.each(['', 'deployments.apps', 'apps/v1/deployments', '../v1', 'a/..', 'pods/', './v1'])('%j is no resource', (name) => {
    expect(() => cluster.resource(name)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  it.each(['..', '.', '', 'a%2f', 'a?b', 'a b', 'x/../../secrets'])('no name leads elsewhere: %j', async (name) => {
    const refused = { code: 'INVALID_ARGUMENT' };
    await expect(things.in('team').get(`team/${name}`)).rejects.toMatchObject(refused);
    expect(() => things.in(name)).toThrow(expect.objectContaining(refused));
    await expect(things.in('team').get('a', { subresource: name })).rejects.toMatchObject(refused);
    expect(asked()).toEqual([]);
  });

  it('the source of an informer factory is a list watcher, of one namespace if one is named', async () => {
    server.reply = json({ metadata: { resourceVersion: '1' }, items: [] });
    await cluster.source('pods').list();
    await cluster.source('pods', { namespace: 'x' }).list();
    expect(asked()).toEqual(['GET /api/v1/pods', 'GET /api/v1/namespaces/x/pods']);
  });
});

describe('one object', () => {
  it('get, by name and by key', async () => {
    expect(await things.get('team/a')).toEqual(thing);
    await things.in('team').get('a', { resourceVersion: '0' });
    await things.in('team').get('a', { subresource: 'status' });
    const at = `GET ${BASE}/namespaces/team/things/a`;
    expect(asked()).toEqual([at, `${at}?resourceVersion=0`, `${at}/status`]);
  });

  it('create: the namespace is that of the object or of the resource; kind and apiVersion are added', async () => {
    await things.create(thing, { fieldManager: 'me', fieldValidation: 'Strict' });
    expect(sent()).toEqual({ apiVersion: 'example.com/v1', kind: 'Thing', ...thing });
    await things.in('team').create({ kind: 'Own', metadata: { generateName: 'a-' } }, { dryRun: true });
    expect(sent()).toEqual({ apiVersion: 'example.com/v1', kind: 'Own', metadata: { generateName: 'a-' } });
    await things.create({ metadata: { name: 'a', namespace: 'team' } }, { subresource: 'eviction' });
    const at = `POST ${BASE}/namespaces/team/things`;
    const paths = server.requests.map(({ method, url }) => `${method} ${url}`);
    expect(paths).toEqual([`${at}?fieldManager=me&fieldValidation=Strict`, `${at}?dryRun=All`, `${at}/a/eviction`]);
    expect(server.requests[0]?.headers).toMatchObject({ 'content-type': 'application/json', accept: 'application/json' });
  });

  it('create of a subresource that is done and not kept: the server only says so, as a kube-apiserver of an eviction', async () => {
    server.reply = json({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }, 201);
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'a', namespace: 'team' } };
    expect(await things.create(eviction, { subresource: 'eviction' })).toEqual(eviction);
    await expect(things.create(eviction)).rejects.toMatchObject({ code: 'INVALID_FRAME' });
  });

  it('update replaces an object, or its status', async () => {
    await things.update(thing);
    await things.update(thing, { subresource: 'status' });
    expect(sent()).toMatchObject({ metadata: { resourceVersion: '5' } });
    const at = `PUT ${BASE}/namespaces/team/things/a`;
    expect(server.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([at, `${at}/status`]);
    // A scale is of another kind, which the server knows.
    await things
      .in('team')
      .subresource('scale')
      .update({ metadata: { name: 'a' }, spec: { replicas: 2 } });
    expect(sent()).toEqual({ metadata: { name: 'a' }, spec: { replicas: 2 } });
    await expect(things.update({ metadata: { namespace: 'team' } })).rejects.toThrow('object.metadata.name: expected a name');
  });

  it.each([
    ['merge', { data: { k: null } }, 'application/merge-patch+json'],
    ['strategic', { data: { k: null } }, 'application/strategic-merge-patch+json'],
    ['json', [{ op: 'remove', path: '/data' }], 'application/json-patch+json'],
  ] as const)('patch: %s', async (type, patch, contentType) => {
    await things.patch('team/a', patch, { type });
    expect(server.requests[0]).toMatchObject({ method: 'PATCH', url: `${BASE}/namespaces/team/things/a` });
    expect(server.requests[0]?.headers['content-type']).toBe(contentType);
    expect(sent()).toEqual(patch);
  });

  it('patch: merge is the default, apply names its manager and what it is', async () => {
    await things.patch('team/a', { data: {} });
    expect(server.requests[0]?.headers['content-type']).toBe('application/merge-patch+json');
    await things.patch('team/a', { data: {} }, { type: 'apply', fieldManager: 'me', force: true });
    expect(server.requests[1]?.url).toBe(`${BASE}/namespaces/team/things/a?fieldManager=me&force=true`);
    expect(server.requests[1]?.headers['content-type']).toBe('application/apply-patch+yaml');
    expect(sent()).toEqual({ apiVersion: 'example.com/v1', kind: 'Thing', data: {} });
  });

  it('patches that cannot be are refused before they are sent', async () => {
    const no = (patch: object, options: object, message: string): Promise<void> =>
      expect(things.patch('team/a', patch, options)).rejects.toThrow(message);
    await no({}, { type: 'apply' }, 'fieldManager: expected a name');
    await no({}, { type: 'json' }, 'an array of operations');
    await no([], {}, 'patch: expected an object');
    await no({}, { force: true }, 'force: expected true only together with type "apply"');
    await no({}, { type: 'smart' }, 'one of json, merge, strategic, apply');
    await no({}, { typ: 'json' }, 'did you mean type?');
    expect(asked()).toEqual([]);
  });

  it('delete: with preconditions, and what the server answers', async () => {
    expect(await things.delete('team/a')).toEqual(thing);
    server.reply = json({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details: { name: 'a' } });
    const options = {
      preconditions: { uid: 'u', resourceVersion: '5' },
      propagation: 'Foreground',
      gracePeriodSeconds: 0,
    } as const;
    expect(await things.delete('team/a', { ...options, dryRun: true })).toBeUndefined();
    const { method, body, headers } = server.requests[1]!;
    expect(method).toBe('DELETE');
    expect(JSON.parse(body)).toEqual({
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      dryRun: ['All'],
      preconditions: options.preconditions,
      propagationPolicy: 'Foreground',
      gracePeriodSeconds: 0,
    });
    expect(headers['content-length']).toBe(String(body.length)); // Node does not say it by itself
    await expect(things.delete('team/a', { propagation: 'Maybe' as never })).rejects.toThrow('one of Foreground');
    await expect(things.delete('team/a', { preconditions: { uuid: '' } as never })).rejects.toThrow('did you mean uid?');
    await expect(things.delete('team/a', { gracePeriodSeconds: -1 })).rejects.toThrow('gracePeriodSeconds');
  });

  it('a collection is deleted with its selectors; the answer is a list, as long as one may be', async () => {
    const items = Array.from({ length: 100 }, (_, at) => ({ metadata: { name: `a-${at}` } }));
    server.reply = json({ kind: 'ThingList', apiVersion: 'example.com/v1', metadata: {}, items });
    const options = { labelSelector: 'a=b', fieldSelector: 'metadata.name!=x', dryRun: true };
    expect(await things.in('team').deleteCollection(options)).toEqual(items);
    const [{ method, url } = {}] = server.requests;
    expect(`${method} ${url}`).toBe(
      `DELETE ${BASE}/namespaces/team/things?labelSelector=a%3Db&fieldSelector=metadata.name%21%3Dx`,
    );
    expect(sent()).toEqual({ kind: 'DeleteOptions', apiVersion: 'v1', dryRun: ['All'] });
    server.reply = json({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' });
    expect(await things.deleteCollection()).toEqual([]);
  });

  it('namespaces that are missing, or too many, are refused if the kind tells', async () => {
    await expect(things.get('a')).rejects.toThrow('use things.in(namespace)');
    await expect(things.create({ metadata: { name: 'a' } })).rejects.toThrow('use things.in(namespace)');
    await expect(things.in('team').get('other/a')).rejects.toThrow('namespace: expected team, got "other"');
    const nodes = cluster.resource({ version: 'v1', plural: 'nodes', namespaced: false });
    expect(() => nodes.in('team')).toThrow('nodes are in no namespace');
    await expect(nodes.get('team/a')).rejects.toThrow('nodes are in no namespace');
    expect(asked()).toEqual([]);
    await nodes.get('a');
    expect(asked()).toEqual(['GET /api/v1/nodes/a']);
  });
});

describe('answers', () => {
  it.each([
    [404, 'NotFound'],
    [409, 'Conflict'],
    [422, 'Invalid'],
    [403, 'Forbidden'],
  ])('%d %s rejects with what the server says', async (code, reason) => {
    server.reply = json(status(code, reason), code);
    for (const verb of [() => things.get('team/a'), () => things.create(thing), () => things.delete('team/a')]) {
      const error: unknown = await verb().catch((each: unknown) => each);
      expect(isWatchError(error, 'REFUSED') && error.status).toMatchObject({ code, reason, message: `because of ${reason}` });
    }
  });

  it('201 and 202 are fine', async () => {
    server.reply = json(thing, 201);
    expect(await things.create(thing)).toEqual(thing);
    server.reply = json(thing, 202);
    expect(await things.delete('team/a')).toEqual(thing);
    server.reply = json(thing, 201);
    await expect(things.get('team/a')).rejects.toMatchObject({ code: 'REFUSED' });
  });

  it('a redirect is not followed', async () => {
    server.reply = json({}, 302, { location: 'https://127.0.0.1:1/' });
    await expect(things.get('team/a')).rejects.toMatchObject({ code: 'REFUSED' });
    expect(server.requests).toHaveLength(1);
  });

  it.each([
    ['no JSON', '{', 'application/json', 'INVALID_FRAME'],
    ['no object', '[]', 'application/json', 'INVALID_FRAME'],
    ['an object without metadata', '{"ok":true}', 'application/json', 'INVALID_FRAME'],
    ['metadata that are none', '{"metadata":[]}', 'application/json', 'INVALID_FRAME'],
    ['a page', '<html>', 'text/html', 'INVALID_FRAME'],
    ['too long', JSON.stringify({ data: 'x'.repeat(1_000) }), 'application/json', 'FRAME_TOO_LARGE'],
    [
      'a Status of success where an object should be',
      '{"kind":"Status","status":"Success"}',
      'application/json',
      'INVALID_FRAME',
    ],
    ['a Status of failure that comes with 200', '{"kind":"Status","code":409}', 'application/json', 'REFUSED'],
  ])('%s is an error', async (_what, body, type, code) => {
    server.reply = (response) => void response.setHeader('content-type', type).end(body);
    await expect(things.get('team/a')).rejects.toMatchObject({ code });
  });

  it('an answer without metadata is no object, whatever was asked; what is created need not be stored', async () => {
    server.reply = json({ ok: true });
    const refused = { code: 'INVALID_FRAME', message: expect.stringContaining('no metadata') };
    await expect(things.update(thing)).rejects.toMatchObject(refused);
    await expect(things.patch('team/a', {})).rejects.toMatchObject(refused);
    await expect(things.delete('team/a')).rejects.toMatchObject(refused);
    expect(await things.create(thing)).toEqual({ ok: true });
  });

  it('items that are no array are no answer to the deletion of a collection', async () => {
    server.reply = json({ metadata: {}, items: { a: 1 } });
    await expect(things.in('team').deleteCollection()).rejects.toMatchObject({ code: 'INVALID_FRAME' });
    server.reply = json({ metadata: {}, items: null });
    expect(await things.in('team').deleteCollection()).toEqual([]);
  });

  it.each<[string, (response: ServerResponse) => void]>([
    [
      'breaks off',
      (response) => response.writeHead(410, { 'content-length': '500' }).write('{"kind":"Sta', () => response.destroy()),
    ],
    [
      'is a part of a gzip member',
      (response) =>
        response
          .writeHead(410, { 'content-encoding': 'gzip' })
          .end(gzipSync(JSON.stringify(status(410, 'Expired'))).subarray(0, 40)),
    ],
    ['is not in the coding that it names', (response) => response.writeHead(410, { 'content-encoding': 'gzip' }).end('<html>')],
  ])(
    'a refusal whose text %s is a refusal: the version has expired, and asking again would be of no use',
    async (_what, reply) => {
      server.reply = reply;
      for (const verb of [() => things.list(), () => things.watch({ resourceVersion: '5' }), () => things.get('team/a')]) {
        await expect(verb()).rejects.toMatchObject({ code: 'REFUSED', status: { code: 410, reason: 'Expired' } });
      }
    },
  );

  it('a refusal whose text does not come is one after the time-out; a signal is still what ends the request', async () => {
    const arrived = (): Promise<void> =>
      expect
        .poll(() => server.requests.length)
        .toBe(1)
        .then(() => macrotask());
    server.reply = (response) => void response.writeHead(403).write('{');
    const asked = things.get('team/a').catch((error: unknown) => error);
    await arrived();
    clock.advance(5_000);
    expect(await asked).toMatchObject({ code: 'REFUSED', status: { code: 403 } });
    server.requests.length = 0;
    const abort = new AbortController();
    const aborted = things.get('team/a', { signal: abort.signal }).catch((error: unknown) => error);
    await arrived();
    abort.abort(new Error('enough'));
    expect(await aborted).toMatchObject({ message: 'enough' });
  });

  it('another protocol, for which nobody has asked, is an error at once', async () => {
    server.reply = (response) =>
      void response.socket?.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n');
    await expect(things.get('team/a')).rejects.toThrow('the server answered 101');
    expect(clock.pending).toBe(0);
  });

  it('what onWarning throws is printed, and the request goes on', async () => {
    const printed = vi.spyOn(console, 'error').mockImplementation(() => {});
    server.reply = json(thing, 200, { warning: '299 - "mind the gap", 299 - "and the step"' });
    const heard: string[] = [];
    const own = new Cluster(config, {
      onWarning: (text) => {
        heard.push(text);
        throw new Error('deaf');
      },
    });
    expect(await own.resource<Thing>('things').in('team').update(thing)).toEqual(thing);
    expect(heard).toEqual(['mind the gap', 'and the step']);
    expect(printed).toHaveBeenCalledWith(expect.stringContaining('deaf'));
    printed.mockRestore();
    own.close();
  });

  it('gzip, also of a bomb: what counts is the size after decompression', async () => {
    const packed = (body: string): void => {
      server.reply = (response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
        response.end(gzipSync(body));
      };
    };
    packed(JSON.stringify(thing));
    expect(await things.get('team/a')).toEqual(thing);
    expect(server.requests[0]?.headers['accept-encoding']).toBe('gzip');
    packed(' '.repeat(50_000_000));
    await expect(things.get('team/a')).rejects.toMatchObject({ code: 'FRAME_TOO_LARGE', limit: 1_000 });
    server.reply = (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
      response.end('this is not gzip');
    };
    await expect(things.get('team/a')).rejects.toThrow('incorrect header check');
  });

  it('a silent server is left after the time-out', async () => {
    server.reply = () => {};
    const got = things.get('team/a').catch((error: unknown) => error);
    while (server.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    clock.advance(5_000);
    expect(await got).toMatchObject({ code: 'TIMEOUT', limit: 5_000 });
  });

  it('a signal aborts a request, and keeps no listener', async () => {
    server.reply = () => {};
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    const created = things.create(thing, { signal: abort.signal });
    while (server.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    abort.abort(new Error('enough'));
    await expect(created).rejects.toThrow('enough');
    expect(listeners.count).toBe(0);
  });
});

describe('watch', () => {
  const event = (type: string, name: string): string => `${JSON.stringify({ type, object: { metadata: { name } } })}\n`;

  it('events in gzip members of their own arrive at once', async () => {
    let push = (_text: string): void => {};
    server.reply = (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
      push = (text) => void response.write(gzipSync(text));
      push(event('ADDED', 'a'));
    };
    const watch = await things.watch({ sendInitialEvents: true });
    expect((await watch.next()).value).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'a' } } });
    push(event('MODIFIED', 'b'));
    expect((await watch.next()).value).toMatchObject({ type: 'MODIFIED', object: { metadata: { name: 'b' } } });
    await watch.return();
  });

  it('a watch that is returned closes its connection; the connection that breaks ends it', async () => {
    server.reply = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write(event('ADDED', 'a'));
    };
    const watch = await things.watch();
    await watch.next();
    const closed = new Promise((resolve) => server.sockets[0]?.once('close', resolve));
    await watch.return();
    await closed;
    const broken = await things.watch();
    await broken.next();
    server.sockets[1]?.destroy();
    expect(await broken.next()).toMatchObject({ done: true });
  });

  it('a cluster that is closed keeps what is in use, and closes what is idle', async () => {
    let response: ServerResponse | undefined;
    server.reply = (reply) => {
      response = reply;
      reply.writeHead(200, { 'content-type': 'application/json' });
      reply.write(event('ADDED', 'a'));
    };
    const watch = await things.watch();
    await watch.next();
    server.reply = json(thing);
    await things.get('team/a');
    const closed = new Promise((resolve) => server.sockets[1]?.once('close', resolve));
    cluster.close();
    await closed;
    response?.write(event('MODIFIED', 'b'));
    expect((await watch.next()).value).toMatchObject({ type: 'MODIFIED', object: { metadata: { name: 'b' } } });
    await watch.return();
  });

  it('a slow reader holds the server back', async () => {
    const line = event('ADDED', 'x'.repeat(900));
    let written = 0;
    let finished = false;
    server.reply = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const more = (): void => {
        if (written > 100_000_000) response.end();
        else {
          response.write(line.repeat(100), () => setImmediate(more));
          written += line.length * 100;
        }
      };
      response.on('finish', () => {
        finished = true;
      });
      more();
    };
    const watch = await things.watch();
    await watch.next();
    // Both ends are in this process: what can be sent is sent within a few turns.
    for (let still = 0, last = written; still < 500 && !finished; last = written) {
      await new Promise((resolve) => setImmediate(resolve));
      still = last === written ? still + 1 : 0;
    }
    expect(finished).toBe(false);
    expect(written).toBeLessThan(50_000_000);
    await watch.return();
  });

  it('events of one gzip member arrive with each flush', async () => {
    const gzip = createGzip();
    server.reply = (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
      response.flushHeaders();
      gzip.pipe(response);
    };
    const watch = await things.watch();
    for (const name of ['a', 'b']) {
      gzip.write(event('ADDED', name));
      gzip.flush(constants.Z_SYNC_FLUSH);
      expect((await watch.next()).value).toMatchObject({ object: { metadata: { name } } });
    }
    await watch.return();
    gzip.destroy();
  });

  it.each(['broken', 'ended'] as const)(
    'a connection that is %s within a gzip member ends a watch as one without gzip',
    async (how) => {
      let response: ServerResponse | undefined;
      server.reply = (reply) => {
        response = reply;
        reply.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
        const gzip = createGzip().on('data', (part) => void reply.write(part));
        gzip.write(event('ADDED', 'a'));
        gzip.flush(constants.Z_SYNC_FLUSH);
      };
      const watch = await things.watch();
      expect((await watch.next()).value).toMatchObject({ type: 'ADDED' });
      if (how === 'ended') response?.end();
      else response?.destroy();
      expect(await watch.next()).toEqual({ done: true, value: undefined });
    },
  );

  it('a coding is named in any letter case', async () => {
    server.reply = (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'GZip' });
      response.end(gzipSync(JSON.stringify(thing)));
    };
    expect(await things.get('team/a')).toEqual(thing);
  });

  it('a body that is cancelled closes its connection, also without a signal', async () => {
    server.reply = (response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write(event('ADDED', 'a'));
    };
    const response = await cluster.fetch(things.url);
    const closed = new Promise((resolve) => server.sockets[0]?.once('close', resolve));
    await response.body?.cancel();
    await closed;
  });
});
