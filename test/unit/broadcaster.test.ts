import { describe, expect, it } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';

describe('smoke', () => {
  it('delivers', async () => {
    const b = new Broadcaster({ capacity: 2, overflow: 'drop-newest' });
    const w = b.watch();
    const p = w.next();
    b.tryPublish({ type: 'a', object: 1 });
    b.tryPublish({ type: 'a', object: 2 });
    b.tryPublish({ type: 'a', object: 3 });
    b.tryPublish({ type: 'a', object: 4 });
    expect((await p).value?.object).toBe(1);
    expect(w.queued).toBe(2);
    expect(w.dropped).toBe(1);
    await b.shutdown();
    expect((await w.next()).value?.object).toBe(2);
    expect((await w.next()).value?.object).toBe(3);
    expect(await w.next()).toEqual({ done: true, value: undefined });
  });
});
