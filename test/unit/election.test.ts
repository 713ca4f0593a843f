import { describe, expect, test } from 'vitest';
import { Election, type ElectionSettings, type ElectionStep, type LeaseAnswer } from '../../src/workqueue/election.ts';
import type { Lease } from '../../src/workqueue/index.ts';

const TERMS: ElectionSettings = {
  name: 'ns/lock',
  identity: 'me',
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryMs: 2_000,
  random: () => 0.5,
  now: () => Date.UTC(2026, 0, 2),
};

const leaseOf = (holder: string | undefined, version: number, spec: Lease['spec'] = {}): Lease => ({
  metadata: { name: 'lock', resourceVersion: String(version) },
  spec: { leaseDurationSeconds: 15, leaseTransitions: 3, ...(holder !== undefined && { holderIdentity: holder }), ...spec },
});

/** An election at a time, and what it was told. */
class Rig {
  nowMs: number = 100_000;
  version: number = 10;
  readonly election: Election = new Election(TERMS);

  next(): ElectionStep {
    return this.election.next(this.nowMs);
  }

  /** Answers the next step after some time. Returns the step. */
  answer(answer: LeaseAnswer | 'written', tookMs: number = 0): ElectionStep {
    const step = this.next();
    const sentMs = this.nowMs;
    this.nowMs += tookMs;
    const told = answer === 'written' ? { lease: this.written(step) } : answer;
    this.election.answered(step, told, { sentMs, nowMs: this.nowMs });
    return step;
  }

  written(step: ElectionStep): Lease {
    if (step.do !== 'update' && step.do !== 'create') throw new Error(`a write was expected, not ${step.do}`);
    return { ...step.lease, metadata: { ...step.lease.metadata, resourceVersion: String(++this.version) } };
  }

  lead(): this {
    this.answer({ lease: undefined });
    this.answer('written');
    return this;
  }

  get leads(): boolean {
    return this.election.leads(this.nowMs);
  }
}

