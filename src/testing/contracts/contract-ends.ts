import type { Watch } from '../../watch/watch.ts';
import { type ContractCase, expectAllDone, expectDone, expectSame, expectThat, readAll, sendSome } from './contract-case.ts';

const pendingReturn: ContractCase = {
  name: 'return settles itself and every read that waits, at once, and ends the watch',
  async run(open) {
    const { watch } = open();
    const reads = [watch.next(), watch.batches().next(), watch.next()] as const;
    const returned = watch.return();
    await expectAllDone([...reads, returned], 'return()');
    expectThat(watch.stopped, 'stopped to be true after return()');
    await expectDone(watch);
  },
};

const pendingStop: ContractCase = {
  name: 'stop settles every read that waits, at once',
  async run(open) {
    const { watch } = open();
    const reads = [watch.next(), watch.batches().next(), watch.next()] as const;
    watch.stop();
    await expectAllDone([...reads], 'stop()');
    await expectDone(watch);
  },
};

const idempotent: ContractCase = {
  name: 'stop and return may be called again and in any order',
  async run(open) {
    const { watch } = open();
    for (let i = 0; i < 3; i++) {
      watch.stop();
      expectThat(watch.stopped, 'stopped to be true after stop()');
      await watch.return();
    }
    watch.stop();
    await expectDone(watch);
  },
};

const keeps: ContractCase = {
  name: 'stop leaves all that is queued readable, then is done; what comes later is not queued',
  needs: 'queue',
  async run(open) {
    const subject = open();
    const sent = sendSome(subject, 3);
    subject.watch.stop();
    expectSame(await readAll(subject.watch), sent, 'what was queued at stop()');
    await expectDone(subject.watch);
  },
};

const promised: ContractCase = {
  name: 'queued promises no more than can be read without waiting, even after stop, and no less',
  needs: 'counts',
  async run(open) {
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
  },
};

const discards: ContractCase = {
  name: 'return discards what is queued, and counts it as dropped',
  needs: 'accepts',
  async run(open) {
    const subject = open();
    sendSome(subject, 3);
    const { queued, dropped } = subject.watch;
    await subject.watch.return();
    const now = { queued: subject.watch.queued, dropped: subject.watch.dropped };
    expectThat(now.queued === 0, 'nothing queued after return()', now.queued);
    expectThat(now.dropped === dropped + queued, `dropped to be ${dropped + queued}`, now.dropped);
    await expectDone(subject.watch);
  },
};

const leaves: ContractCase = {
  name: 'break out of for await, over events and over batches, ends the watch',
  needs: 'events',
  async run(open) {
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
  },
};

const disposes: ContractCase = {
  name: 'using and await using end the watch, and so do those of its batches',
  async run(open) {
    for (const pick of [<E>(watch: Watch<E>) => watch, <E>(watch: Watch<E>) => watch.batches()]) {
      const [first, second] = [open().watch, open().watch];
      pick(first)[Symbol.dispose]();
      await pick(second)[Symbol.asyncDispose]();
      await expectDone(first);
      await expectDone(second);
    }
  },
};

/** What every watch must do when either side ends it. */
export const ENDING: readonly ContractCase[] = [
  pendingReturn,
  pendingStop,
  idempotent,
  keeps,
  promised,
  discards,
  leaves,
  disposes,
];
