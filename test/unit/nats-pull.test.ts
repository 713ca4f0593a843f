// A request for messages to a consumer of JetStream, with a server that says what the test wants.
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Pull } from '../../src/nats/connection.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function start({ items, waits }: { items: number; waits: boolean }): {
  pull: Pull;
  requests: unknown[];
  send(data: string): void;
  say(code: number, description?: string): void;
} {
  const requests: unknown[] = [];
  let inbox = '';
  let hear: (error: Error | null, message: Msg) => void = () => {};
  const nats = {
    isClosed: () => false,
    publish: (_: string, payload: string) => void requests.push(JSON.parse(payload)),
    subscribe: (subject: string, { callback }: { callback: typeof hear }) => {
      inbox = subject;
      hear = callback;
      return { unsubscribe: () => {} };
    },
  } as unknown as NatsConnection;
  const pull = new Pull({ nats, subject: 'next', remove: () => {} } as never, { items, bytes: 1_000 }, waits);
  return {
    pull,
    requests,
    send: (data) => hear(null, { subject: 'events', data } as unknown as Msg),
    say: (code, description = '') => hear(null, { subject: inbox, headers: { code, description } } as unknown as Msg),
  };
}

test('a request without an answer fails when not even a heartbeat has come for 15 s', async () => {
  const { pull, say } = start({ items: 2, waits: true });
  vi.advanceTimersByTime(14_999);
  say(100);
  vi.advanceTimersByTime(14_999);
  const next = pull.next();
  vi.advanceTimersByTime(1);
  await expect(next).rejects.toThrow('the server was silent for 15000 ms');
});

test('a reader may take as long as it wants when nothing is asked for, and asks for more then', async () => {
  const { pull, requests, send } = start({ items: 2, waits: true });
  send('a');
  send('b');
  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(3_600_000);
  expect(await pull.next()).toHaveLength(2);
  expect(requests).toHaveLength(1);
  pull.more();
  expect(requests).toHaveLength(2);
  send('c');
  expect(await pull.next()).toHaveLength(1);
  vi.advanceTimersByTime(15_000);
  await expect(pull.next()).rejects.toThrow('silent');
});

test.each([
  ['its time is over', 408, 'Request Timeout'],
  ['it has given enough bytes', 409, 'Message Size Exceeds MaxBytes'],
])('the same after a request that ends because %s', async (_, code, description) => {
  const { pull, requests, send, say } = start({ items: 9, waits: true });
  send('a');
  say(code, description);
  vi.advanceTimersByTime(3_600_000);
  expect(await pull.next()).toHaveLength(1);
  pull.more();
  expect(requests).toHaveLength(2);
  say(code, description); // nothing is left to be read: it asks again by itself
  expect(requests).toHaveLength(3);
  pull.close();
  expect(vi.getTimerCount()).toBe(0);
});

test('without waiting, it ends with what there is', async () => {
  const { pull, send, say } = start({ items: 9, waits: false });
  send('a');
  say(404, 'No Messages');
  expect(await pull.next()).toHaveLength(1);
  expect(await pull.next()).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});

test('a consumer that is gone is a failure', async () => {
  const { pull, say } = start({ items: 9, waits: true });
  say(409, 'Consumer Deleted');
  await expect(pull.next()).rejects.toThrow('the consumer says: 409 Consumer Deleted');
});