describe('a candidate', () => {
  test('creates a lease that is not there, and leads from before it has asked', () => {
    const rig = new Rig();
    expect(rig.answer({ lease: undefined })).toEqual({ do: 'get' });
    expect(rig.answer('written', 700)).toEqual({
      do: 'create',
      takes: true,
      lease: {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: 'lock', namespace: 'ns' },
        spec: {
          holderIdentity: 'me',
          leaseDurationSeconds: 15,
          acquireTime: '2026-01-02T00:00:00.000000Z',
          renewTime: '2026-01-02T00:00:00.000000Z',
          leaseTransitions: 0,
        },
      },
    });
    expect([rig.leads, rig.election.leadsUntilMs, rig.election.term]).toEqual([true, 110_000, 0]);
    expect(rig.next()).toEqual({ do: 'wait', untilMs: 102_200 });
  });

  test('leaves a lease alone for its duration after each change that it sees, and takes it at that moment', () => {
    const rig = new Rig();
    rig.answer({ lease: leaseOf('other', 5) }, 30);
    expect(rig.next()).toEqual({ do: 'wait', untilMs: 103_230 });
    rig.nowMs = 103_230;
    rig.answer({ lease: leaseOf('other', 6) }, 20);
    const seenMs = rig.nowMs;
    for (rig.nowMs += 3_200; rig.nowMs < seenMs + 15_000; rig.nowMs += 3_200) {
      expect(rig.answer({ lease: leaseOf('other', 6) })).toEqual({ do: 'get' });
      expect(rig.next()).toEqual({ do: 'wait', untilMs: Math.min(rig.nowMs + 3_200, seenMs + 15_000) });
    }
    rig.nowMs = seenMs + 15_000;
    const taken = rig.answer('written');
    expect(taken).toMatchObject({
      do: 'update',
      takes: true,
      lease: { metadata: { resourceVersion: '6' }, spec: { holderIdentity: 'me', leaseTransitions: 4 } },
    });
    expect([rig.leads, rig.election.term]).toEqual([true, 4]);
  });

  test.each([
    ['that its holder has released', leaseOf('', 5)],
    ['that nobody ever held', leaseOf(undefined, 5)],
    ['that is its own from before', leaseOf('me', 5)],
    ['whose holder is no name', leaseOf(7 as never, 5)],
  ])('takes a lease at once %s', (_, lease) => {
    const rig = new Rig();
    rig.answer({ lease });
    expect(rig.next()).toMatchObject({ do: 'update', takes: true, lease: { spec: { leaseTransitions: 4 } } });
  });

  test.each([['x'], [-1], [1.5], [Number.NaN], [undefined]])(
    'begins to count again at a lease whose transitions are %s',
    (transitions) => {
      const rig = new Rig();
      rig.answer({ lease: leaseOf('', 5, { leaseTransitions: transitions as number }) });
      expect(rig.election.term).toBe(0);
      expect(rig.next()).toMatchObject({ lease: { spec: { leaseTransitions: 1 } } });
    },
  );

  test('takes a lease that has no spec, and one that counts no transition', () => {
    const rig = new Rig();
    rig.answer({ lease: { metadata: { name: 'lock', resourceVersion: '5' } } });
    expect([rig.election.holder, rig.election.term]).toEqual([undefined, 0]);
    expect(rig.next()).toMatchObject({ do: 'update', lease: { spec: { holderIdentity: 'me', leaseTransitions: 1 } } });
    const other = new Rig();
    other.answer({ lease: leaseOf('', 5, { leaseTransitions: 0 }) });
    expect(other.next()).toMatchObject({ lease: { spec: { leaseTransitions: 1 } } });
    expect(new Rig().election.term).toBe(0);
  });

  test('counts the duration that the lease says, and its own if that is none', () => {
    for (const [seconds, ms] of [
      [40, 40_000],
      ['x', 15_000],
      [0, 15_000],
      [-3, 15_000],
      [Number.NaN, 15_000],
    ] as const) {
      const rig = new Rig();
      rig.answer({ lease: leaseOf('other', 5, { leaseDurationSeconds: seconds as number }) });
      rig.nowMs += ms - 1;
      expect(rig.next()).toEqual({ do: 'get' });
      rig.nowMs += 1;
      expect(rig.next()).toMatchObject({ do: 'update' });
    }
  });

  test('waits after a refused write, and reads then', () => {
    const rig = new Rig();
    rig.answer({ lease: leaseOf('', 5) });
    rig.answer('conflict');
    expect([rig.leads, rig.next()]).toEqual([false, { do: 'wait', untilMs: 103_200 }]);
    rig.nowMs = 103_200;
    expect(rig.next()).toEqual({ do: 'get' });
  });

  test('does not lead by a write that has changed nothing, or that somebody else has changed', () => {
    const rig = new Rig();
    rig.answer({ lease: leaseOf('', 5) });
    rig.answer({ lease: leaseOf('me', 5) });
    expect([rig.leads, rig.next().do]).toEqual([false, 'wait']);
    const other = new Rig();
    other.answer({ lease: leaseOf('', 5) });
    other.answer({ lease: leaseOf('', 6) });
    expect([other.leads, other.next().do]).toEqual([false, 'wait']);
  });

  test('does not lead by an answer that comes when its time is over', () => {
    const rig = new Rig();
    rig.answer({ lease: leaseOf('', 5) });
    rig.answer('written', 10_000);
    expect(rig.leads).toBe(false);
    expect(rig.next()).toMatchObject({ do: 'update', takes: true, lease: { spec: { leaseTransitions: 5 } } });
  });
});

