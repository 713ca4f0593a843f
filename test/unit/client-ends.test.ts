// The end of a client's watch: by its reader, a signal, user code that throws, and regularly by the server.
import { describe, expect, test } from 'vitest';
import { connect, type FetchLike, type WebSocketConstructor } from '../../src/bridge/client.ts';
import { CLOSE_CODES, CLOSE_REASONS, toRetryReason } from '../../src/bridge/protocol.ts';
import { WATCH_CONTRACT } from '../../src/testing/contracts/contract.ts';
import { ListenerCount } from '../../src/testing/fakes/fake-clock.ts';
import { FakeNetwork, KINDS, settle } from './client-network.ts';
import { at, type Event, event, open, range } from './client-rig.ts';
import { fate, thrown } from './support.ts';

describe.each(KINDS)('connect over %s', (kind) => {
  test('return discards and counts queued events, and keeps the version of what was read', async () => {
    const { watch, accept } = open(kind);
    await accept(...range(1, 5));
    watch.tryNext();
    await watch.return();
    expect([watch.queued, watch.dropped, watch.resourceVersion]).toEqual([0, 3, at(1)]);
    expect(watch.tryNext()).toBeUndefined();
  });

  test.each([
    ['stop', (watch: { stop(): void }) => watch.stop()],
    ['return', (watch: { return(): unknown }) => void watch.return()],
  ])('%s before the first byte settles every read and leaves nothing', async (_, end) => {
    const abort = new AbortController();
    const listeners = new ListenerCount(abort.signal);
    const { watch, clock, network } = open(kind, { signal: abort.signal });
    const reads = [fate(watch.next()), fate(watch.batches().next()), fate(watch.next())];
    await settle();
    expect(listeners.count).toBe(1);
    end(watch);
    await settle();
    expect(reads.map(({ state, value }) => [state, value?.done])).toEqual(Array(3).fill(['resolved', true]));
    expect([clock.pending, listeners.count, network.link.closed]).toEqual([0, 0, true]);
  });

  test('an abort stops it in every state', async () => {
    for (const state of ['connecting', 'open', 'waiting'] as const) {
      const abort = new AbortController();
      const { watch, clock, accept, network, expectOver } = open(kind, { signal: abort.signal, resourceVersion: at(1) });
      await settle();
      if (state === 'open') await accept();
      if (state === 'waiting') network.link.cut();
      await settle();
      expect(watch.state).toBe(state);
      const read = fate(watch.next());
      abort.abort();
      await settle();
      expect(read.value).toEqual({ done: true, value: undefined });
      expect(clock.pending).toBe(0);
      await expectOver();
    }
  });

  test('an aborted signal throws its reason, and no connection is opened', () => {
    const network = new FakeNetwork();
    const reason = new Error('no');
    expect(thrown(() => connect('http://h/', { ...network.options(kind), signal: AbortSignal.abort(reason) }))).toBe(reason);
    expect(network.links).toEqual([]);
  });

  test('nothing is delivered after the end', async () => {
    const { watch, accept, network } = open(kind);
    await accept(event(1));
    watch.stop();
    network.link.send(event(2));
    network.link.cut();
    await settle();
    expect(watch.queued).toBe(1);
    expect(watch.tryNext()).toEqual(event(1));
    expect(network.links).toHaveLength(1);
  });

  test('stopped by user code while it connects, such as a custom fetch: the new connection is closed, too', async () => {
    let stop = (): void => {};
    const network = new FakeNetwork();
    const { fetch, WebSocket = class {} as never } = network.options(kind);
    class Stopping extends WebSocket {
      constructor(...request: ConstructorParameters<WebSocketConstructor>) {
        super(...request);
        stop();
      }
    }
    const stopping: FetchLike = (...request) => {
      stop();
      return (fetch as FetchLike)(...request);
    };
    const { watch, clock } = open(kind, { fetch: stopping, WebSocket: Stopping });
    await settle();
    network.link.accept();
    await settle();
    network.link.send(event(1));
    network.link.cut();
    await settle();
    stop = () => watch.stop();
    clock.advance(500);
    await settle();
    expect(network.links).toHaveLength(2);
    expect([watch.state, network.link.closed, clock.pending]).toEqual(['closed', true, 0]);
    network.link.accept();
    await settle();
    network.link.send(event(2));
    await settle();
    expect([watch.queued, watch.tryNext()]).toEqual([1, event(1)]);
  });

  test('stopped by its codec: the event being decoded is not queued', async () => {
    const decode = (frame: Uint8Array): Event => {
      const decoded = JSON.parse(new TextDecoder().decode(frame)) as Event;
      if (decoded.object === 2) watch.stop();
      return decoded;
    };
    const { watch, accept } = open(kind, { codec: { decode } });
    await accept(event(1), event(2), event(3));
    expect([watch.queued, watch.tryNext(), watch.tryNext()]).toEqual([1, event(1), undefined]);
    expect(watch.resourceVersion).toBe(at(1));
  });

  test('an onStateChange that throws ends the watch, and its reader gets the error', async () => {
    const fault = new Error('callback');
    const told: string[] = [];
    const { watch, network, clock } = open(kind, {
      onStateChange: (state) => {
        told.push(state);
        throw fault;
      },
    });
    await settle();
    const read = fate(watch.next());
    network.link.accept();
    await settle();
    expect(read).toMatchObject({ state: 'rejected', error: fault });
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    expect([watch.state, clock.pending, network.link.closed]).toEqual(['closed', 0, true]);
    expect(told).toEqual(['open']);
  });

  test('an onGap that throws ends the watch, and its reader gets the error', async () => {
    const fault = new Error('gap');
    const { watch, accept } = open(kind, {
      capacity: 1,
      overflow: 'drop-oldest',
      onGap: () => {
        throw fault;
      },
    });
    await accept(...range(1, 4));
    expect(thrown(() => watch.tryNext())).toBe(fault);
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    expect(watch.dropped).toBe(3);
  });

  test.each(['onStateChange', 'onGap'] as const)(
    'an async %s that rejects ends the watch, and its reader gets the error',
    async (name) => {
      const fault = new Error('callback');
      const { watch, accept, clock, network } = open(kind, {
        ...{ capacity: 1, overflow: 'drop-oldest' },
        [name]: async () => {
          throw fault;
        },
      });
      await accept(...range(1, 4));
      const read = async (): Promise<unknown> => (await watch.next()).value;
      const seen = [await read().catch((error) => error), await read().catch((error) => error)];
      expect(seen).toContain(fault);
      expect(await watch.next()).toEqual({ done: true, value: undefined });
      expect([watch.state, clock.pending, network.link.closed]).toEqual(['closed', 0, true]);
    },
  );
});

