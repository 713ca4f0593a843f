import { describe, expect, it } from 'vitest';
import { Broadcaster } from '../../src/broadcast/broadcaster.ts';

describe('a prefix', () => {
  const prefix = [1, 2, 3, 4].map((object) => ({ type: 'a', object }));

  it('goes through the filter; if that throws, the events it accepted before are delivered, then the error', async () => {
    const watch = new Broadcaster().watch({
      prefix,
      filter: ({ object }) => {
        if (object === 3) throw new Error('three');
        return object !== 1;
      },
    });
    expect(await watch.next()).toEqual({ done: false, value: prefix[1] });
    await expect(watch.next()).rejects.toThrow('three');
    expect(await watch.next()).toEqual({ done: true, value: undefined });
  });
});
