// A watch of a hub in its own process: where it begins, by version.
import { expect, test } from 'vitest';
import { Hub } from '../../src/bridge/hub/hub.ts';
import { FakeSource } from '../../src/testing/fakes/fake-source.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { added } from './fake-sink.ts';

/** What it delivers, up to the 410 or to the event 'last', which is published now. An ERROR is its code. */
async function readOf(hub: Hub, after: string): Promise<unknown[]> {
  const watch = hub.watch({ after });
  await hub.publish(added('last'));
  const got: unknown[] = [];
  while (got.at(-1) !== 'last' && got.at(-1) !== 410) {
    const { value } = (await watch.next()) as { value: WatchEvent };
    got.push(value.type === 'ERROR' ? (value.object as { code: number }).code : value.object);
  }
  await watch.return();
  return got;
}

async function hubOf(replayItems: number): Promise<Hub> {
  const hub = new Hub({ epoch: 'e', replayItems });
  for (let i = 1; i <= 5; i++) await hub.publish(added(i));
  return hub;
}

test.each<[string, string, number, unknown[]]>([
  ['the oldest that is kept', 'e.2', 3, [3, 4, 5, 'last']],
  ['one before that', 'e.1', 3, [410]],
  ['one in between', 'e.4', 3, [5, 'last']],
  ['the last', 'e.5', 3, ['last']],
  ['the last, of a hub that keeps none', 'e.5', 0, ['last']],
  ['the one before, of a hub that keeps none', 'e.4', 0, [410]],
  ['one that is yet to come', 'e.9', 3, [410]],
  ['one of another hub', 'x.5', 3, [410]],
  ['one without a number', 'e.x', 3, [410]],
  ['no version at all', 'e', 3, [410]],
])('after %s', async (_, after, replayItems, expected) => {
  expect(await readOf(await hubOf(replayItems), after)).toEqual(expected);
});

test('topics need a hub that has some; then it delivers what has one of them', async () => {
  expect(() => new Hub().watch({ topics: ['even'] })).toThrow('none, because the hub has no topicsOf');
  const hub = new Hub({ topicsOf: ({ object }) => ((object as number) % 2 === 0 ? 'even' : 'odd') });
  const watch = hub.watch({ topics: ['even'] });
  for (let i = 1; i <= 4; i++) await hub.publish(added(i));
  expect([(await watch.next()).value, (await watch.next()).value]).toMatchObject([{ object: 2 }, { object: 4 }]);
  await watch.return();
});

test.each([1_000, 8])(
  'one that is behind when the hub shuts down gets the rest, or is told that it is lost (%i are kept)',
  async (replayItems) => {
    const hub = new Hub({ epoch: 'e', replayItems, topicsOf: ({ object }) => (object === 13 ? 'no' : 'yes') });
    const [watch, chosen] = [hub.watch({ capacity: 5 }), hub.watch({ capacity: 5, topics: ['yes'] })];
    for (let i = 1; i <= 20; i++) await hub.publish(added(i));
    await hub.shutdown();
    const read = async (from: typeof watch): Promise<unknown[]> => {
      const got: unknown[] = [];
      for await (const { type, object } of from) got.push(type === 'ERROR' ? (object as { code: number }).code : object);
      return got;
    };
    const all = Array.from({ length: 20 }, (_, at) => at + 1);
    expect(await read(watch)).toEqual(replayItems === 8 ? [1, 2, 3, 4, 5, 410] : all);
    const some = all.filter((at) => at !== 13);
    expect(await read(chosen)).toEqual(replayItems === 8 ? [1, 2, 3, 4, 5, 410] : some);
  },
);

test('one with topics goes on after it was behind, if what it has not read is kept, however old what it has read is', async () => {
  const topicsOf = ({ object }: WatchEvent): string => String(object).slice(0, 1);
  const hub = new Hub({ replayItems: 10, topicsOf });
  const watch = hub.watch({ capacity: 2, topics: ['x'] });
  for (const at of [1, 2]) await hub.publish(added(`x${at}`));
  for (let at = 1; at <= 50; at++) await hub.publish(added(`y${at}`));
  for (const at of [3, 4, 5]) await hub.publish(added(`x${at}`));
  const got: unknown[] = [];
  for (let at = 1; at <= 5; at++) got.push((await watch.next()).value?.object);
  expect(got).toEqual(['x1', 'x2', 'x3', 'x4', 'x5']);
  await watch.return();
});

test('one of a hub that is not ready begins where the hub is then, however late it is read', async () => {
  const source = new FakeSource();
  source.append(JSON.stringify(added('before')));
  const hub = new Hub({ source });
  const watch = hub.watch();
  await hub.ready();
  await hub.publish(added('after'));
  await hub.watch({ after: 'x.1' }).next(); // the hub has it by then
  expect((await watch.next()).value).toMatchObject({ object: 'after' });
  await hub.shutdown();
});
