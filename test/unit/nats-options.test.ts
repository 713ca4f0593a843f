// What a stream of NATS takes, and how topics become subjects. None of it connects.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NatsStream, type NatsStreamOptions } from '../../src/nats/index.ts';
import { toSubject, toTopics } from '../../src/nats/nats-options.ts';
import { millisecondsOf } from '../../src/nats/nats-stream.ts';

describe('the options of a stream', () => {
  const good = { servers: '127.0.0.1:4222', stream: 'chat' };

  test.each<[string, object, string]>([
    ['no servers', { servers: [] }, 'servers: expected an address, or an array of them'],
    ['a number for servers', { servers: 4222 }, 'servers: expected an address'],
    ['a name with a dot', { stream: 'a.b' }, 'stream: expected 1 to 128 letters, digits, - or _, got "a.b"'],
    ['no name', { stream: undefined }, 'stream: expected 1 to 128'],
    ['a wildcard', { subject: 'chat.>' }, 'subject: expected tokens of letters'],
    ['an empty token', { subject: 'chat..a' }, 'subject: expected tokens of letters'],
    ['no time', { publishTimeoutMs: 0 }, 'publishTimeoutMs: expected a whole number >= 1, got 0'],
    ['a limit of 0', { create: { maxItems: 0 } }, 'maxItems: expected a whole number >= 1, got 0'],
    ['another storage', { create: { storage: 'tape' } }, 'storage: expected file or memory, got "tape"'],
    ['a misspelt option', { sream: 'a' }, 'unknown option sream'],
    ['a misspelt limit', { create: { maxAge: 1 } }, 'unknown option maxAge'],
  ])('%s is refused', (_what, wrong, message) => {
    expect(() => new NatsStream({ ...good, ...wrong } as NatsStreamOptions)).toThrow(message);
  });

  test('a stream that was never used closes, more than once', async () => {
    const stream = new NatsStream(good);
    await stream.close();
    await stream.close();
    await expect(stream.publish({ json: '{}', topics: [], id: 'a' })).rejects.toMatchObject({ code: 'CLOSED' });
    await expect(stream.follow({ last: 0 }, new AbortController().signal)).rejects.toMatchObject({ code: 'CLOSED' });
  });
});

describe('subjects', () => {
  test.each([
    [[], 'chat'],
    [['lobby'], 'chat.lobby'],
    [['a.b', '*', '>', ''], 'chat.a=2Eb.=2A.=3E.='],
    [['ä =%'], 'chat.=C3=A4=20=3D=25'],
  ])('of %j', (topics, subject) => {
    expect(toSubject('chat', topics)).toBe(subject);
    expect(toTopics('chat', subject)).toEqual(topics);
  });

  test('any topics come back, and stay below the stream in tokens of their own', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme', maxLength: 12 }), { maxLength: 6 }), (topics) => {
        const subject = toSubject('a.chat', topics);
        expect(subject.split('.')).toHaveLength(2 + topics.length);
        expect(subject).toMatch(/^a\.chat(\.[\w=-]+)*$/);
        expect(toTopics('a.chat', subject)).toEqual(topics);
      }),
    );
  });

  test('those of others are taken as they are', () => {
    expect(toTopics('chat', 'chat.=ZZ.a=2eb.=41.%41.=C3')).toEqual(['=ZZ', 'a=2eb', '=41', '%41', '=C3']);
    expect(['chat', 'chats.a', 'xxxx.a', 'cha', 'chat.'].map((subject) => toTopics('chat', subject))).toEqual([
      [],
      undefined,
      undefined,
      undefined,
      [''],
    ]);
  });

  test('what cannot be a subject is refused', () => {
    expect(() => toSubject('chat', ['\ud800'])).toThrow('topics: expected text without lone surrogates');
    expect(() => toSubject('chat', ['x'.repeat(1_020)])).toThrow('at most 1024 characters');
  });
});

test('a time is cut off after its milliseconds', () => {
  const base = Date.parse('2026-11-23T16:23:59Z');
  for (const [fraction, ms] of [
    ['.424831858', 424],
    ['.9999999', 999],
    ['.05', 50],
    ['', 0],
  ] as const) {
    expect(millisecondsOf(`2026-11-23T16:23:59${fraction}Z`)).toBe(base + ms);
  }
});
