import { sleep } from '../../watch/clock.ts';
import type { Watch } from '../../watch/watch.ts';
import { show } from '../checkers/history.ts';

/** A new watch under test, and control over its source. */
export interface WatchSubject<E = unknown> {
  readonly watch: Watch<E>;
  /**
   * Makes the source emit one more event. Returns the event, or one with the same JSON, as the watch must deliver it. `number`
   * counts from 0.
   */
  send(number: number): E;
  /** Ends the source, after the events sent so far. */
  end(): void;
}

/**
 * What some watches do not provide. An implementation without a trait declares that.
 *
 * - `events`: it is open at the start and delivers what its source emits.
 * - `accepts`: it has accepted the `queued` events, so `return` counts them as dropped.
 * - `counts`: its `queued` counts all events that can be read without waiting.
 * - `end`: its `stopped` also reports the end of its source.
 * - `queue`: it holds events that were sent and not read, and `stop` leaves them readable. Other watches read only on demand.
 */
export type ContractTrait = 'accepts' | 'counts' | 'events' | 'end' | 'queue';

/** One requirement that every watch must meet. */
export interface ContractCase {
  readonly name: string;
  /** The trait this case needs. For a watch without it, `run` must reject, so that a declared lack is proved. */
  readonly needs?: ContractTrait;
  /** Opens watches and tests them. Rejects with an error that says what was expected. */
  run<E>(open: () => WatchSubject<E>): Promise<void>;
}

/** The cases of a contract by name: what each does, and the trait that it needs, if any. */
export type Runs<Trait, Run> = Readonly<Record<string, Run | Needing<Trait, Run>>>;

interface Needing<Trait, Run> {
  readonly needs: Trait;
  readonly run: Run;
}

/** A case that needs a trait. */
export function needs<Trait extends string, Run>(trait: Trait, run: Run): Needing<Trait, Run> {
  return { needs: trait, run };
}

/** The cases in the order in which they are written. */
export function casesOf<Trait, Run extends (subject: never) => Promise<void>>(
  runs: Runs<Trait, Run>,
): { readonly name: string; readonly needs?: Trait; readonly run: Run }[] {
  return Object.entries(runs).map(([name, each]) => (typeof each === 'function' ? { name, run: each } : { name, ...each }));
}

function watchCases(runs: Runs<ContractTrait, (open: () => WatchSubject) => Promise<void>>): readonly ContractCase[] {
  return casesOf(runs);
}

/** Throws an error that says what was expected, unless `truth` holds. */
function expectThat(truth: boolean, expected: string, seen?: unknown): void {
  if (!truth) throw new Error(`watch contract: expected ${expected}${seen === undefined ? '' : `, got ${show(seen)}`}`);
}

/** Expects these events to be the ones that were sent, or equal to them. */
function expectSame(got: readonly unknown[], sent: readonly unknown[], what: string): void {
  for (let at = 0; at < Math.max(got.length, sent.length); at++) {
    if (at < got.length && at < sent.length && equal(got[at], sent[at])) continue;
    const [is, was] = [got, sent].map((events) => (at < events.length ? show(events[at]) : 'nothing'));
    expectThat(false, `${what}: number ${at} of ${sent.length} to be ${was}, got ${is}`);
  }
}

/** Whether they are the same value, or have the same JSON: all of it, because long events may begin alike. */
function equal(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  const digits = (_key: string, value: unknown): unknown => (typeof value === 'bigint' ? `${value}n` : value);
  try {
    const text = JSON.stringify(one, digits);
    return text !== undefined && text === JSON.stringify(other, digits);
  } catch {
    return false; // a cycle
  }
}

/** Whether a promise settles on its own, within a few microtasks. */
async function settlesAtOnce(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = (): void => {
    settled = true;
  };
  promise.then(note, note);
  for (let i = 0; i < 20 && !settled; i++) await Promise.resolve();
  return settled;
}

