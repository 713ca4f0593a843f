import { describe, expect, it } from 'vitest';
import { WATCH_CONTRACT } from '../../src/testing/contract.ts';
import { IMPLEMENTERS } from './watch.contract.ts';

describe.each(IMPLEMENTERS)('the contract of a watch, $name', ({ open, lacks }) => {
  for (const { name, needs, run } of WATCH_CONTRACT) {
    if (needs === undefined || !lacks.includes(needs)) it(name, () => run(open));
    else {
      it(`lacks ${needs}, and says so: ${name}`, async () => {
        await expect(run(open)).rejects.toThrow(/^watch contract: expected/);
      });
    }
  }
});

describe('the contract', () => {
  const [first] = IMPLEMENTERS;
  const broken: [string, string, (watch: ReturnType<(typeof IMPLEMENTERS)[0]['open']>['watch']) => object][] = [
    ['swallows an event', 'delivers what', (watch) => ({ next: () => watch.next().then(() => watch.next()) })],
    ['never settles return', 'return settles', () => ({ return: () => new Promise(() => {}) })],
    ['does not stop', 'stop and return may', () => ({ stop() {}, return: async () => ({ done: true, value: undefined }) })],
    ['throws away at stop', 'stop leaves', (watch) => ({ stop: () => void watch.return() })],
    ['does not count what it discards', 'return discards', () => ({ dropped: 0 })],
    ['promises what it has not', 'queued promises', () => ({ queued: 7 })],
  ];

  it.each(broken)('rejects a watch that %s', async (_, title, wrong) => {
    const rule = WATCH_CONTRACT.find(({ name }) => name.startsWith(title));
    const open = (): ReturnType<(typeof IMPLEMENTERS)[0]['open']> => {
      const subject = (first as (typeof IMPLEMENTERS)[0]).open();
      const over = wrong(subject.watch);
      const watch = new Proxy(subject.watch, {
        get: (target, key) => {
          const value: unknown = Reflect.get(key in over ? over : target, key);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
      return { ...subject, watch };
    };
    await expect(rule?.run(open)).rejects.toThrow(/^watch contract: expected/);
  });
});
