import { describe, expect, test } from 'vitest';
import { ProxyWatcher } from '../../src/watch/pull-watch.ts';

const done = { done: true, value: undefined };
const value = <T>(of: T): { done: false; value: T } => ({ done: false, value: of });

/** An owner that holds a queue and ends it when told to. */
function owner(...events: string[]): { iterator: AsyncIterator<string, undefined>; finish: () => void; returned: () => boolean } {
  let wake: (() => void) | undefined;
  let over = false;
  let returned = false;
  const iterator: AsyncIterator<string, undefined> = {
    async next() {
      while (events.length === 0 && !over) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      return events.length > 0 ? { done: false, value: events.shift() as string } : { done: true, value: undefined };
    },
    async return() {
      returned = true;
      return { done: true, value: undefined };
    },
  };
  const finish = (): void => {
    over = true;
    wake?.();
  };
  return { iterator, finish, returned: () => returned };
}

describe('ProxyWatcher', () => {
  test('TestProxyWatcher: events come out in order; stop fires the signal; a second stop is harmless', async () => {
    const { iterator } = owner('a', 'b', 'c');
    const watch = new ProxyWatcher(iterator);
    expect([await watch.next(), await watch.next(), await watch.next()]).toEqual([value('a'), value('b'), value('c')]);
    let fired = 0;
    watch.stopSignal.addEventListener('abort', () => {
      fired++;
      expect(watch.stopped).toBe(true);
    });
    expect([watch.stopping(), watch.stopSignal.aborted, watch.stopped]).toEqual([false, false, false]);
    watch.stop();
    watch.stop();
    expect([watch.stopping(), watch.stopSignal.aborted, watch.stopped, fired]).toEqual([true, true, true, 1]);
  });

  test('ends on stop, even while a read waits for an owner that never ends', async () => {
    const { iterator, returned } = owner();
    const watch = new ProxyWatcher(iterator);
    const read = watch.next();
    watch.stop();
    expect(await read).toEqual(done);
    expect(await watch.next()).toEqual(done);
    expect(returned()).toBe(false);
  });

  test('with endOnStop false, the owner ends it, after sending what is left', async () => {
    const { iterator, finish } = owner('last', 'words');
    const watch = new ProxyWatcher(iterator, { endOnStop: false });
    watch.stopSignal.addEventListener('abort', finish);
    watch.stop();
    expect(watch.stopped).toBe(true);
    expect(await watch.next()).toEqual(value('last'));
    expect(await watch.next()).toEqual(value('words'));
    expect(await watch.next()).toEqual(done);
  });

  test('with endOnStop false, a read waits until the owner ends it', async () => {
    const { iterator, finish } = owner();
    const watch = new ProxyWatcher(iterator, { endOnStop: false });
    let settled = false;
    const read = watch.next().finally(() => {
      settled = true;
    });
    watch.stop();
    await new Promise((resolve) => setImmediate(resolve));
    expect(settled).toBe(false);
    finish();
    expect(await read).toEqual(done);
  });

  test.each([true, false])('return fires the signal and ends it at once (endOnStop: %s)', async (endOnStop) => {
    const { iterator, returned } = owner('a');
    const watch = new ProxyWatcher(iterator, { endOnStop });
    for await (const event of watch) {
      expect(event).toBe('a');
      break;
    }
    expect([watch.stopping(), watch.stopped, returned()]).toEqual([true, true, false]);
    expect(await watch.next()).toEqual(done);
  });

  test('its own end fires nothing; a stop after it still does', async () => {
    const { iterator, finish } = owner();
    const watch = new ProxyWatcher(iterator);
    finish();
    expect(await watch.next()).toEqual(done);
    expect([watch.stopped, watch.stopping()]).toEqual([true, false]);
    watch.stop();
    expect(watch.stopping()).toBe(true);
  });

  test('also accepts an iterable, and passes on its error once', async () => {
    async function* failing(): AsyncGenerator<string> {
      yield 'a';
      throw new Error('owner failed');
    }
    const watch = new ProxyWatcher(failing());
    expect(await watch.next()).toEqual(value('a'));
    await expect(watch.next()).rejects.toThrow('owner failed');
    expect(await watch.next()).toEqual(done);
  });
});
