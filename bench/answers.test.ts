// Workloads that time no deliveries also detect a contender that does not do its work.
import { describe, expect, test } from 'vitest';
import { expectHeld, expectJoinAndLeave } from './answers.ts';
import type { Hub } from './contender.ts';
import { contenderOf } from './contenders.ts';
import { laggards } from './laggards.bench.ts';

const SETTINGS = { warmMs: 1, roundMs: 1, tooSlowMs: 1_000 };

const start = async (): Promise<Hub> => await contenderOf('queue per watcher').start({ capacity: 4 });

describe.each([true, false])('joining and leaving, with waiting reads: %s', (waiting) => {
  test('succeeds', async () => {
    await expect(expectJoinAndLeave(await start(), { group: 3, waiting })).resolves.toBeUndefined();
  });

  test('a publisher that publishes nothing is detected', async () => {
    const hub: Hub = { ...(await start()), publish: () => {} };
    await expect(expectJoinAndLeave(hub, { group: 3, waiting })).rejects.toThrow('0 events for 3 watchers that have joined');
  });

  test('watchers that do not leave are detected', async () => {
    const hub: Hub = { ...(await start()), leave: () => {} };
    await expect(expectJoinAndLeave(hub, { group: 3, waiting })).rejects.toThrow('3 events for watchers that have left');
  });
});

describe('what a watcher holds', () => {
  test.each([
    ['what is due', [0, 1, 2, 3], undefined],
    ['less than is due', [0, 1, 2, 3, 4], 'nothing where event 4 was due'],
    ['more than is due', [0, 1, 2], '4 events where 3 were due'],
    ['something else', [1, 2, 3, 4], '0 where event 1 was due'],
  ] as const)('%s', async (_, due, why) => {
    const hub = await start();
    const watcher = hub.open?.();
    for (let object = 0; object < 6; object++) hub.publish({ type: 'TICK', object });
    const looked = expectHeld(hub, watcher, due);
    await (why === undefined ? expect(looked).resolves.toBeUndefined() : expect(looked).rejects.toThrow(`wrong answer: ${why}`));
  });
});

test.each(laggards.entries({ are: 'filling' }).map(({ name }) => name))(
  '%s leaves a laggard what its policy promises',
  async (name) => {
    await expect(laggards.prepare(name, { are: 'filling' }, SETTINGS)).resolves.toBeDefined();
  },
);
