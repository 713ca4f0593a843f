// A stream that two create at once, with a server that says what the test wants.
import type { StreamConfig } from '@nats-io/jetstream';
import { expect, test, vi } from 'vitest';
import { NatsStream } from '../../src/nats/index.ts';

const missing = Object.assign(new Error('stream not found'), { name: 'StreamNotFoundError' });

test('has one identity, also where the server answers before it knows when the stream was created', async () => {
  vi.useFakeTimers();
  const stream = new NatsStream({ servers: '127.0.0.1:4222', stream: 'chat', create: {} });
  const info = (created: string, config: Partial<StreamConfig>) => ({
    created,
    config,
    state: { messages: 0, first_seq: 0, last_seq: 0, last_ts: '0001-01-01T00:00:00Z' },
  });
  const unborn = '0001-01-01T00:00:00Z';
  const born = '2026-12-01T02:26:24.000000001Z';
  const config = { retention: 'limits', max_msgs_per_subject: -1, subjects: ['chat', 'chat.>'], duplicate_window: 1e9 } as never;
  const asked: string[] = [];
  const streams = {
    info: async () => {
      asked.push('info');
      if (asked.length === 1) throw missing;
      return info(asked.length < 4 ? unborn : born, config);
    },
    add: async () => {
      asked.push('add');
      return info(unborn, config);
    },
  };
  const consumers = { add: async () => ({ name: 'c' }), delete: async () => true };
  const nats = { isClosed: () => false, publish: () => {}, subscribe: () => ({ unsubscribe: () => {} }) };
  Object.assign(stream, {
    link: {
      closed: new AbortController().signal,
      connection: async () => ({ nats, manager: { streams, consumers } }),
      answered: (answer: Promise<unknown>) => answer,
      onLoss: () => () => true,
      close: async () => {},
    },
  });
  const ended = new AbortController();
  const following = stream.follow({ last: 0 }, ended.signal);
  await vi.advanceTimersByTimeAsync(1_000);
  const position = (await following)?.position;
  expect(position).toStrictEqual({ epoch: (BigInt(Date.parse(born)) * 1_000_000n + 1n).toString(36), sequence: 0, mark: '0' });
  expect(asked).toEqual(['info', 'add', 'info', 'info', 'info']);
  ended.abort();
  vi.useRealTimers();
});
