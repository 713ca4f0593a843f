import { describe, expect, test, vi } from 'vitest';
import { MemoryStorage } from '../../src/storage/index.ts';
import { refused } from '../../src/storage/statuses.ts';
import { FakeClock } from '../../src/testing/fakes/fake-clock.ts';
import {
  type LeadContext,
  LeaderElector,
  type LeaderElectorOptions,
  type Lease,
  type LeaseResource,
  toLeases,
} from '../../src/workqueue/index.ts';

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => void setImmediate(resolve));
};

/** Electors on one storage in memory, and a clock. */
class Rig {
  readonly clock: FakeClock = new FakeClock();
  readonly storage: MemoryStorage<Lease> = new MemoryStorage<Lease>();
  readonly leases: LeaseResource = toLeases(this.storage);
  readonly told: string[] = [];

  elector(identity: string, more: Partial<LeaderElectorOptions> = {}): LeaderElector {
    return new LeaderElector({
      ...{ leases: this.leases, name: 'lock', identity, clock: this.clock, now: () => this.clock.now() + 1e12, random: () => 0 },
      onNewLeader: (leader) => void this.told.push(`${identity}: ${leader}`),
      ...more,
    });
  }

  async advance(ms: number): Promise<void> {
    await settle();
    for (let passed = 0; passed < ms; passed += 100) {
      this.clock.advance(Math.min(100, ms - passed));
      await settle();
    }
  }

  /** Work that lasts until it is told to end, and what it was given. */
  work(leads: LeadContext[]): (context: LeadContext) => Promise<void> {
    return (context) => {
      leads.push(context);
      return new Promise((resolve) => context.signal.addEventListener('abort', () => resolve(), { once: true }));
    };
  }
}