async function readAll<E>(watch: Watch<E>): Promise<E[]> {
  const events: E[] = [];
  for (let result = await watch.next(); result.done !== true; result = await watch.next()) events.push(result.value);
  return events;
}

/** Makes the source emit `count` events. */
function sendSome<E>(subject: WatchSubject<E>, count: number): E[] {
  return Array.from({ length: count }, (_, number) => subject.send(number));
}

/** Expects a watch to be over, by every way of reading it. */
async function expectDone<E>(watch: Watch<E>): Promise<void> {
  for (let i = 0; i < 2; i++) {
    expectThat((await watch.next()).done === true, 'next() to be done, forever');
    expectThat((await watch.batches().next()).done === true, 'batches() to be done, forever');
    expectThat(watch.tryNext() === undefined, 'tryNext() to find nothing, forever');
  }
}

/** Expects pending reads to end on their own. */
async function expectAllDone(reads: readonly Promise<IteratorResult<unknown, undefined>>[], by: string): Promise<void> {
  for (const [index, read] of reads.entries()) {
    expectThat(await settlesAtOnce(read), `read ${index} to be settled by ${by} at once`);
    expectThat((await read).done === true, `read ${index} to be done by ${by}`);
  }
}

/** What every watch must do when either side ends it. */
const ENDING: readonly ContractCase[] = watchCases({
  'return settles itself and every read that waits, at once, and ends the watch': async (open) => {
    const { watch } = open();
    const reads = [watch.next(), watch.batches().next(), watch.next()] as const;
    const returned = watch.return();
    await expectAllDone([...reads, returned], 'return()');
    expectThat(watch.stopped, 'stopped to be true after return()');
    await expectDone(watch);
  },

  'stop settles every read that waits, at once': async (open) => {
    const { watch } = open();
    const reads = [watch.next(), watch.batches().next(), watch.next()] as const;
    watch.stop();
    await expectAllDone([...reads], 'stop()');
    await expectDone(watch);
  },

  'stop and return may be called again and in any order': async (open) => {
    const { watch } = open();
    for (let i = 0; i < 3; i++) {
      watch.stop();
      expectThat(watch.stopped, 'stopped to be true after stop()');
      await watch.return();
    }
    watch.stop();
    await expectDone(watch);
  },

  'stop leaves all that is queued readable, then is done; what comes later is not queued': needs('queue', async (open) => {
    const subject = open();
    const sent = sendSome(subject, 3);
    subject.watch.stop();
    expectSame(await readAll(subject.watch), sent, 'what was queued at stop()');
    await expectDone(subject.watch);
  }),

  'queued promises no more than can be read without waiting, even after stop, and no less': needs('counts', async (open) => {
    const subject = open();
    sendSome(subject, 3);
    await subject.watch.next(); // starts the source of a watch that reads only on demand
    for (const stop of [false, true]) {
      if (stop) subject.watch.stop();
      const { queued } = subject.watch;
      expectThat(Number.isSafeInteger(queued) && queued >= 0, 'queued to be a whole number', queued);
      if (!stop) continue;
      for (let i = 0; i < queued; i++) expectThat(subject.watch.tryNext() !== undefined, `${queued} queued events`, i);
      expectThat(subject.watch.queued === 0, 'nothing queued after that', subject.watch.queued);
    }
    await expectDone(subject.watch);
  }),

  'return discards what is queued, and counts it as dropped': needs('accepts', async (open) => {
    const subject = open();
    sendSome(subject, 3);
    const { queued, dropped } = subject.watch;
    await subject.watch.return();
    const now = { queued: subject.watch.queued, dropped: subject.watch.dropped };
    expectThat(now.queued === 0, 'nothing queued after return()', now.queued);
    expectThat(now.dropped === dropped + queued, `dropped to be ${dropped + queued}`, now.dropped);
    await expectDone(subject.watch);
  }),

  'break out of for await, over events and over batches, ends the watch': needs('events', async (open) => {
    for (const pick of [<E>(watch: Watch<E>) => watch, <E>(watch: Watch<E>) => watch.batches()]) {
      const subject = open();
      sendSome(subject, 3);
      let turns = 0;
      for await (const _ of pick(subject.watch)) {
        turns++;
        break;
      }
      expectThat(turns === 1, 'an event to break at');
      await expectDone(subject.watch);
    }
  }),

  'using and await using end the watch, and so do those of its batches': async (open) => {
    for (const pick of [<E>(watch: Watch<E>) => watch, <E>(watch: Watch<E>) => watch.batches()]) {
      const [first, second] = [open().watch, open().watch];
      pick(first)[Symbol.dispose]();
      await pick(second)[Symbol.asyncDispose]();
      await expectDone(first);
      await expectDone(second);
    }
  },
});

