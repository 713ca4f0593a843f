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

  it('joins exactly as a list of what tryPublish has accepted; an event whose publish still waits arrives again', async () => {
    const broadcaster = new Broadcaster<{ type: 'a'; object: number }>({ capacity: 1, incoming: 1 });
    const full = broadcaster.watch();
    const list: { type: 'a'; object: number }[] = [];
    const refused: number[] = [];
    for (let object = 1; object <= 4; object++) {
      if (broadcaster.tryPublish({ type: 'a', object })) list.push({ type: 'a', object });
      else refused.push(object);
    }
    expect(refused).toEqual([3, 4]);
    const waiting = { type: 'a', object: 5 } as const;
    const published = broadcaster.publish(waiting);
    const exact = broadcaster.watch({ prefix: list });
    const twice = broadcaster.watch({ prefix: [...list, waiting] });
    await full.return();
    await published;
    await broadcaster.shutdown();
    const read = async (watch: typeof exact): Promise<number[]> => {
      const objects: number[] = [];
      for await (const { object } of watch) objects.push(object);
      return objects;
    };
    expect(await read(exact)).toEqual([1, 2, 5]);
    expect(await read(twice)).toEqual([1, 2, 5, 5]);
  });
});
