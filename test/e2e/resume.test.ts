// Resuming over real sockets: the response on each transport, and that no schedule of cuts loses or repeats an event.
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import type { HubOptions } from '../../src/bridge/hub/hub.ts';
import { coreOf, Hub } from '../../src/bridge/hub/hub.ts';
import type { Connection } from '../../src/testing/checkers/check-streams.ts';
import { checkResumable } from '../../src/testing/checkers/check-streams.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { runs } from '../runs.ts';
import type { Client, ClientOptions } from './cli.ts';
import { httpStream, open, sse, text, until, webSocket } from './cli.ts';
import type { Served } from './servers.ts';
import { closeAll, serve, serveFetch } from './servers.ts';

afterAll(closeAll);

type Connect = (url: string, options?: ClientOptions) => Promise<Client>;
const HOSTS: readonly [string, (hub: Hub) => Promise<Served>, Connect][] = [
  ['WebSocket', serve, webSocket],
  ['HTTP stream', serve, httpStream],
  ['SSE', serve, sse],
  ['HTTP stream of a fetch handler', serveFetch, httpStream],
  ['SSE of a fetch handler', serveFetch, sse],
];

const added = (object: unknown): WatchEvent => ({ type: 'ADDED', object });

async function published(count: number, options: HubOptions = {}): Promise<Hub> {
  const hub = new Hub({ epoch: 'e', ...options });
  for (let i = 1; i <= count; i++) await hub.publish(added(i));
  return hub;
}

const from = (version: string): ClientOptions => ({ query: `?resourceVersion=${encodeURIComponent(version)}` });
const upTo = (last: number, first: number = 1): string[] => Array.from({ length: last - first + 1 }, (_, i) => `e.${first + i}`);