/**
 * What every implementer of {@link Watch} must do. Works with any test runner:
 *
 *     for (const { name, run } of WATCH_CONTRACT) test(name, () => run(() => ({ watch, send, end })));
 */
export const WATCH_CONTRACT: readonly ContractCase[] = [
  ...watchCases({
    'begins open, is its own iterator, and its numbers are sane': needs('events', async (open) => {
      const { watch } = open();
      expectThat(!watch.stopped, 'a watch that is not stopped yet');
      expectThat(watch[Symbol.asyncIterator]() === watch, 'a watch that is its own iterator');
      expectThat(watch.queued === 0 && watch.dropped === 0, 'nothing queued and nothing dropped', [watch.queued, watch.dropped]);
      await watch.return();
    }),

    'delivers what its source yields, in order, then is done forever': needs('events', async (open) => {
      const subject = open();
      const sent = sendSome(subject, 5);
      subject.end();
      expectSame(await readAll(subject.watch), sent, 'all events in order');
      await expectDone(subject.watch);
    }),

    'is stopped once its source has ended and all was read': needs('end', async (open) => {
      const { watch, end } = open();
      end();
      expectThat((await watch.next()).done === true, 'the end');
      expectThat(watch.stopped, 'stopped to be true at the end');
    }),

    'serves waiting reads in the order of their calls, including batches': needs('events', async (open) => {
      const subject = open();
      const { watch } = subject;
      const batches = watch.batches();
      const reads = [watch.next(), batches.next(), watch.next()];
      const settled: number[] = [];
      for (const [index, read] of reads.entries()) read.then(() => settled.push(index));
      const sent: unknown[] = [];
      for (const [index, read] of reads.entries()) {
        sent.push(subject.send(index));
        await read;
      }
      const got = (await Promise.all(reads)).flatMap(({ value }) => value as unknown);
      expectSame(got, sent, 'each read its own event');
      expectSame(settled, [0, 1, 2], 'reads settled in order');
      subject.end();
    }),

    'keeps the order over next, tryNext and batches, and its batches are not empty': needs('events', async (open) => {
      const subject = open();
      const sent = sendSome(subject, 7);
      subject.end();
      const got: unknown[] = [];
      const batches = subject.watch.batches();
      for (let turn = 0; turn < 50; turn++) {
        const event = subject.watch.tryNext();
        if (event !== undefined) got.push(event);
        const one = await subject.watch.next();
        if (one.done === true) break;
        got.push(one.value);
        const batch = await batches.next();
        if (batch.done === true) break;
        expectThat(batch.value.length > 0, 'a batch that is not empty');
        got.push(...batch.value);
      }
      expectSame(got, sent, 'all events in order');
    }),

    'tryNext never waits, and a reader that only polls gets everything': needs('events', async (open) => {
      const subject = open();
      const sent = sendSome(subject, 3);
      const got: unknown[] = [];
      for (let turn = 0; turn < 100 && got.length < sent.length; turn++) {
        const event = subject.watch.tryNext();
        if (event === undefined) await sleep(0);
        else got.push(event);
      }
      expectSame(got, sent, 'all events by polling');
      expectThat(subject.watch.tryNext() === undefined, 'tryNext() to find nothing more');
      await subject.watch.return();
    }),
  }),
  ...ENDING,
];
