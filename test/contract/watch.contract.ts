import { PassThrough } from 'node:stream';
import { Subject } from 'rxjs';
import { fromReadable } from '../../src/adapters/node-stream.ts';
import { fromObservable } from '../../src/adapters/rxjs.ts';
import { fromReadableStream } from '../../src/adapters/web-stream.ts';
import { Broadcaster, type Overflow } from '../../src/broadcast/broadcaster.ts';
import { filter, filterTransitions, Recorder } from '../../src/broadcast/filter.ts';
import { toDecoder } from '../../src/decode/decoder.ts';
import { StreamWatcher } from '../../src/decode/stream-watcher.ts';
import type { ContractTrait, WatchSubject } from '../../src/testing/contracts/contract.ts';
import { FakeWatcher, MockWatcher, RaceFreeFakeWatcher } from '../../src/testing/fakes/fakes.ts';
import { HistoryRecorder } from '../../src/testing/recorder/history-recorder.ts';
import type { WatchEvent } from '../../src/watch/event.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { emptyWatch, fromAsyncIterable, ProxyWatcher } from '../../src/watch/pull-watch.ts';
import type { Watch } from '../../src/watch/watch.ts';

/** Every implementation of the port: how to open one, and what it lacks. */
export interface Implementer {
  readonly name: string;
  open(): WatchSubject;
  readonly lacks: readonly ContractTrait[];
}

const event = (number: number): WatchEvent => ({ type: 'ADDED', object: { metadata: { name: `n${number}` } } });

function overBroadcaster(
  overflow: Overflow,
  wrap: (watch: Watch<WatchEvent>) => Watch<WatchEvent> = (watch) => watch,
): WatchSubject {
  const broadcaster = new Broadcaster({ overflow });
  return {
    watch: wrap(broadcaster.watch()),
    send: (number) => {
      const sent = event(number);
      void broadcaster.publish(sent);
      return sent;
    },
    end: () => void broadcaster.shutdown(),
  };
}

/** A pull source: events wait until they are requested. */
function line(): { next(): Promise<IteratorResult<WatchEvent, undefined>>; send(number: number): WatchEvent; end(): void } {
  const events: WatchEvent[] = [];
  let over = false;
  let wake = (): void => {};
  return {
    async next() {
      for (;;) {
        const value = events.shift();
        if (value !== undefined) return { done: false, value };
        if (over) return { done: true, value: undefined };
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    send: (number) => {
      const sent = event(number);
      events.push(sent);
      wake();
      return sent;
    },
    end: () => {
      over = true;
      wake();
    },
  };
}

function overLine(make: (source: ReturnType<typeof line>) => Watch<WatchEvent>): WatchSubject {
  const source = line();
  return { watch: make(source), send: source.send, end: source.end };
}

function fake(watch: RaceFreeFakeWatcher | FakeWatcher, as: Watch<WatchEvent> = watch): WatchSubject {
  const sends: unknown[] = [];
  const send = (number: number): WatchEvent => {
    const sent = event(number);
    sends.push(watch.action(sent.type, sent.object));
    return sent;
  };
  // A producer that ends has sent all its events first.
  const end = (): void => void Promise.all(sends).then(() => watch.stop());
  return { watch: as, send, end };
}

function mock(): WatchSubject {
  const inner = new RaceFreeFakeWatcher();
  const [next, stop, returns, tryNext] = [() => inner.next(), () => inner.stop(), () => inner.return(), () => inner.tryNext()];
  return fake(inner, new MockWatcher({ next, stop, return: returns, tryNext }));
}

function webStream(): WatchSubject {
  let controller: ReadableStreamDefaultController<WatchEvent> | undefined;
  const stream = new ReadableStream<WatchEvent>({
    start(own) {
      controller = own;
    },
  });
  const send = (number: number): WatchEvent => {
    const sent = event(number);
    controller?.enqueue(sent);
    return sent;
  };
  return { watch: fromReadableStream(stream), send, end: () => controller?.close() };
}

function nodeStream(): WatchSubject {
  const stream = new PassThrough({ objectMode: true });
  const send = (number: number): WatchEvent => {
    const sent = event(number);
    stream.write(sent);
    return sent;
  };
  return { watch: fromReadable(stream), send, end: () => void stream.end() };
}

function decoded(): WatchSubject {
  const source = line();
  const utf8 = new TextEncoder();
  const bytes = async function* (): AsyncGenerator<Uint8Array> {
    for (let got = await source.next(); got.done !== true; got = await source.next()) {
      yield utf8.encode(`${JSON.stringify(got.value)}\n`);
    }
  };
  return { watch: new StreamWatcher(toDecoder(bytes())), send: source.send, end: source.end };
}

function observed(): WatchSubject {
  const subject = new Subject<WatchEvent>();
  const send = (number: number): WatchEvent => {
    const sent = event(number);
    subject.next(sent);
    return sent;
  };
  return { watch: fromObservable(subject), send, end: () => subject.complete() };
}

function recorded(): WatchSubject {
  const recorder = new HistoryRecorder(new Broadcaster());
  const send = (number: number): WatchEvent => {
    const sent = event(number);
    recorder.tryPublish(sent);
    return sent;
  };
  return { watch: recorder.watch(), send, end: () => void recorder.shutdown() };
}

export const IMPLEMENTERS: readonly Implementer[] = [
  ...OVERFLOWS.map((overflow) => ({ name: `Broadcaster, ${overflow}`, open: () => overBroadcaster(overflow), lacks: [] })),
  { name: 'filter', open: () => overBroadcaster('wait', (watch) => filter(watch, (got) => got)), lacks: [] },
  { name: 'filterTransitions', open: () => overBroadcaster('wait', (watch) => filterTransitions(watch, () => true)), lacks: [] },
  { name: 'Recorder', open: () => overBroadcaster('wait', (watch) => new Recorder(watch)), lacks: [] },
  { name: 'HistoryRecorder', open: recorded, lacks: [] },
  { name: 'RaceFreeFakeWatcher', open: () => fake(new RaceFreeFakeWatcher()), lacks: [] },
  { name: 'FakeWatcher with a capacity', open: () => fake(new FakeWatcher({ capacity: 100 })), lacks: [] },
  // Senders of these wait until they are read, and keep their event if the watch is stopped.
  { name: 'FakeWatcher', open: () => fake(new FakeWatcher()), lacks: ['accepts', 'queue'] },
  { name: 'MockWatcher', open: mock, lacks: ['end', 'counts'] },
  { name: 'fromObservable', open: observed, lacks: [] },
  // These read from their source only when they are read, so unread events stay with the source.
  { name: 'fromAsyncIterable', open: () => overLine((source) => fromAsyncIterable(source)), lacks: ['queue'] },
  { name: 'ProxyWatcher', open: () => overLine((source) => new ProxyWatcher(source)), lacks: ['queue'] },
  { name: 'StreamWatcher over toDecoder', open: decoded, lacks: ['queue'] },
  { name: 'fromReadableStream', open: webStream, lacks: ['queue'] },
  { name: 'fromReadable', open: nodeStream, lacks: ['queue'] },
  { name: 'emptyWatch', open: () => ({ watch: emptyWatch(), send: event, end() {} }), lacks: ['events', 'queue'] },
];