describe('LeaderElector', () => {
  test('one leads; when it stops, it gives the lease back, and the other leads at its next look', async () => {
    const rig = new Rig();
    const [one, two] = [rig.elector('one'), rig.elector('two')];
    const [first, second]: [LeadContext[], LeadContext[]] = [[], []];
    const [stopOne, stopTwo] = [new AbortController(), new AbortController()];
    const runs = [one.run(rig.work(first), { signal: stopOne.signal })];
    await settle();
    runs.push(two.run(rig.work(second), { signal: stopTwo.signal }));
    await rig.advance(60_000);
    expect([one.isLeader, two.isLeader, two.leader, first.length, second.length]).toEqual([true, false, 'one', 1, 0]);
    stopOne.abort();
    await rig.advance(2_000);
    expect([one.isLeader, two.isLeader, first[0]?.signal.aborted, second[0]?.term]).toEqual([false, true, true, 1]);
    stopTwo.abort();
    await Promise.all(runs);
    expect(rig.clock.pending).toBe(0);
    expect((await rig.storage.get('lock'))?.spec).toMatchObject({ holderIdentity: '', leaseTransitions: 1 });
    expect(rig.told).toEqual(['one: one', 'two: one', 'two: two']);
  });

  test('a lease that cannot be there, as its namespace is not, is told each time', async () => {
    const rig = new Rig();
    const missing = refused(404, 'NotFound', 'namespaces "x" not found');
    const none = async (): Promise<never> => {
      throw missing;
    };
    const told: unknown[] = [];
    const leases = { get: none, create: none, update: none };
    const elector = rig.elector('one', { leases, onError: (error, { during }) => void told.push([during, error]) });
    const stop = new AbortController();
    const run = elector.run(async () => {}, { signal: stop.signal });
    await rig.advance(4_100);
    stop.abort();
    await run;
    expect(told).toEqual(Array.from({ length: 3 }, () => ['create', missing]));
  });

  test('it renews until its work has ended, however long that takes after it was told to', async () => {
    const rig = new Rig();
    const [one, two] = [rig.elector('one'), rig.elector('two')];
    let end = (): void => {};
    const stop = new AbortController();
    const run = one.run(
      () =>
        new Promise<void>((resolve) => {
          end = resolve;
        }),
      { signal: stop.signal },
    );
    await settle();
    const second: LeadContext[] = [];
    const stopTwo = new AbortController();
    const other = two.run(rig.work(second), { signal: stopTwo.signal });
    stop.abort();
    await rig.advance(60_000);
    expect([one.isLeader, second.length]).toEqual([true, 0]);
    end();
    await run;
    await rig.advance(2_000);
    expect(second.length).toBe(1);
    stopTwo.abort();
    await other;
    expect(rig.clock.pending).toBe(0);
  });

  test('work that ends on its own gives the lease back; what it throws, run throws', async () => {
    const rig = new Rig();
    await rig.elector('one').run(async () => 'done');
    expect((await rig.storage.get('lock'))?.spec?.holderIdentity).toBe('');
    await expect(rig.elector('one').run(() => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    expect((await rig.storage.get('lock'))?.spec).toMatchObject({ holderIdentity: '', leaseTransitions: 1 });
    expect(rig.clock.pending).toBe(0);
  });

  test('a lease that cannot be renewed is lost in time: the signal says so, and the next campaign begins when the work has ended', async () => {
    const rig = new Rig();
    const errors: unknown[] = [];
    let isDown = false;
    const down = <R>(work: () => Promise<R>): Promise<R> => (isDown ? new Promise<R>(() => {}) : work());
    const leases: LeaseResource = {
      get: (...args) => down(() => rig.leases.get(...args)),
      create: (...args) => down(() => rig.leases.create(...args)),
      update: (...args) => down(() => rig.leases.update(...args)),
    };
    const elector = rig.elector('one', { leases, onError: (error, { during }) => void errors.push([during, error]) });
    const leads: LeadContext[] = [];
    const stop = new AbortController();
    const run = elector.run(rig.work(leads), { signal: stop.signal });
    await rig.advance(2_500);
    isDown = true;
    await rig.advance(9_400); // the last renewal was sent at 2,000
    expect([elector.isLeader, leads[0]?.signal.aborted]).toEqual([true, false]);
    await rig.advance(100);
    expect([elector.isLeader, leads[0]?.signal.aborted]).toEqual([false, true]);
    expect(leads[0]?.signal.reason).toMatchObject({ code: 'TIMEOUT', limit: 10_000 });
    expect(errors[0]).toMatchObject(['update', { code: 'TIMEOUT', limit: 3_333 }]);
    await rig.advance(10_000);
    isDown = false;
    await rig.advance(10_000);
    expect(leads.map(({ term }) => term)).toEqual([0, 1]);
    stop.abort();
    await run;
    expect(rig.clock.pending).toBe(0);
  });

  test('a lease that is lost and taken again by the same write begins another leadership', async () => {
    const rig = new Rig();
    let late = 0;
    // Its time passes between two looks at the clock: what was to be a renewal takes the lease.
    const clock = {
      now: () => rig.clock.now() + late,
      schedule: (ms: number, callback: () => void) => {
        if (ms === 1 && late === 0) late = 1;
        return rig.clock.schedule(ms, callback);
      },
    };
    const held: (() => void)[] = [];
    let updates = 0;
    const update: LeaseResource['update'] = async (lease, options) => {
      updates++;
      if (late === 0) throw new Error('no answer');
      if (held.length === 0) await new Promise<void>((resolve) => held.push(resolve));
      return rig.leases.update(lease, options);
    };
    const leases = { get: rig.leases.get, create: rig.leases.create, update };
    const more = { clock, leases, retryMs: 2_000, renewDeadlineMs: 9_001, leaseDurationMs: 15_000, onError: () => {} };
    const leads: LeadContext[] = [];
    const stop = new AbortController();
    const run = rig.elector('one', more).run(rig.work(leads), { signal: stop.signal });
    let ended = false;
    run.then(() => {
      ended = true;
    });
    await rig.advance(9_000);
    expect([late, updates > 1, held.length, leads.length]).toEqual([1, true, 1, 1]);
    await rig.advance(1);
    expect(leads[0]?.signal.aborted).toBe(true);
    held[0]?.();
    await rig.advance(100);
    expect([leads.length, ended]).toEqual([2, false]);
    stop.abort();
    await rig.advance(5_000);
    await run;
  });

  test('a lease that somebody else has is lost as soon as that is known', async () => {
    const rig = new Rig();
    const leads: LeadContext[] = [];
    const stop = new AbortController();
    const run = rig.elector('one').run(rig.work(leads), { signal: stop.signal });
    await settle();
    await rig.storage.update('lock', (lease) => ({ ...lease, spec: { ...lease.spec, holderIdentity: 'thief' } }));
    await rig.advance(2_000);
    expect(leads[0]?.signal.reason).toMatchObject({ code: 'CLOSED', message: 'thief leads' });
    stop.abort();
    await run;
    expect((await rig.storage.get('lock'))?.spec?.holderIdentity).toBe('thief');
  });

  test.each([
    ['was deleted', (rig: Rig) => rig.storage.delete('lock')],
    [
      'has no holder',
      (rig: Rig) => rig.storage.update('lock', (lease) => ({ ...lease, spec: { ...lease.spec, holderIdentity: '' } })),
    ],
  ])('a leader whose lease %s says so, and not that it was late', async (_, change) => {
    const rig = new Rig();
    const leads: LeadContext[] = [];
    const stop = new AbortController();
    const run = rig.elector('one').run(rig.work(leads), { signal: stop.signal });
    await settle();
    await change(rig);
    await rig.advance(3_000);
    expect(leads[0]?.signal.reason).toMatchObject({ code: 'CLOSED', message: 'the lease was deleted, or has no holder' });
    expect(leads).toHaveLength(2);
    stop.abort();
    await run;
  });

  test('an abort in the middle of a campaign leaves nothing: a lease that was won meanwhile is given back', async () => {
    const rig = new Rig();
    const stop = new AbortController();
    let write = (): void => {};
    const leases: LeaseResource = {
      ...rig.leases,
      create: async (...args) => {
        await new Promise<void>((resolve) => {
          write = resolve;
        });
        return rig.leases.create(...args);
      },
    };
    const lead = vi.fn(async () => {});
    const run = rig.elector('one', { leases }).run(lead, { signal: stop.signal });
    await settle();
    stop.abort();
    write();
    await run;
    expect(lead).not.toHaveBeenCalled();
    expect((await rig.storage.get('lock'))?.spec?.holderIdentity).toBe('');
    const before = new AbortController();
    before.abort();
    await rig.elector('two').run(lead, { signal: before.signal });
    expect([lead.mock.calls.length, rig.clock.pending]).toEqual([0, 0]);
  });

  test('an abort error of the work is no failure; what a callback throws ends the run', async () => {
    const rig = new Rig();
    const stop = new AbortController();
    const run = rig
      .elector('one')
      .run(
        ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true })),
        { signal: stop.signal },
      );
    await settle();
    stop.abort(new Error('the end'));
    await run;
    const leads: LeadContext[] = [];
    const broken = rig.elector('two', {
      onNewLeader: () => {
        throw new Error('told');
      },
    });
    await expect(broken.run(rig.work(leads))).rejects.toThrow('told');
    const rejecting = rig.elector('three', { onNewLeader: () => Promise.reject(new Error('told later')) });
    await expect(rejecting.run(rig.work(leads))).rejects.toThrow('told later');
    const answered = rig.elector('four', {
      onAnswer: () => {
        throw new Error('answered');
      },
    });
    await expect(answered.run(rig.work(leads))).rejects.toThrow('answered');
    expect(rig.clock.pending).toBe(0);
  });

  test('takes options from a class, with its methods', async () => {
    const rig = new Rig();
    class Options {
      readonly leases = rig.leases;
      readonly name = 'lock';
      readonly identity = 'one';
      readonly clock = rig.clock;
      onNewLeader(identity: string): void {
        told.push(identity);
      }
      onAnswer(): void {
        told.push('answer');
      }
    }
    const told: string[] = [];
    await new LeaderElector(new Options()).run(async () => {});
    expect(new Set(told)).toEqual(new Set(['answer', 'one']));
  });

  test('runs once', async () => {
    const elector = new Rig().elector('one');
    await elector.run(async () => {});
    await expect(elector.run(async () => {})).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
  });

  test.each([
    [{ leases: {} }, 'leases: expected a resource of leases, got Object {}'],
    [{ name: '' }, 'name: expected a non-empty string, got ""'],
    [{ identity: '' }, 'identity: expected a non-empty string, got ""'],
    [{ leaseDurationMs: 1_500 }, 'leaseDurationMs: expected whole seconds, such as 15000, got 1500'],
    [{ renewDeadlineMs: 15_000 }, 'renewDeadlineMs: expected less than leaseDurationMs (15000), got 15000'],
    [{ retryMs: 9_000 }, 'retryMs: expected less than renewDeadlineMs (10000) divided by 1.2, got 9000'],
    [{ requestTimeoutMs: 10_000 }, 'requestTimeoutMs: expected less than renewDeadlineMs (10000), got 10000'],
    [{ retryMs: 0 }, 'retryMs: expected a whole number >= 1, got 0'],
    [{ onError: 1 }, 'onError: expected a function, got 1'],
    [{ retryPeriod: 1 }, 'unknown option retryPeriod: did you mean retryMs?'],
  ])('refuses %j', (options, message) => {
    const rig = new Rig();
    expect(() => new LeaderElector({ leases: rig.leases, name: 'lock', ...(options as object) })).toThrow(message);
    expect(() => toLeases({} as never)).toThrow('storage: expected a Storage');
  });
});