describe('ends', () => {
  test('HTTP and SSE: resume after a regular end, unless reconnectOnEnd is false', async () => {
    for (const kind of ['http', 'sse'] as const) {
      for (const reconnectOnEnd of [true, false]) {
        const { network, watch, accept } = open(kind, { reconnectOnEnd });
        await accept(event(1));
        network.link.end();
        await settle();
        expect(watch.state).toBe(reconnectOnEnd ? 'waiting' : 'closed');
        await watch.return();
      }
    }
  });

  test('without a version there is nothing to resume: the end is final', async () => {
    for (const kind of ['http', 'sse'] as const) {
      const { network, accept, read, expectOver } = open(kind);
      await accept();
      network.link.end();
      expect(await read()).toEqual([]);
      await expectOver();
    }
  });

  test('within a snapshot it is not the end of the stream: one 410, unless reconnectOnEnd is false', async () => {
    for (const kind of ['http', 'sse'] as const) {
      for (const reconnectOnEnd of [true, false]) {
        const { network, accept, read, expectOver } = open(kind, { reconnectOnEnd });
        await accept({ type: 'ADDED', object: 2 });
        network.link.end();
        expect(await read()).toEqual([2, ...(reconnectOnEnd ? [410] : [])]);
        await expectOver();
      }
    }
  });

  test('nor within a folded batch, from before which the client resumes, unless reconnectOnEnd is false', async () => {
    for (const kind of ['http', 'sse'] as const) {
      for (const reconnectOnEnd of [true, false]) {
        const { network, clock, accept, read, watch } = open(kind, { reconnectOnEnd });
        await accept(event(1), { type: 'MODIFIED', object: 2 });
        network.link.end();
        expect(await read()).toEqual([1, 2]);
        expect(watch.state).toBe(reconnectOnEnd ? 'waiting' : 'closed');
        clock.advance(500);
        await settle();
        expect(network.link.url.searchParams.get('resourceVersion')).toBe(reconnectOnEnd ? at(1) : null);
        await watch.return();
      }
    }
  });

  test('within a snapshot that the server ends by time, too', async () => {
    const { network, accept, read, expectOver } = open('ws');
    await accept({ type: 'ADDED', object: 1 });
    network.link.end(CLOSE_CODES.timeout, CLOSE_REASONS.timeout);
    expect(await read()).toEqual([1, 410]);
    await expectOver();
  });

  test('HTTP: a last line without a line end counts if it can be decoded; otherwise the response was cut off', async () => {
    for (const [text, expected, state] of [
      ['{"type":"A","object":2}', [1, 2], 'closed'],
      ['{"type":"A","obj', [1], 'waiting'],
    ] as const) {
      const { network, accept, read, watch } = open('http', { reconnectOnEnd: false });
      await accept(event(1), text);
      network.link.end();
      expect(await read()).toEqual(expected);
      expect(watch.state).toBe(state);
      await watch.return();
    }
  });

  test('SSE: the response was cut off if it ends within a message or a line', async () => {
    for (const [text, state] of [
      ['data: {"type":"A","object":2}', 'waiting'],
      ['data: {"type":"A","object":2}\n', 'waiting'],
      ['id: 7', 'waiting'],
      ['id: 7\nretry: 10\n: bye\n', 'closed'],
    ] as const) {
      const { network, accept, read, watch } = open('sse', { reconnectOnEnd: false });
      await accept(event(1), text);
      network.link.end();
      expect(await read()).toEqual([1]);
      expect([text, watch.state]).toEqual([text, state]);
      await watch.return();
    }
  });

  test('HTTP: the answer of a server of something else is no complete stream, with or without a line end', async () => {
    for (const text of ['{"items":[]}', '{"items":[]}\n']) {
      const { network, accept, watch, expectOver } = open('http');
      await accept(text);
      network.link.end();
      const message = expect.stringContaining('no event: {"items":[]}');
      expect((await watch.next()).value).toMatchObject({ type: 'ERROR', object: { code: 422, message } });
      await expectOver();
    }
  });

  test('HTTP: an event that was cut off, however its connection has ended, is no fault of the server', async () => {
    const { network, accept, watch } = open('http', { resourceVersion: at(1) });
    await accept('{"type":"ADDED","obj');
    network.link.end();
    await settle();
    expect(watch.state).toBe('waiting');
    await watch.return();
  });

  test.each([
    [CLOSE_CODES.complete, CLOSE_REASONS.complete, 'closed', undefined],
    [CLOSE_CODES.timeout, CLOSE_REASONS.timeout, 'waiting', 500],
    [CLOSE_CODES.goingAway, toRetryReason(4_000), 'waiting', 4_500],
    [CLOSE_CODES.failed, CLOSE_REASONS.failed, 'waiting', 500],
    [CLOSE_CODES.tooLarge, '', 'waiting', 500],
    [CLOSE_CODES.expired, CLOSE_REASONS.expired, 'closed', undefined],
    [CLOSE_CODES.badRequest, CLOSE_REASONS.badRequest, 'closed', undefined],
    [4403, '', 'closed', undefined],
    [4503, '', 'waiting', 500],
    [1006, '', 'waiting', 500],
  ])('WebSocket close %i %s: %s', async (code, reason, state, delayMs) => {
    const { network, accept, watch, details } = open('browser');
    await accept(event(1));
    network.link.end(code, reason);
    expect(watch.state).toBe(state);
    expect(details.at(-1)?.delayMs).toBe(delayMs);
    await watch.return();
  });

  test("SSE: retry is the server's hint, and a comment is a sign of life", async () => {
    const { network, accept, clock, watch, details } = open('sse', { resourceVersion: at(1) });
    await accept('retry: 2000\n\n', ': hello\n\n', ...['x', '1e3', '-5', '0x9', ''].map((rubbish) => `retry: ${rubbish}\n\n`));
    network.link.cut();
    await settle();
    expect(details.at(-1)?.delayMs).toBe(2_500);
    clock.advance(2_500);
    await accept(': hello\n\n');
    clock.advance(149_999);
    expect(watch.state).toBe('open');
    clock.advance(1);
    expect(watch.state).toBe('waiting');
    await watch.return();
  });
});

describe('the contract of a watch, over a WebSocket', () => {
  test.each(WATCH_CONTRACT.map((each) => [each.name, each] as const))('%s', async (_, { run }) => {
    await run(() => {
      const network = new FakeNetwork();
      const watch = connect<Event>('http://h/', network.options('browser'));
      network.link.accept();
      const send = (number: number): Event => {
        network.link.send(event(number + 1));
        return event(number + 1);
      };
      return { watch, send: send as never, end: () => network.link.end() } as never;
    });
  });
});
