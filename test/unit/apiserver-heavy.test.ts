// How many large bodies of one client are worked on at a time.
import { describe, expect, test } from 'vitest';
import { Heavy } from '../../src/apiserver/http/quotas.ts';
import { ORDERS_PATH, rig } from './apiserver-rig.ts';
import { turn } from './support.ts';

const whose = (tenant: string, address: string = 'a') => ({ tenant, address });

describe('large bodies', () => {
  test('of a tenant at an address begin two at a time, in their order', async () => {
    const heavy = new Heavy();
    const { signal } = new AbortController();
    const begun: number[] = [];
    const enter = (at: number): void => {
      const wait = heavy.enter(whose('x'), signal);
      if (wait) void wait.then(() => begun.push(at));
      else begun.push(at);
    };
    for (const at of [1, 2, 3, 4]) enter(at);
    expect(begun).toEqual([1, 2]);
    expect([heavy.enter(whose('y'), signal), heavy.enter(whose('x', 'b'), signal)]).toEqual([undefined, undefined]);
    heavy.leave(whose('x'));
    await turn();
    expect(begun).toEqual([1, 2, 3]);
    heavy.leave(whose('x'));
    heavy.leave(whose('x'));
    await turn();
    expect(begun).toEqual([1, 2, 3, 4]);
    heavy.leave(whose('x'));
    expect(heavy.enter(whose('x'), signal)).toBeUndefined();
  });

  test('that are given up do not begin, and hold nobody up', async () => {
    const heavy = new Heavy();
    const { signal } = new AbortController();
    const [first, second] = [new AbortController(), new AbortController()];
    second.abort('before');
    for (let at = 0; at < 2; at++) expect(heavy.enter(whose('x'), signal)).toBeUndefined();
    const waits = [first.signal, second.signal].map((each) => heavy.enter(whose('x'), each));
    const last = heavy.enter(whose('x'), signal);
    first.abort('meanwhile');
    expect(await Promise.allSettled(waits)).toEqual([
      { status: 'rejected', reason: 'meanwhile' },
      { status: 'rejected', reason: 'before' },
    ]);
    heavy.leave(whose('x'));
    await last;
    heavy.leave(whose('x'));
    heavy.leave(whose('x'));
    expect([heavy.enter(whose('x'), signal), heavy.enter(whose('x'), signal)]).toEqual([undefined, undefined]);
  });

  test('are all answered, whether they are stored or refused, more than may be worked on at a time', async () => {
    const { call } = rig();
    const text = 'x'.repeat(300_000);
    const sent = Array.from({ length: 9 }, (_, at) =>
      call('POST', ORDERS_PATH, { metadata: { name: `a${at % 6}` }, spec: { item: text } }),
    );
    const codes = (await Promise.all(sent)).map(({ code }) => code).sort();
    expect(codes).toEqual([...Array(6).fill(201), ...Array(3).fill(409)]);
  });
});