describe.each(HOSTS)('%s', (name, serveAt, connect) => {
  const isSse = name.startsWith('SSE');
  const isWebSocket = name === 'WebSocket';

  test('resumes right after a version, given by the query or by Last-Event-ID', async () => {
    const hub = await published(5);
    const { url } = await serveAt(hub);
    const clients = await Promise.all([
      connect(url, from('e.2')),
      connect(url, { headers: { 'last-event-id': 'e.3' }, query: '?resourceVersion=e.1' }),
      connect(url, from('e.5')), // nothing was missed
      connect(url),
      connect(url, from('0')),
    ]);
    await hub.publish(added(6));
    await hub.shutdown();
    await Promise.all(clients.map(({ ended }) => ended));
    expect(clients.map((client) => client.versions())).toEqual([upTo(6, 3), upTo(6, 4), ['e.6'], ['e.6'], ['e.6']]);
    if (isSse) expect(clients[0]?.ids).toEqual(upTo(6, 3));
    expect(hub.stats().total).toMatchObject({ resumes: 3, clients: 5 });
  });

  test('resumes from a hub that has had no event yet, and from one without a window', async () => {
    const hub = await published(0, { replayItems: 0 });
    const { url } = await serveAt(hub);
    const client = await connect(url, from('e.0'));
    await until(() => hub.stats().clients.length === 1);
    await hub.publish(added(1));
    const other = await connect(url, from('e.1'));
    await hub.shutdown();
    await Promise.all([client.ended, other.ended]);
    expect([client.versions(), other.versions()]).toEqual([['e.1'], []]);
  });

  test.each([
    ['too old', 'e.3'],
    ['of another life', 'dead-beef.7'],
    ['from the future', 'e.8'],
    ['beyond all numbers', `e.${'9'.repeat(200)}`],
    ['named like an object’s inside', '__proto__.1'],
  ])('is told once, with 410, about a version that is %s', async (_what, version) => {
    const hub = await published(7, { replayItems: 3 });
    const { url } = await serveAt(hub);
    const gone = { type: 'ERROR', object: { kind: 'Status', status: 'Failure', code: 410, reason: 'Expired' } };
    if (isWebSocket) {
      const client = await connect(url, from(version));
      expect(await client.ended).toBe('4410');
      expect(client.events()).toMatchObject([gone]);
      expect(client.versions()).toEqual([undefined]);
    } else if (isSse) {
      const client = await connect(url, from(version));
      await hub.publish(added(8));
      await hub.shutdown();
      await client.ended;
      expect(client.events()).toMatchObject([gone, added(8)]);
      expect(client.versions()).toEqual([undefined, 'e.8']);
      // A browser that reconnects from here on misses nothing.
      expect(client.ids).toEqual(['e.7', 'e.8']);
    } else {
      await expect(connect(url, from(version))).rejects.toThrow('410');
      expect(JSON.parse(await text(`${url}/watch${from(version).query}`))).toMatchObject(gone.object);
    }
    expect(hub.stats()).toMatchObject({
      clients: [],
      total: { refusals: { expired: isWebSocket || isSse ? 1 : 2 }, resumes: 0 },
    });
  });

  test.each([
    ['resourceVersion=17', 'resourceVersion'],
    ['resourceVersion=__proto__', 'resourceVersion'],
    ['resourceVersion=e.1e9', 'resourceVersion'],
    ['resourceVersion=e.%D9%A1', 'resourceVersion'],
    ['resourceVersion=e.1&resourceVersion=e.1', 'resourceVersion'],
    [`resourceVersion=${'e'.repeat(300)}.1`, 'resourceVersion'],
    [`x=${'y'.repeat(4_000)}`, 'query'],
    ['timeoutSeconds=soon', 'timeoutSeconds'],
    ['sendInitialEvents=true', 'sendInitialEvents'],
  ])('gets 400 with the reason for ?%s', async (query, what) => {
    const hub = await published(1);
    const { url } = await serveAt(hub);
    const message = expect.stringContaining(what);
    if (isWebSocket) {
      const client = await connect(url, { query: `?${query}` });
      expect(await client.ended).toBe('4400');
      expect(client.events()).toMatchObject([{ type: 'ERROR', object: { code: 400, reason: 'BadRequest', message } }]);
    } else {
      const response = await open(`${url}/watch?${query}`, { accept: isSse ? 'text/event-stream' : '*/*' });
      expect(response.statusCode).toBe(400);
      expect(JSON.parse(String((await response.toArray())[0]))).toMatchObject({ kind: 'Status', code: 400, message });
    }
    await until(() => !('code' in coreOf(hub).reserve('')));
    expect(hub.stats()).toMatchObject({ clients: [], total: { refusals: { badRequest: 1 } } });
  });

  test('is told to reconnect when the server goes away, and told of the end when the stream is over', async () => {
    const [going, over] = [await published(0), await published(0)];
    const clients = [await connect((await serveAt(going)).url), await connect((await serveAt(over)).url)] as const;
    await going.publish(added(1));
    await going.shutdown({ retryAfterMs: 1_000 });
    await over.shutdown();
    // The last chunk is held back; a fetch handler's host would not send it only if it lost what is queued, too.
    expect(await clients[0].ended).toBe(isWebSocket ? '1001' : name.includes('fetch') ? 'complete' : 'broken');
    expect(await clients[1].ended).toBe(isWebSocket ? '1000' : 'complete');
    expect(clients[0].versions()).toEqual(['e.1']);
  });

  test('is told when to reconnect by a last BOOKMARK, if it asked for them, and the end looks the same as without', async () => {
    const hub = await published(0, { random: () => 0.5 });
    const { url } = await serveAt(hub);
    const [asks, plain] = [await connect(url, { query: '?allowWatchBookmarks=true' }), await connect(url)];
    await hub.publish(added(1));
    await hub.shutdown({ retryAfterMs: 8_000 });
    const ends = [await asks.ended, await plain.ended];
    expect(ends[0]).toBe(ends[1]);
    expect(plain.events()).toEqual([added(1)]);
    expect(asks.events().map(({ type }) => type)).toEqual(['BOOKMARK', 'ADDED', 'BOOKMARK']);
    const metadata = { resourceVersion: 'e.1', annotations: { 'watchmux/retry-after-ms': '4000' } };
    expect([asks.events().at(-1), asks.versions().at(-1)]).toEqual([{ type: 'BOOKMARK', object: { metadata } }, 'e.1']);
  });

  test('gets the state first, if there is one, then its end, then later events', async () => {
    const hub = await published(1, { snapshot: () => ['a', 'b'] });
    const { url } = await serveAt(hub);
    const client = await connect(url);
    await until(() => client.texts.length === 3);
    await hub.publish(added(2));
    await hub.shutdown();
    await client.ended;
    expect(client.versions()).toEqual([undefined, undefined, 'e.1', 'e.2']);
    expect(client.events().map(({ type }) => type)).toEqual(['ADDED', 'ADDED', 'BOOKMARK', 'ADDED']);
    if (isSse) expect(client.ids).toEqual(['e.1', 'e.2']);
  });

  test('ends regularly after the requested number of seconds', async () => {
    const clock = new FakeClock();
    const hub = await published(0, { clock });
    const { url } = await serveAt(hub);
    const client = await connect(url, { query: '?timeoutSeconds=1&allowWatchBookmarks=true' });
    await hub.publish(added(1));
    clock.advance(999);
    await until(() => client.texts.length === 2);
    clock.advance(1);
    expect(await client.ended).toBe(isWebSocket ? '1000' : 'complete');
    expect(client.events().map(({ type }) => type)).toEqual(['BOOKMARK', 'ADDED', 'BOOKMARK']);
    expect(client.versions()).toEqual(['e.0', 'e.1', 'e.1']);
  });

  if (isSse)
    test('an EventSource has a version to resume after before any event has arrived', async () => {
      const hub = await published(3, { replay: 2 });
      const first = async (url: string, options: ClientOptions = {}): Promise<string> => {
        const response = await open(`${url}/watch${options.query ?? ''}`, { accept: 'text/event-stream' });
        const [chunk] = (await response.take(1).toArray()) as Buffer[];
        return String(chunk).split('\n\n', 1)[0] as string;
      };
      const { url } = await serveAt(hub);
      // Before what is replayed, or after what it has. Not before a snapshot is through, and not before the ERROR of a version that
      // is too old: one that is cut off right then would come back with this version, and never learn that it has missed events.
      expect(await first(url)).toBe('retry: 2000\nid: e.1\nevent: bookmark\ndata');
      expect(await first(url, from('e.2'))).toBe('retry: 2000\nid: e.2\nevent: bookmark\ndata');
      expect(await first(url, from('x.2'))).toBe('retry: 2000');
      const stateful = await serveAt(await published(3, { snapshot: () => [] }));
      expect(await first(stateful.url)).toBe('retry: 2000');
    });

  test('is Resumable: for any schedule of cuts, nothing is repeated or missing, or there is one 410', async () => {
    const schedule = fc.array(fc.record({ publish: fc.nat(12), read: fc.nat(6), offline: fc.nat(20) }), {
      minLength: 2,
      maxLength: 6,
    });
    await fc.assert(
      fc.asyncProperty(schedule, fc.integer({ min: 4, max: 30 }), async (steps, replayItems) => {
        const hub = new Hub({ epoch: 'e', replayItems, capacity: 50 });
        const { url, server } = await serveAt(hub);
        const published: string[] = [];
        const publish = (count: number): void => {
          for (let i = 0; i < count; i++) {
            hub.tryPublish(added('x'.repeat(published.length % 50)));
            published.push(hub.version);
          }
        };
        const row: Connection[] = [];
        let last: string | undefined;
        for (const step of steps) {
          const client = await connect(url, last === undefined ? {} : from(last)).catch((error: Error) => error);
          const began = published.length;
          publish(step.publish);
          let versions: string[] = [];
          let gone = client instanceof Error;
          if (!(client instanceof Error)) {
            const expected = Math.min(step.read, step.publish);
            await until(() => client.texts.length >= expected || client.events().some(({ type }) => type === 'ERROR'));
            client.close();
            await client.ended;
            gone = client.events()[0]?.type === 'ERROR';
            versions = client.versions().flatMap((version) => version ?? []);
          } else {
            expect(client.message).toBe('410');
          }
          row.push({ ...(last === undefined ? {} : { from: last }), versions: gone ? [] : versions, gone });
          last = gone ? undefined : (versions.at(-1) ?? last);
          // What a client that began anew has not read, it does not know of: it begins anew again.
          if (last === undefined && began === 0) last = 'e.0';
          publish(step.offline);
        }
        server.closeAllConnections();
        const known = ['e.0', ...published];
        expect(checkResumable({ published: known, connections: row })).toBeUndefined();
      }),
      { numRuns: runs(12) },
    );
  });
});