describe('a leader that does not stop', () => {
  const stuck = (): Promise<void> => new Promise(() => {});

  test('is given up after timeoutMs: the lease runs out by itself, and nothing is left', async () => {
    const rig = new Rig();
    const stop = new AbortController();
    const run = rig.elector('one').run(stuck, { signal: stop.signal, timeoutMs: 5_000 });
    const failed = run.catch((error: unknown) => error);
    await rig.advance(10_000);
    stop.abort();
    await rig.advance(5_000);
    const message = 'gave up after 5000 ms on the work of the leader one';
    expect(await failed).toMatchObject({ code: 'TIMEOUT', limit: 5_000, message });
    expect([rig.clock.pending, (await rig.storage.get('lock'))?.spec?.holderIdentity]).toEqual([0, 'one']);
    const two = rig.elector('two');
    const end = new AbortController();
    const runs = two.run(rig.work([]), { signal: end.signal });
    await rig.advance(10_000);
    expect(two.isLeader).toBe(false);
    await rig.advance(10_000);
    expect(two.isLeader).toBe(true);
    end.abort();
    await runs;
  });

  test('is given up when it goes on after the lease was lost', async () => {
    const rig = new Rig();
    let down = false;
    const { leases } = rig;
    const guarded =
      <A extends unknown[], R>(call: (...parameters: A) => Promise<R>) =>
      async (...parameters: A): Promise<R> => {
        if (down) throw new Error('down');
        return call(...parameters);
      };
    const failing: LeaseResource = {
      get: guarded(leases.get.bind(leases)),
      create: guarded(leases.create.bind(leases)),
      update: guarded(leases.update.bind(leases)),
    };
    const elector = rig.elector('one', { leases: failing, onError: () => {} });
    const failed = elector.run(stuck, { timeoutMs: 1_000 }).catch((error: unknown) => error);
    await rig.advance(3_000);
    down = true;
    await rig.advance(12_000);
    expect(await failed).toMatchObject({ code: 'TIMEOUT' });
    expect(rig.clock.pending).toBe(0);
  });

  test('that stops in time leaves no timer', async () => {
    const rig = new Rig();
    const stop = new AbortController();
    const run = rig.elector('one').run(rig.work([]), { signal: stop.signal, timeoutMs: 5_000 });
    await rig.advance(1_000);
    stop.abort();
    await run;
    expect([rig.clock.pending, (await rig.storage.get('lock'))?.spec?.holderIdentity]).toEqual([0, '']);
  });
});

test('a lease that cannot be had is printed once, and when it can be had', async () => {
  const print = vi.spyOn(console, 'error').mockImplementation(() => {});
  const rig = new Rig();
  let isDown = true;
  const get: LeaseResource['get'] = async (...parameters) => {
    if (isDown) throw refused(403, 'Forbidden', 'no');
    return rig.leases.get(...parameters);
  };
  const stop = new AbortController();
  const { create, update } = rig.leases;
  const leases = { get, create: create.bind(rig.leases), update: update.bind(rig.leases) };
  let answers = 0;
  const onAnswer = (): void => void answers++;
  const run = rig.elector('one', { leases, onAnswer }).run(rig.work([]), { signal: stop.signal });
  await rig.advance(30_000);
  expect(answers).toBe(0);
  expect(print.mock.calls).toEqual([
    [expect.stringMatching(/^watchmux leader elector lock: the lease failed \(get\): WatchError: /)],
  ]);
  isDown = false;
  await rig.advance(10_000);
  expect(print.mock.calls[1]).toEqual([
    expect.stringMatching(/^watchmux leader elector lock: the lease works again, after \d+ failures$/),
  ]);
  expect(answers).toBeGreaterThan(0);
  stop.abort();
  await run;
  print.mockRestore();
});
