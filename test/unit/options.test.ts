import { describe, expect, test } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';
import { known } from '../../src/watch/options.ts';
import { thrown } from './support.ts';

const check = (options: unknown): object =>
  known(options as { capacity?: number; overflow?: string; keyOf?: unknown }, ['capacity', 'overflow', 'keyOf']);

describe('options', () => {
  test.each([
    ['capacitty', 'capacity'],
    ['Capacity', 'capacity'],
    ['capcity', 'capacity'],
    ['overflowPolicy', 'overflow'],
    ['over', 'overflow'],
    ['key', 'keyOf'],
    ['', 'keyOf'],
    ['k'.repeat(1_000_000), 'keyOf'],
  ])('an unknown one is refused, with the nearest known one: %.20s', (name, nearest) => {
    const error = thrown(() => check({ overflow: 'wait', [name]: 3 }));
    expect(error).toMatchObject({
      name: 'WatchError',
      code: 'INVALID_ARGUMENT',
      message: `unknown option ${name.slice(0, 80)}: did you mean ${nearest}?`,
    });
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
