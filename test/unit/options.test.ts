import { describe, expect, test } from 'vitest';
import { ApiServer } from '../../src/apiserver/server.ts';
import { toCollection } from '../../src/bridge/client/collection.ts';
import { connect } from '../../src/bridge/client/connect.ts';
import { toStore } from '../../src/bridge/client/store.ts';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { apply, removeOwner, retryOnConflict, setCondition, setOwner } from '../../src/operator/index.ts';
import { MemoryStorage } from '../../src/storage/memory/memory-storage.ts';
import { systemClock } from '../../src/watch/clock.ts';
import { checkOptions } from '../../src/watch/errors.ts';
import { thrown } from './support.ts';

const check = (options: unknown): object =>
  checkOptions(options as { capacity?: number; overflow?: string; keyOf?: unknown }, ['capacity', 'overflow', 'keyOf']);

describe('options', () => {
  test.each([
    ['capacitty', 'capacity'],
    ['Capacity', 'capacity'],
    ['capcity', 'capacity'],
    ['overflowPolicy', 'overflow'],
    ['over', 'overflow'],
    ['key', 'keyOf'],
  ])('an unknown one is refused, with the nearest known one: %.20s', (name, nearest) => {
    const error = thrown(() => check({ overflow: 'wait', [name]: 3 }));
    expect(error).toMatchObject({
      name: 'WatchError',
      code: 'INVALID_ARGUMENT',
      message: `unknown option ${name.slice(0, 80)}: did you mean ${nearest}?`,
    });
  });

  test.each(['', 'heartbeatMs', 'k'.repeat(1_000_000)])(
    'one that is like none is refused, with all known ones: %.20s',
    (name) => {
      expect(thrown(() => check({ [name]: 3 }))).toMatchObject({
        message: `unknown option ${name.slice(0, 80)}: expected one of capacity, overflow, keyOf`,
      });
    },
  );

  test.each([5, 'x', {}, true, () => {}, new AbortController()])(
    'a signal and a clock are what they should be: not %s',
    (wrong) => {
      const checked = (options: object): unknown => thrown(() => checkOptions(options as never, ['signal', 'clock'] as never));
      const code = 'INVALID_ARGUMENT';
      expect(checked({ signal: wrong })).toMatchObject({
        code,
        message: expect.stringMatching(/^signal: expected an AbortSignal, got /),
      });
      expect(checked({ clock: wrong })).toMatchObject({ code, message: expect.stringMatching(/^clock: expected a Clock, got /) });
    },
  );

  test('a signal, a clock and nothing instead of them are taken', () => {
    for (const options of [{ signal: AbortSignal.abort(), clock: systemClock }, { signal: null }, { clock: undefined }]) {
      expect(checkOptions(options, ['signal', 'clock'] as never)).toBe(options);
    }
  });

  test.each([
    ['known ones', { capacity: 1, overflow: 'wait' }],
    ['none', {}],
    ['an unknown one of undefined', { capacity: 1, capacitty: undefined }],
    ['without a prototype', Object.assign(Object.create(null), { capacity: 1 })],
    ['inherited ones', Object.create({ capacity: 1, more: 2 })],
    ['a symbol', { [Symbol('own')]: 1 }],
    [
      'an instance of a class with members of its own',
      new (class {
        readonly capacity = 1;
        readonly server = 'a';
      })(),
    ],
  ])('%s: taken as they are', (_what, options) => {
    expect(check(options)).toBe(options);
  });

  test('unknown ones without a prototype, or called __proto__, are refused as well', () => {
    expect(() => check(Object.assign(Object.create(null), { capacitty: 1 }))).toThrow(
      'unknown option capacitty: did you mean capacity?',
    );
    expect(() => check(JSON.parse('{"__proto__":1}'))).toThrow('unknown option __proto__');
  });

  test.each([[null], [5], ['wait'], [true], [() => 1]])('anything but an object is refused: %s', (options) => {
    expect(thrown(() => check(options))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(/^options: expected an object, got /),
    });
  });

  test('are checked by the broadcaster and by its watches, and their values are read from where they are', () => {
    expect(() => new Broadcaster({ capacitty: 3 } as object)).toThrow('unknown option capacitty: did you mean capacity?');
    expect(() => new Broadcaster().watch({ toppics: ['a'] } as object)).toThrow('unknown option toppics: did you mean topics?');
    expect(() => new Broadcaster(null as unknown as object)).toThrow('options: expected an object, got null');
    const inherited = Object.create({ capacity: -1 }) as object;
    expect(() => new Broadcaster(inherited)).toThrow('capacity: expected a whole number >= 0, got -1');
    class Settings {
      get capacity(): number {
        return -2;
      }
    }
    expect(() => new Broadcaster(new Settings())).toThrow('capacity: expected a whole number >= 0, got -2');
  });
});

