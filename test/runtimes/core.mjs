// Everything that needs no network, for runtimes.test.ts: the contract of a watch, every policy, filters, streams, and garbage
// collection. Prints what it tried; throws at a failure.
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { Subject } from 'rxjs';
import { Broadcaster, filter, filterTransitions, fromReadableStream, isErrorEvent, StreamWatcher, toDecoder } from 'watchmux';
import { fromReadable, toReadable } from 'watchmux/node-stream';
import { fromObservable, observe } from 'watchmux/rxjs';
import { checkHistory, FakeWatcher, HistoryRecorder, RaceFreeFakeWatcher, WATCH_CONTRACT } from 'watchmux/testing';

const POLICIES = ['wait', 'drop-newest', 'drop-oldest', 'disconnect', 'coalesce'];
const event = (number) => ({ type: 'ADDED', object: { metadata: { name: `n${number}` } } });

function over(broadcaster, watch) {
  const send = (number) => {
    const sent = event(number);
    broadcaster.tryPublish(sent);
    return sent;
  };
  return { watch, send, end: () => void broadcaster.shutdown() };
}

function fed(watch, send, end) {
  return {
    watch,
    send: (number) => {
      const sent = event(number);
      send(sent);
      return sent;
    },
    end,
  };
}

function wrapped(wrap) {
  const broadcaster = new Broadcaster();
  return over(broadcaster, wrap(broadcaster.watch()));
}

function observed() {
  const subject = new Subject();
  return fed(
    fromObservable(subject),
    (sent) => subject.next(sent),
    () => subject.complete(),
  );
}

function fromWeb(wrap, encode = (sent) => sent) {
  let own;
  const stream = new ReadableStream({
    start(controller) {
      own = controller;
    },
  });
  return fed(
    wrap(stream),
    (sent) => own.enqueue(encode(sent)),
    () => own.close(),
  );
}

function fromNode() {
  const stream = new PassThrough({ objectMode: true });
  return fed(
    fromReadable(stream),
    (sent) => void stream.write(sent),
    () => void stream.end(),
  );
}

function faked(watch) {
  return fed(
    watch,
    (sent) => void watch.action(sent.type, sent.object),
    () => watch.stop(),
  );
}

const utf8 = new TextEncoder();
const toLine = (sent) => utf8.encode(`${JSON.stringify(sent)}\n`);
const pulled = ['queue'];
const SUBJECTS = {
  ...Object.fromEntries(
    POLICIES.map((overflow) => {
      const open = () => {
        const broadcaster = new Broadcaster({ overflow });
        return over(broadcaster, broadcaster.watch());
      };
      return [overflow, { open }];
    }),
  ),
  filter: { open: () => wrapped((watch) => filter(watch, (got) => got)) },
  filterTransitions: { open: () => wrapped((watch) => filterTransitions(watch, () => true)) },
  HistoryRecorder: {
    open: () => {
      const recorder = new HistoryRecorder(new Broadcaster());
      return over(recorder, recorder.watch());
    },
  },
  FakeWatcher: { open: () => faked(new FakeWatcher({ capacity: 100 })) },
  RaceFreeFakeWatcher: { open: () => faked(new RaceFreeFakeWatcher()) },
  fromObservable: { open: observed },
  StreamWatcher: { open: () => fromWeb((stream) => new StreamWatcher(toDecoder(stream)), toLine), lacks: pulled },
  fromReadableStream: { open: () => fromWeb(fromReadableStream), lacks: pulled },
  fromReadable: { open: fromNode, lacks: pulled },
};

for (const [name, { open, lacks = [] }] of Object.entries(SUBJECTS)) {
  for (const { name: rule, needs, run } of WATCH_CONTRACT) {
    if (lacks.includes(needs)) await assert.rejects(run(open), /^Error: watch contract: expected/, `${name}: ${rule}`);
    else await run(open);
  }
  console.log(`contract: ${name}, ${WATCH_CONTRACT.length} cases`);
}

const WITH_CAPACITY_2 = {
  wait: [1, 2, 3, 4, 5],
  'drop-newest': [1, 2],
  'drop-oldest': [4, 5],
  disconnect: [1, 2, 410],
  coalesce: [5],
};
for (const [overflow, expected] of Object.entries(WITH_CAPACITY_2)) {
  const recorder = new HistoryRecorder(new Broadcaster({ incoming: 10 }));
  const watch = recorder.watch({ overflow, capacity: 2 });
  for (const step of [1, 2, 3, 4, 5]) await recorder.publish({ type: 'MODIFIED', object: { metadata: { name: 'job' }, step } });
  const closed = recorder.shutdown();
  const got = [];
  for await (const read of watch) got.push(isErrorEvent(read) ? read.object.code : read.object.step);
  await closed;
  assert.deepEqual(got, expected, overflow);
  assert.deepEqual(checkHistory(recorder.history()), [], overflow);
}
console.log('policies, and what the checkers of their history say');

const source = new Broadcaster();
const abort = new AbortController();
const aborted = source.watch({ signal: abort.signal });
{
  using disposed = source.watch();
  await using returned = source.watch();
  await source.publish(event(1));
  assert.deepEqual([source.watchers, disposed.queued, returned.queued], [3, 1, 1]);
}
assert.equal(source.watchers, 1);
abort.abort();
assert.deepEqual([source.watchers, aborted.queued, aborted.stopped], [0, 1, true]);
console.log('using, await using, abort');

const heard = [];
observe(source).subscribe((got) => heard.push(got));
const all = toReadable(source.watch()).toArray();
for (let i = 0; i < 1_000; i++) await source.publish(event(i));
await source.shutdown();
const read = await all;
assert.deepEqual([heard.length, read.length, read[999]], [1_000, 1_000, event(999)]);
console.log('observe, toReadable');
