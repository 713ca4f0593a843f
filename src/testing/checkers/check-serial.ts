import { getOrMake } from '../../watch/errors.ts';
import { checkSteps, type Finding, type StepNames, show, type Violation, violation } from './history.ts';

/** One thing that happened to a work queue, in the order in which it was seen. */
export type QueueStep<K = unknown> =
  /** `add` was called, or a delayed key was added. */
  | { readonly step: 'add'; readonly key: K }
  /** `addAfter` or `addRateLimited` was called: it will be added, unless the queue is shut down before. */
  | { readonly step: 'delay'; readonly key: K }
  /** A worker got the key, and begins to process it. */
  | { readonly step: 'get'; readonly key: K; readonly worker?: string }
  | { readonly step: 'done'; readonly key: K }
  /** `shutDown` or `drain` was called. */
  | { readonly step: 'shutdown' }
  /** `drain` has resolved, and not because of a `shutDown`. */
  | { readonly step: 'drained' };

/** What happened to a work queue. A test records it where it calls the queue, and where its workers begin and end. */
export interface QueueHistory<K = unknown> {
  readonly steps: readonly QueueStep<K>[];
  /** Two keys are the same if this returns equal values for them; default: the key itself. */
  readonly keyOf?: ((key: K) => unknown) | undefined;
}

const STEPS: StepNames<QueueStep> = { add: true, delay: true, get: true, done: true, shutdown: true, drained: true };

/** What is known about a key. */
interface KeyRecord {
  worker: string | undefined;
  inHand: boolean;
  /** The place of the first add that no run has followed. */
  dueSince: number | undefined;
  /** Adds and delays minus runs: each run needs one of its own. */
  asked: number;
}

/**
 * **Serial**: no key is processed by two workers at once; every add before shutdown is followed by a run that starts after it. A run
 * that was not requested is also a violation. Whether every add was followed by a run is checked where the history says `drained`:
 * before that, the key may still be queued.
 */
export function checkSerial<K>({ steps, keyOf = (key) => key }: QueueHistory<K>): Violation | undefined {
  checkSteps(steps, STEPS);
  const keys = new Map<unknown, KeyRecord>();
  let over = false;
  for (const [at, each] of steps.entries()) {
    if (each.step === 'shutdown') over = true;
    else if (each.step === 'drained') {
      const left = leftOver(keys, over);
      if (left) return left;
    } else {
      const id = keyOf(each.key);
      const known = getOrMake(keys, id, () => ({ worker: undefined, inHand: false, dueSince: undefined, asked: 0 }));
      const wrong = apply(known, each, { at, over });
      if (wrong) return violation('Serial', { event: id, ...wrong });
    }
  }
  return undefined;
}

function apply<K>(
  known: KeyRecord,
  each: Exclude<QueueStep<K>, { step: 'shutdown' | 'drained' }>,
  { at, over }: { at: number; over: boolean },
): Finding | undefined {
  switch (each.step) {
    case 'add':
    case 'delay':
      if (over) return undefined;
      known.asked++;
      if (each.step === 'add') known.dueSince ??= at;
      return undefined;
    case 'get': {
      const { worker } = each;
      const whose = worker === undefined ? {} : { watcher: worker };
      const seen = known.worker === undefined ? 'it handed out before it was done' : `it still processed by ${known.worker}`;
      if (known.inHand) return { ...whose, expected: 'one worker at a time', seen };
      if (known.asked === 0) return { ...whose, expected: 'a run that was asked for', seen: 'one more' };
      known.asked--;
      known.inHand = true;
      known.worker = worker;
      known.dueSince = undefined;
      return undefined;
    }
    case 'done':
      known.inHand = false;
      return undefined;
  }
}

function leftOver(keys: ReadonlyMap<unknown, KeyRecord>, over: boolean): Violation | undefined {
  if (!over) return violation('Serial', { expected: 'a shutdown before the end', seen: 'none' });
  for (const [event, { dueSince, inHand }] of keys) {
    if (inHand) return violation('Serial', { event, expected: 'it done when the queue is drained', seen: 'it in work' });
    if (dueSince === undefined) continue;
    return violation('Serial', {
      event,
      expected: `a run after step ${dueSince}`,
      seen: `none, and ${show(event)} was added there`,
    });
  }
  return undefined;
}