describe('a leader', () => {
  test('renews, and keeps what else is in the lease', () => {
    const rig = new Rig();
    rig.answer({ lease: { ...leaseOf('', 5, { strategy: 'x' } as object), kind: 'Lease' } });
    rig.answer('written');
    rig.nowMs = 102_200;
    const renewed = rig.answer('written', 50);
    expect(renewed).toMatchObject({ do: 'update', takes: false, lease: { spec: { strategy: 'x', leaseTransitions: 4 } } });
    expect((renewed as { lease: Lease }).lease.spec?.acquireTime).not.toBe((renewed as { lease: Lease }).lease.spec?.renewTime);
    expect([rig.election.leadsUntilMs, rig.election.term]).toEqual([112_200, 4]);
  });

  test('tries a failed renewal again sooner; after a conflict it reads, because the write may have been its own', () => {
    const rig = new Rig().lead();
    rig.nowMs = 102_200;
    rig.answer('failed', 1_000);
    expect(rig.next()).toEqual({ do: 'wait', untilMs: 104_700 });
    rig.nowMs = 104_700;
    expect(rig.answer('conflict')).toMatchObject({ do: 'update', takes: false });
    expect(rig.answer({ lease: leaseOf('me', 12, { leaseTransitions: 0 }) })).toEqual({ do: 'get' });
    rig.version = 12;
    expect(rig.answer('written')).toMatchObject({ do: 'update', takes: false });
    expect(rig.election.leadsUntilMs).toBe(114_700);
    // A server that refuses everything is not asked without end.
    rig.nowMs += 2_200;
    rig.answer('conflict');
    rig.answer({ lease: leaseOf('me', 14, { leaseTransitions: 0 }) });
    rig.answer('conflict');
    expect(rig.next().do).toBe('wait');
  });

  test('leads no longer when its time is over, when another one holds the lease, and when there is none', () => {
    const late = new Rig().lead();
    late.nowMs = 109_999;
    expect(late.leads).toBe(true);
    late.nowMs = 110_000;
    expect(late.leads).toBe(false);
    for (const lease of [leaseOf('other', 20), undefined]) {
      const rig = new Rig().lead();
      rig.nowMs = 102_200;
      rig.answer('conflict');
      expect(rig.leads).toBe(true);
      rig.answer({ lease });
      expect(rig.leads).toBe(false);
    }
  });

  test('what was over stays over: a renewal that is answered late begins another leadership', () => {
    const rig = new Rig().lead();
    rig.nowMs = 109_000;
    rig.answer('written', 1_500);
    expect([rig.leads, rig.election.term]).toEqual([false, 0]);
    expect(rig.answer('written')).toMatchObject({ do: 'update', takes: true });
    expect([rig.leads, rig.election.term]).toEqual([true, 1]);
  });
});

describe('giving back', () => {
  test('a lease that is held: others need not wait', () => {
    const rig = new Rig().lead();
    const step = rig.election.resign() as ElectionStep & { lease: Lease };
    expect(step).toMatchObject({
      do: 'update',
      lease: { spec: { holderIdentity: '', leaseDurationSeconds: 1, leaseTransitions: 0 } },
    });
    rig.election.answered(step, { lease: rig.written(step) }, { sentMs: rig.nowMs, nowMs: rig.nowMs });
    expect([rig.leads, rig.election.resign()]).toEqual([false, undefined]);
  });

  test('one that may be held, because nobody knows what has become of a write', () => {
    const rig = new Rig();
    rig.answer({ lease: leaseOf('', 5) });
    expect(rig.election.resign()).toBeUndefined();
    rig.answer('failed');
    expect(rig.election.resign()).toEqual({ do: 'get' });
    rig.election.answered({ do: 'get' }, { lease: leaseOf('me', 6) }, { sentMs: rig.nowMs, nowMs: rig.nowMs });
    expect(rig.election.resign()).toMatchObject({ do: 'update' });
    const other = new Rig();
    other.answer({ lease: leaseOf('', 5) });
    other.answer('failed');
    other.election.answered({ do: 'get' }, { lease: leaseOf('other', 6) }, { sentMs: rig.nowMs, nowMs: rig.nowMs });
    expect(other.election.resign()).toBeUndefined();
  });

  test('not one of others, and none that is not there', () => {
    const rig = new Rig();
    expect(rig.election.resign()).toBeUndefined();
    rig.answer({ lease: leaseOf('other', 5) });
    expect(rig.election.resign()).toBeUndefined();
  });
});
