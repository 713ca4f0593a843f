// A contender whose publisher is stopped by a stalled watcher is left out. One of ours, or a wrong answer, is a failure.
import { describe, expect, test } from 'vitest';
import type { Hub, Take, Tick } from './contender.ts';
import { Fleet, WrongAnswer } from './fleet.ts';
import { fill } from './stalled.bench.ts';
import { LeftOut } from './workload.ts';

/** A fleet of two on a hub that passes on what `publish` makes of an event. */
function fleetOn(publish: (event: Tick) => Tick): Fleet {
  const takes: Take[] = [];
  const hub: Hub = {
    publish(event) {
      const made = publish(event);
      for (const take of takes) take(made);
    },
    watch: (take) => takes.push(take),
    leave: () => {},
    close: () => {},
  };
  return new Fleet(hub, { watchers: 2, burst: 64 });
}

const refusesAt700 = (): Fleet =>
  fleetOn((event) => {
    if (event.object === 700) throw new Error('full');
    return event;
  });

describe('filling beside a stalled watcher', () => {
  test('continues if nobody is affected', async () => {
    await expect(
      fill(
        fleetOn((event) => event),
        true,
      ),
    ).resolves.toBeUndefined();
  });

  test('leaves out a peer whose publisher fails', async () => {
    const refused = expect(fill(refusesAt700(), false)).rejects;
    await refused.toThrow(LeftOut);
    await expect(fill(refusesAt700(), false)).rejects.toThrow('one stalled watcher stops all: full');
  });

  test('fails when the publisher is ours', async () => {
    const error: unknown = await fill(refusesAt700(), true).catch((reason) => reason);
    expect(error).not.toBeInstanceOf(LeftOut);
    expect(error).toMatchObject({ message: 'full' });
  });

  test('fails when any watcher gets a wrong event', async () => {
    const repeats = fleetOn((event) => (event.object === 700 ? { type: 'TICK', object: 699 } : event));
    const error: unknown = await fill(repeats, false).catch((reason) => reason);
    expect(error).toBeInstanceOf(WrongAnswer);
    expect(error).toMatchObject({ message: 'wrong answer: a watcher got event 699 where 700 was due' });
  });
});