test('numbers and functions that are none are refused by the name of their option', () => {
  for (const name of ['capacity', 'incoming', 'maxPending', 'replay', 'replayBytes']) {
    const options = { sizeOf: () => 1, [name]: -1 };
    expect(() => new Broadcaster(options as object)).toThrow(`${name}: expected a whole number >= 0, got -1`);
  }
  for (const name of ['keyOf', 'topicsOf', 'sizeOf'])
    expect(() => new Broadcaster({ [name]: 1 } as object)).toThrow(new RegExp(`^${name}: expected a function`));
  for (const name of ['capacity', 'replay', 'after'])
    expect(() => new Broadcaster({ replay: 1 }).watch({ [name]: -1 } as object)).toThrow(`${name}: expected a whole number`);
  for (const name of ['filter', 'onGap'])
    expect(() => new Broadcaster().watch({ [name]: 1 } as object)).toThrow(new RegExp(`^${name}: expected a function`));
});

test('a watch that begins in the past is refused by name if nothing is kept, and told which position is not kept', () => {
  for (const name of ['after', 'replay'])
    expect(() => new Broadcaster().watch({ [name]: 3 } as object)).toThrow(
      new RegExp(`^${name}: expected none, because .* got 3`),
    );
  const broadcaster = new Broadcaster({ replay: 1 });
  for (let at = 0; at < 3; at++) broadcaster.tryPublish({ type: 'ADDED', object: { at } });
  const message = 'the events since position 1 are not kept';
  expect(broadcaster.watch({ after: 1 }).tryNext()).toMatchObject({ type: 'ERROR', object: { code: 410, message } });
});

test('a broadcaster that topicsOf has shut down says who was refused', async () => {
  const one = { type: 'ADDED', object: {} };
  const byTopics: Broadcaster = new Broadcaster({ topicsOf: () => void byTopics.shutdown() });
  expect(() => byTopics.tryPublish(one)).toThrow('publish: the broadcaster is shut down');
  await expect(byTopics.publish(one)).rejects.toThrow('publish: the broadcaster is shut down');
  expect(() => byTopics.watch()).toThrow('watch: the broadcaster is shut down');
});

describe('what is no event', () => {
  test.each([['hello'], [5], [{}], [{ type: 5, object: 1 }], [{ object: 1 }], [[]], [null], [undefined]])(
    '%j is refused',
    async (event) => {
      const broadcaster = new Broadcaster();
      const watch = broadcaster.watch();
      const fault = {
        code: 'INVALID_ARGUMENT',
        message: expect.stringMatching(/^event: expected an event, whose type is a string/),
      };
      expect(thrown(() => broadcaster.tryPublish(event as never))).toMatchObject(fault);
      await expect(broadcaster.publish(event as never)).rejects.toMatchObject(fault);
      expect(watch.queued).toBe(0);
    },
  );
});

describe('null', () => {
  const storage = new MemoryStorage();
  const server = new ApiServer({
    storage,
    resources: [{ group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' }],
  });
  const orders = server.resource('orders.example.com');
  const order = { metadata: { name: 'a', namespace: 'default' } };
  const none = null as never;

  test.each<[string, () => unknown, string]>([
    ['options of connect', () => connect('http://127.0.0.1:1', none), 'options: expected an object'],
    ['options of toStore', () => toStore('http://127.0.0.1:1', none), 'options: expected an object'],
    ['options of toCollection', () => toCollection('http://127.0.0.1:1', none), 'options: expected an object'],
    ['options of a list', () => orders.list(none), 'options: expected an object'],
    ['options of a watch', () => orders.watch(none), 'options: expected an object'],
    ['options of apply', () => apply(orders, order, none), 'fieldManager: expected '],
    ['condition', () => setCondition({}, none), 'condition: expected a Condition'],
    ['owner', () => setOwner(order, none), 'owner: expected an object'],
    ['owner that is removed', () => removeOwner(order, none), 'owner: expected an object'],
    ['work to repeat', () => retryOnConflict(none), 'work: expected a function'],
  ])('as %s is refused by name', async (_, use, message) => {
    const error = await (async () => use())().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(`^${message}`) });
  });
});
