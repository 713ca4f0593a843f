// How often the queues of clients are measured, without clients.
import { describe, expect, test } from 'vitest';
import { Backlog, type Backlogged } from '../../src/bridge/hub/sessions.ts';

class Member implements Backlogged {
  isBehind: boolean = true;
  readonly maxQueuedBytes: number;
  size: number = 0;
  looks: number = 0;
  flushes: number = 0;
  expired: boolean = false;
  /** What its filter does. */
  whenLooked: () => void = () => {};

  constructor(maxQueuedBytes: number) {
    this.maxQueuedBytes = maxQueuedBytes;
  }

  get queuedBytes(): number {
    this.looks++;
    this.whenLooked();
    return this.size;
  }

  flush(): void {
    this.flushes++;
  }

  expire(): void {
    this.expired = true;
  }
}

/** Publishes events of one size, which the queues of some members take. */
function publish(backlog: Backlog<Member>, count: number, { bytes, into }: { bytes: number; into: readonly Member[] }): void {
  for (let i = 0; i < count; i++) {
    for (const member of into) if (!member.expired) member.size += bytes;
    backlog.grow(bytes);
    backlog.check();
  }
}

function setUp(...limits: number[]): { backlog: Backlog<Member>; members: Member[] } {
  const backlog = new Backlog<Member>();
  const members = limits.map((limit) => new Member(limit));
  for (const member of members) backlog.add(member);
  return { backlog, members };
}

describe('a backlog', () => {
  test.each([1, 10, 1_000, 1_048_576])('ends a session within an eighth and one event of %i bytes', (limit) => {
    const { backlog, members } = setUp(limit);
    const bytes = 10;
    publish(backlog, Math.floor(limit / bytes), { bytes, into: members });
    expect(members[0]?.expired).toBe(false);
    publish(backlog, Math.ceil(limit / 8 / bytes) + 1, { bytes, into: members });
    expect(members[0]?.expired).toBe(true);
    expect(members[0]?.size).toBeLessThanOrEqual(limit * 1.125 + bytes);
  });

  test('measures each queue a few times while it fills, and at most 16 times per limit when it is nearly full', () => {
    const limit = 1_000_000;
    const { backlog, members } = setUp(limit, limit);
    const [filling, full] = members as [Member, Member];
    full.size = limit; // its filter rejects all that comes
    publish(backlog, 100_000, { bytes: 10, into: [filling] });
    expect(filling).toMatchObject({ expired: false, size: limit });
    expect(filling.looks).toBeLessThanOrEqual(5);
    expect(full).toMatchObject({ expired: false, looks: 16 });
  });

  test('does not measure a session whose connection has room again, but flushes it once, and forgets it', () => {
    const { backlog, members } = setUp(1_000);
    const [member] = members as [Member];
    member.isBehind = false;
    publish(backlog, 1_000, { bytes: 100, into: members });
    expect(member).toMatchObject({ looks: 0, flushes: 1, expired: false });
    member.isBehind = true;
    publish(backlog, 1_000, { bytes: 100, into: members });
    expect(member.looks).toBe(0);
    backlog.add(member);
    publish(backlog, 1, { bytes: 100, into: members });
    expect(member.expired).toBe(true);
  });

  test('follows the smallest limit of those that are behind', () => {
    const { backlog, members } = setUp(1_000_000);
    publish(backlog, 10, { bytes: 10, into: members });
    const small = new Member(100);
    backlog.add(small);
    publish(backlog, 12, { bytes: 10, into: [...members, small] });
    expect(small.expired).toBe(true);
    expect(members[0]?.expired).toBe(false);
  });

  test('lets a filter end its own session, and publish, while its queue is measured', () => {
    const { backlog, members } = setUp(100, 100);
    const [one, other] = members as [Member, Member];
    one.whenLooked = () => {
      backlog.remove(one);
      publish(backlog, 1, { bytes: 1_000, into: [] });
    };
    one.size = other.size = 1_000;
    publish(backlog, 1, { bytes: 10, into: [] });
    expect(one).toMatchObject({ looks: 1, expired: false });
    expect(other).toMatchObject({ looks: 1, expired: true });
  });
});
