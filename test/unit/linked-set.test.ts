import { describe, expect, test } from 'vitest';
import { type Linked, LinkedSet } from '../../src/broadcast/watcher-sets.ts';

const member = (): Linked => ({ inSet: undefined, before: undefined, after: undefined });

function setOf(count: number): { set: LinkedSet<Linked>; members: Linked[] } {
  const set = new LinkedSet<Linked>();
  const members = Array.from({ length: count }, member);
  for (const each of members) set.add(each);
  return { set, members };
}

/** The members, as they stand from first to last, and from last to first. */
function rows(set: LinkedSet<Linked>): Linked[][] {
  const forth: Linked[] = [];
  const back: Linked[] = [];
  for (let one = set.first; one !== undefined; one = one.after as Linked | undefined) forth.push(one);
  for (let one = forth.at(-1); one !== undefined; one = one.before) back.push(one);
  return [forth, back];
}

describe('LinkedSet', () => {
  test.each([0, 1, 2])('iterates in the order of adding, even if number %i has left and come back', (at) => {
    const { set, members } = setOf(3);
    expect(rows(set)).toEqual([members, members.toReversed()]);
    const one = members[at]!;
    expect(set.delete(one)).toBe(true);
    expect(one).toEqual(member());
    expect(set.has(one)).toBe(false);
    const rest = members.filter((each) => each !== one);
    expect(rows(set)).toEqual([rest, rest.toReversed()]);
    set.add(one);
    expect(set.has(one)).toBe(true);
    expect(rows(set)).toEqual([
      [...rest, one],
      [one, ...rest.toReversed()],
    ]);
  });

  test('a removed member records the set that holds it now', () => {
    const [{ set, members }, other] = [setOf(1), new LinkedSet<Linked>()];
    expect(set.delete(members[0]!, other)).toBe(true);
    expect(members[0]?.inSet).toBe(other);
    expect(set.first).toBeUndefined();
  });

  test('removing a non-member has no effect', () => {
    const [{ set, members }, other] = [setOf(2), setOf(2)];
    for (const stranger of [member(), other.members[0]!]) expect(set.delete(stranger)).toBe(false);
    expect(rows(set)[0]).toEqual(members);
    expect(rows(other.set)[0]).toEqual(other.members);
  });
});
