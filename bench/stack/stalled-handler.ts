import { setImmediate } from 'node:timers/promises';
import { Informer } from '../../src/cache/informer/informer.ts';
import { FakeListWatcher } from '../../src/testing/fakes/fake-list-watcher.ts';
import type { Prepared } from '../workload.ts';

interface Numbered {
  readonly metadata: { readonly name: string; readonly resourceVersion?: string };
  readonly update: number;
}

/**
 * A handler does not return from a call while all the updates come; another one goes on. Measured: how many changes ever wait for the
 * first one. In the end both must have been told the latest of every object.
 */
export function prepareStalledHandler({ objects, updates }: { objects: number; updates: number }): Prepared {
  /** Updates between two turns of the event loop: no object twice, which would be one change for the quick handler. */
  const atOnce = Math.min(500, objects);
  const make = (object: number, update: number): Numbered => ({ metadata: { name: `object-${object}` }, update });
  const last = (told: ReadonlyMap<string, number>): number =>
    [...told.values()].filter((update) => update > updates - objects && update <= updates).length;
  const round = async (): Promise<readonly number[]> => {
    const source = new FakeListWatcher<Numbered>({ objects: Array.from({ length: objects }, (_, object) => make(object, 0)) });
    const informer = new Informer(source);
    const [toldSlow, toldQuick] = [new Map<string, number>(), new Map<string, number>()];
    let release = (): void => {};
    const stall = new Promise<void>((resolve) => (release = resolve));
    const take = (told: Map<string, number>, { metadata, update }: Numbered): void => void told.set(metadata.name, update);
    const slow = informer.addHandler({
      onUpdate(_, object) {
        take(toldSlow, object);
        return stall;
      },
    });
    let calls = 0;
    const quick = informer.addHandler({
      onUpdate(_, object) {
        calls++;
        take(toldQuick, object);
      },
    });
    const stopped = informer.run();
    await Promise.all([slow.synced, quick.synced]);
    let most = 0;
    for (let update = 1; update <= updates; ) {
      for (const end = Math.min(update + atOnce, updates + 1); update < end; update++)
        source.modify(make(update % objects, update));
      while (calls < update - 1) await setImmediate();
      most = Math.max(most, slow.queued);
    }
    release();
    while (slow.queued > 0) await setImmediate();
    if (calls !== updates || last(toldQuick) !== objects || last(toldSlow) !== objects) {
      throw new Error(`wrong answer: ${calls} calls; the latest of ${last(toldQuick)} and ${last(toldSlow)} objects`);
    }
    await Promise.all([informer.stop(), stopped]);
    return [most];
  };
  return { round };
}
