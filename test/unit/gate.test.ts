import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Gate, type Gated } from '../../src/broadcast/gate.ts';
import { runs } from '../runs.ts';
import { collectedUntil, gated, NO_GC } from './support.ts';

class Member implements Gated {
  at: number;
  asked = 0;
  inSet: object | undefined;
  before: Gated | undefined;
  after: Gated | undefined;
  onAsk: () => void = () => {};

  constructor(at: number) {
    this.at = at;
  }
  bound(): number {
    this.asked++;
    const { at } = this;
    this.onAsk();
    return at;
  }
}

function gateOf(...bounds: number[]): { gate: Gate; members: Member[] } {
  const gate = new Gate();
  const members = bounds.map((at) => new Member(at));
  for (const member of members) gate.add(member);
  for (const member of members) member.asked = 0;
  return { gate, members };
}

const asked = (members: Member[]): number[] => members.map((member) => member.asked);

describe('Gate', () => {
  test('is open while nobody waits', () => {
    expect(new Gate().open(1e9)).toBe(true);
    expect(new Gate().blocker).toBeUndefined();
  });

  test('lets head move up to the least bound, and no further', () => {
    const { gate, members } = gateOf(3, 2);
    expect([gate.open(0), gate.open(1), gate.open(2)]).toEqual([true, true, false]);
    expect(gate.blocker).toBe(members[1]);
    expect(gate.open(2)).toBe(false);
  });

  test('asks nobody below the least bound', () => {
    const { gate, members } = gateOf(5, 3);
    for (let head = 0; head < 3; head++) gate.open(head);
    expect(asked(members)).toEqual([0, 0]);
  });

  test('opens when the blocker has room', () => {
    const { gate, members } = gateOf(2);
    expect(gate.open(2)).toBe(false);
    members[0]!.at = 3;
    expect(gate.open(2)).toBe(true);
    expect(gate.blocker).toBeUndefined();
    expect(gate.open(3)).toBe(false);
  });

  test('opens when the blocker leaves', () => {
    const { gate, members } = gateOf(2);
    expect(gate.open(2)).toBe(false);
    gate.remove(members[0]!);
    expect(gate.blocker).toBeUndefined();
    expect(gate.open(2)).toBe(true);
    expect(gate.open(1e9)).toBe(true);
  });

  test('stays with the blocker when another member leaves', () => {
    const { gate, members } = gateOf(2, 9);
    expect(gate.open(2)).toBe(false);
    gate.remove(members[1]!);
    expect(gate.blocker).toBe(members[0]);
    expect(gate.open(2)).toBe(false);
  });

  test('with a single slow reader, costs one question per event, not a round', () => {
    const { gate, members } = gateOf(...new Array(50).fill(1000), 1);
    const slow = members[50]!;
    for (let head = 0; head < 900; head++) {
      slow.at = head + 1;
      expect(gate.open(head)).toBe(true);
    }
    const others = asked(members.slice(0, 50)).reduce((sum, count) => sum + count, 0);
    expect(others).toBe(50);
    expect(slow.asked).toBeLessThanOrEqual(901);
  });

  test('the slowest member may change: the next one is asked only when head reaches its bound', () => {
    const { gate, members } = gateOf(1, 4, 8);
    members[0]!.at = 2;
    expect(gate.open(1)).toBe(true); // a round: limit 2, others 4
    expect(asked(members)).toEqual([1, 1, 1]);
    members[0]!.at = 100;
    expect(gate.open(2)).toBe(true); // the slowest alone: limit 4
    expect(gate.open(3)).toBe(true);
    expect(asked(members)).toEqual([2, 1, 1]);
    expect(gate.open(4)).toBe(false);
    expect(gate.blocker).toBe(members[1]);
    members[1]!.at = 5;
    expect(gate.open(4)).toBe(true);
    expect(gate.open(5)).toBe(false);
  });

  test('when the slowest has left, the others are asked at their own bound', () => {
    const { gate, members } = gateOf(1, 4);
    members[0]!.at = 2;
    expect(gate.open(1)).toBe(true);
    gate.remove(members[0]!);
    expect([gate.open(2), gate.open(3), gate.open(4)]).toEqual([true, true, false]);
    expect(gate.blocker).toBe(members[1]);
  });

  test('N full watchers cost N questions per event, not N rounds', () => {
    const { gate, members } = gateOf(...new Array(100).fill(1));
    expect(gate.open(1)).toBe(false);
    for (let i = 0; i < 99; i++) {
      (gate.blocker as Member).at = 2;
      expect(gate.open(1)).toBe(false);
    }
    (gate.blocker as Member).at = 2;
    expect(gate.open(1)).toBe(true);
    expect(asked(members).reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(2 * 100 + 1);
  });

  test('a member that joins during a round is also asked', () => {
    const { gate, members } = gateOf(1, 1);
    expect(gate.open(1)).toBe(false);
    const late = new Member(3);
    gate.add(late);
    for (const member of members) member.at = 50;
    expect([gate.open(1), gate.open(2), gate.open(3)]).toEqual([true, true, false]);
    expect(gate.blocker).toBe(late);
  });

  test('a bound that user code invalidates does not count: in a round', () => {
    const { gate, members } = gateOf(1, 5);
    members[0]!.onAsk = () => gate.remove(members[0]!);
    expect(gate.open(1)).toBe(true);
    expect(gate.blocker).toBeUndefined();
    expect([gate.open(4), gate.open(5)]).toEqual([true, false]);
  });

  test('a bound that user code invalidates does not count: of a blocker', () => {
    const { gate, members } = gateOf(1, 5);
    expect(gate.open(1)).toBe(false);
    members[0]!.onAsk = () => gate.remove(members[0]!);
    expect(gate.open(1)).toBe(true);
    expect(gate.blocker).toBeUndefined();
    expect([gate.open(4), gate.open(5)]).toEqual([true, false]);
  });

  test('a bound that user code invalidates does not count: of the slowest', () => {
    const { gate, members } = gateOf(1, 9);
    members[0]!.at = 2;
    expect(gate.open(1)).toBe(true);
    members[0]!.onAsk = () => gate.remove(members[0]!);
    expect(gate.open(2)).toBe(true);
    expect(gate.blocker).toBeUndefined();
  });

  test('with a single slow reader, costs one question per event, even while others leave', () => {
    const { gate, members } = gateOf(...new Array(50).fill(1000), 1);
    const slow = members[50]!;
    for (let head = 0; head < 50; head++) {
      slow.at = head + 1;
      expect(gate.open(head)).toBe(true);
      if (head > 1) gate.remove(members[head]!);
    }
    expect(asked(members.slice(0, 50)).reduce((sum, count) => sum + count, 0)).toBe(50);
  });

  test('with a single slow reader, costs one question per event, even if a member has joined meanwhile', () => {
    const { gate, members } = gateOf(1, 1000, 1000);
    const [slow, ...rest] = members as [Member, Member, Member];
    expect(gate.open(1)).toBe(false);
    gate.add(new Member(1000)); // which ends the round
    for (let head = 1; head < 50; head++) {
      slow.at = head + 1;
      expect(gate.open(head)).toBe(true);
    }
    expect(asked(rest)).toEqual([1, 1]);
  });

  test('does not retain a slowest member that has left', () => {
    const { gate, members } = gateOf(1, 9);
    members[0]!.at = 2;
    expect(gate.open(1)).toBe(true);
    const slowest = (): unknown => (gate as unknown as { slowest: unknown }).slowest;
    expect(slowest()).toBe(members[0]);
    gate.remove(members[1]!);
    expect(slowest()).toBe(members[0]);
    gate.remove(members[0]!);
    expect(slowest()).toBeUndefined();
  });

  test('a reentrant question is answered separately, and the current round continues', () => {
    const { gate, members } = gateOf(2, 1);
    const [a, b] = members as [Member, Member];
    const inner: boolean[] = [];
    b.onAsk = () => {
      b.onAsk = () => {};
      inner.push(gate.open(1)); // b itself is in the way
      b.at = 5;
      inner.push(gate.open(1), gate.open(2)); // now it is not; of 2, a is
    };
    expect(gate.open(1)).toBe(false); // what b said before
    expect(inner).toEqual([false, true, false]);
    expect(gate.open(2)).toBe(false); // head went on meanwhile
    expect(gate.blocker).toBe(a);
    a.at = 6;
    expect([gate.open(2), gate.open(4), gate.open(5)]).toEqual([true, true, false]);
  });

  test('a member that leaves during a question blocks nobody', () => {
    const { gate, members } = gateOf(1, 1);
    const [a, b] = members as [Member, Member];
    let inner: boolean | undefined;
    a.onAsk = () => {
      a.onAsk = () => gate.remove(a);
      b.at = 3;
      inner = gate.open(1);
    };
    gate.open(1);
    expect(inner).toBe(true);
  });

  test('answers as if it asked everyone, whoever joins, reads and leaves', () => {
    const op = fc.oneof(
      { weight: 2, arbitrary: fc.record({ add: fc.nat(5) }) },
      { weight: 6, arbitrary: fc.record({ read: fc.nat(9), by: fc.integer({ min: 1, max: 4 }) }) },
      { weight: 1, arbitrary: fc.record({ remove: fc.nat(9) }) },
      { weight: 8, arbitrary: fc.constant('open' as const) },
    );
    fc.assert(
      fc.property(fc.array(op, { maxLength: 120, size: 'max' }), (ops) => {
        const gate = new Gate();
        const members: Member[] = [];
        let head = 0;
        for (const each of ops) {
          if (each === 'open') {
            const open = members.every((member) => member.at > head);
            expect(gate.open(head)).toBe(open);
            expect(gate.blocker === undefined).toBe(open);
            if (open) head++;
          } else if ('add' in each) {
            const member = new Member(head + each.add);
            members.push(member);
            gate.add(member);
          } else if (members.length > 0) {
            const index = ('read' in each ? each.read : each.remove) % members.length;
            const member = members[index]!;
            if ('read' in each) {
              if (member.at - head < 5) member.at += each.by;
            } else {
              gate.remove(member);
              members.splice(index, 1);
            }
          }
        }
      }),
      { numRuns: runs(150) },
    );
  });

  test('restarts its round when its members change', () => {
    const gate = new Gate();
    const round = (): unknown => (gate as unknown as { asked: unknown }).asked;
    const member = gated(() => 10);
    const full = gated(() => 0);
    gate.add(member);
    gate.add(full);
    expect(gate.open(0)).toBe(false);
    expect(round()).toBeDefined();
    gate.remove(full);
    expect(round()).toBeUndefined();
    expect(gate.open(5)).toBe(true);
    expect(round()).toBeUndefined();
    gate.add(full);
    expect(gate.open(5)).toBe(false);
    gate.add(gated(() => 20));
    expect(round()).toBeUndefined();
    expect(gate.open(5)).toBe(false);
  });
});

/** A member that was the least of a round. */
function leaveGate(gate: Gate): WeakRef<object> {
  let at = 1;
  const [first, least] = [gated(() => at), gated(() => 2)];
  gate.add(first);
  gate.add(least);
  expect(gate.open(1)).toBe(false);
  at = 3;
  expect(gate.open(1)).toBe(true);
  gate.remove(first);
  gate.remove(least);
  return new WeakRef(least);
}

describe.skipIf(globalThis.gc === undefined)(`a gate, with garbage collection${NO_GC}`, () => {
  test('does not retain a member that has left', async () => {
    const gate = new Gate();
    const gone = leaveGate(gate);
    expect(await collectedUntil(() => gone.deref() === undefined)).toBe(true);
  });
});
