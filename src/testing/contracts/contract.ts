import { sleep } from '../../watch/clock.ts';
import { type ContractCase, expectDone, expectSame, expectThat, readAll, sendSome } from './contract-case.ts';
import { ENDING } from './contract-ends.ts';

const order: ContractCase = {
  name: 'delivers what its source yields, in order, then is done for ever',
  needs: 'events',
  async run(open) {
    const subject = open();
    const sent = sendSome(subject, 5);
    subject.end();
    expectSame(await readAll(subject.watch), sent, 'all events in order');
    await expectDone(subject.watch);
  },
};

const ended: ContractCase = {
  name: 'is stopped once its source has ended and all was read',
  needs: 'end',
  async run(open) {
    const { watch, end } = open();
    end();
    expectThat((await watch.next()).done === true, 'the end');
    expectThat(watch.stopped, 'stopped to be true at the end');
  },
};

const fifo: ContractCase = {
  name: 'serves waiting reads in the order of their calls, including batches',
  needs: 'events',
  async run(open) {
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
  },
};

const mixed: ContractCase = {
  name: 'keeps the order over next, tryNext and batches, and its batches are not empty',
  needs: 'events',
  async run(open) {
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
  },
};

const polls: ContractCase = {
  name: 'tryNext never waits, and a reader that only polls gets everything',
  needs: 'events',
  async run(open) {
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
  },
};

const begins: ContractCase = {
  name: 'begins open, is its own iterator, and its numbers are sane',
  needs: 'events',
  async run(open) {
    const { watch } = open();
    expectThat(!watch.stopped, 'a watch that is not stopped yet');
    expectThat(watch[Symbol.asyncIterator]() === watch, 'a watch that is its own iterator');
    expectThat(watch.queued === 0 && watch.dropped === 0, 'nothing queued and nothing dropped', [watch.queued, watch.dropped]);
    await watch.return();
  },
};

/**
 * What every implementer of {@link Watch} must do. Works with any test runner:
 *
 *     for (const { name, run } of WATCH_CONTRACT) test(name, () => run(() => ({ watch, send, end })));
 */
export const WATCH_CONTRACT: readonly ContractCase[] = [begins, order, ended, fifo, mixed, polls, ...ENDING];
