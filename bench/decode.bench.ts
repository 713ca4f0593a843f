import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import { toDecoder } from '../src/decode/decoder.ts';
import { StreamWatcher } from '../src/decode/stream-watcher.ts';
import type { WatchEvent } from '../src/watch/event.ts';
import { BENCH } from './paths.ts';
import { warmingUp } from './warm.ts';
import { type Entry, numberOf, type Prepared, type Settings, type Shape, type Workload } from './workload.ts';

interface Input {
  readonly bytes: Uint8Array;
  readonly lines: readonly string[];
  readonly chunks: readonly Uint8Array[];
}

/** Reads the whole stream, and passes on each event. */
type Read = (input: Input, take: (event: WatchEvent) => void) => Promise<void> | void;

/** A Node stream, like a socket or a file. Creating one from small chunks costs about as much as decoding them. */
function streamOf({ chunks }: Input): Readable {
  return Readable.from(chunks, { objectMode: false });
}

/** The cheapest possible source. */
function chunksOf({ chunks }: Input): AsyncIterable<Uint8Array> {
  const iterator = chunks.values();
  return { [Symbol.asyncIterator]: () => ({ next: () => Promise.resolve(iterator.next()) }) };
}

const READERS: readonly (Entry & { readonly read: Read })[] = [
  {
    name: 'watchmux for await',
    queue: 'bounded',
    async read(input, take) {
      for await (const event of new StreamWatcher(toDecoder<WatchEvent>(chunksOf(input)))) take(event);
    },
  },
  {
    name: 'watchmux from a Node stream',
    queue: 'bounded',
    async read(input, take) {
      for await (const event of new StreamWatcher(toDecoder<WatchEvent>(streamOf(input)))) take(event);
    },
  },
  {
    name: 'watchmux batches()',
    queue: 'bounded',
    async read(input, take) {
      const watcher = new StreamWatcher(toDecoder<WatchEvent>(chunksOf(input)));
      for await (const batch of watcher.batches()) for (const event of batch) take(event);
    },
  },
  {
    name: 'readline + JSON.parse',
    queue: 'unbounded',
    read: (input, take) =>
      new Promise((resolve) => {
        // With its event, because its async iterator is slower.
        const lines = createInterface({ input: streamOf(input), crlfDelay: Number.POSITIVE_INFINITY });
        lines.on('line', (line) => take(JSON.parse(line))).on('close', resolve);
      }),
  },
  {
    name: 'JSON.parse of ready lines',
    queue: 'none',
    read({ lines }, take) {
      for (const line of lines) take(JSON.parse(line));
    },
  },
];

function load(chunkBytes: number): Input {
  const bytes = gunzipSync(readFileSync(new URL('data/watch-stream.ndjson.gz', BENCH)));
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += chunkBytes) chunks.push(bytes.subarray(at, at + chunkBytes));
  return { bytes, chunks, lines: bytes.toString('utf8').trimEnd().split('\n') };
}

/** Identifies an event. */
function markOf({ type, object }: WatchEvent): string {
  const { metadata } = object as { metadata?: { resourceVersion?: string } };
  return `${type} ${metadata?.resourceVersion}`;
}

async function prepare(contender: string, shape: Shape, { warmMs, roundMs }: Settings): Promise<Prepared> {
  const reader = READERS.find(({ name }) => name === contender);
  if (reader === undefined) throw new Error(`there is no reader "${contender}"`);
  const input = load(numberOf(shape, 'chunkBytes'));
  const marks = input.lines.map((line) => markOf(JSON.parse(line)));
  const run = async (passes: number): Promise<number> => {
    let wrong = 0;
    const began = performance.now();
    for (let pass = 0; pass < passes; pass++) {
      let next = 0;
      await reader.read(input, (event) => {
        if (markOf(event) !== marks[next++]) wrong++;
      });
      if (wrong > 0 || next !== marks.length) throw new Error(`wrong answer: ${wrong} of ${next}, with ${marks.length} due`);
    }
    return (performance.now() - began) / 1000;
  };
  // Compares whole events once. From then on, only marks are compared.
  let at = 0;
  await reader.read(input, (event) => {
    if (JSON.stringify(event) !== JSON.stringify(JSON.parse(input.lines[at++] as string)))
      throw new Error(`wrong answer: event ${at}`);
  });
  // A pass has 160 events and takes milliseconds. With the usual time, it would measure compilation, and cold processor caches
  // after the other contenders' turns.
  const cold = warmingUp(4 * warmMs);
  let seconds: number;
  do seconds = await run(1);
  while (cold());
  const passes = Math.max(2, Math.round((2 * roundMs) / 1000 / seconds));
  const round = async (): Promise<number[]> => {
    await run(1);
    return [(passes * input.bytes.length) / (await run(passes)) / 1e6];
  };
  return { round };
}

/** Real Kubernetes objects, from the bytes of a stream to events. The control starts from strings. */
export const decode: Workload = {
  name: 'decode',
  about: 'a watch stream of Kubernetes objects, 1.7 MB in chunks of 64 KiB and of 1 KiB, to events',
  reference: 'JSON.parse of ready lines',
  shapes: () => [{ chunkBytes: 65_536 }, { chunkBytes: 1_024 }],
  figures: () => [{ shape: {}, unit: 'MB/s', better: 'higher' }],
  entries: () => READERS,
  prepare,
};
