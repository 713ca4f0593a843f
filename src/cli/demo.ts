import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { createServer, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHttpHandler } from '../bridge/http.ts';
import { Hub } from '../bridge/hub/hub.ts';
import { Broadcaster } from '../broadcast/broadcaster.ts';
import { toDecoder } from '../decode/decoder.ts';
import { StreamWatcher } from '../decode/stream-watcher.ts';
import { sleep } from '../watch/clock.ts';
import type { Watch } from '../watch/watch.ts';
import type { DemoCommand } from './args.ts';
import { UsageError } from './args.ts';
import type { Style } from './columns.ts';
import { Columns } from './columns.ts';
import { DemoWorker } from './demo-worker.ts';
import type { FileEvent } from './directory.ts';
import { DirectoryWatch } from './directory.ts';
import { close, listen } from './server.ts';
import { onSignals } from './signals.ts';

/** The slow reader's queue: short, so that losses are visible. */
const SLOW_CAPACITY = 4;

/** How many events were accepted, and how many each reader got. */
interface Tally {
  accepted: number;
  fast: number;
  slow: number;
}

/**
 * `watchmux demo`: changing files -> Broadcaster -> filter -> two readers, one over HTTP, one deliberately slow. Returns the exit
 * code: 1 if the numbers do not add up in the end.
 */
export async function demo({ directory, durationMs }: DemoCommand): Promise<number> {
  const end = new AbortController();
  const release = onSignals(() => end.abort());
  const path = directory ?? (await mkdtemp(join(tmpdir(), 'watchmux-demo-')));
  const worker = new DemoWorker(path);
  try {
    return await play({ path, durationMs, worker, end });
  } finally {
    await worker.tidy();
    if (directory === undefined) await rm(path, { recursive: true, force: true }).catch(() => {});
    release();
  }
}

async function play(scene: { path: string; durationMs: number; worker: DemoWorker; end: AbortController }): Promise<number> {
  const { path, durationMs, worker, end } = scene;
  const pauseMs = Math.round(Math.min(700, durationMs / 12));
  const tally: Tally = { accepted: 0, fast: 0, slow: 0 };
  const files = new Broadcaster<FileEvent>();
  const directory = new DirectoryWatch(path, async (event) => {
    await files.publish(event);
    if (isText(event)) tally.accepted++;
  });
  await directory.open().catch((error: Error) => {
    throw new UsageError(`cannot watch ${path}: ${error.message}`, 'demo');
  });
  const columns = new Columns(process.stdout);
  columns.line(`watchmux demo: the *.txt files in ${path}, for ${durationMs / 1000} s; Ctrl-C ends it\n`);
  columns.head(
    ['fast: over HTTP, at full speed'],
    [`slow: one event every ${pauseMs} ms,`, `a queue of ${SLOW_CAPACITY}, drop-oldest`],
  );

  const bridge = await openBridge(files.watch({ filter: isText }));
  const slow = files.watch({
    filter: isText,
    capacity: SLOW_CAPACITY,
    overflow: 'drop-oldest',
    onGap: (missed) => columns.right(`! lost ${count(missed)} here`, 'lost'),
  });
  const fastDone = readFast(bridge.events, { columns, tally });
  const slowDone = readSlow(slow, { columns, tally, pauseMs, end: end.signal });
  const workDone = worker.work({ pauseMs: Math.min(110, durationMs / 60), signal: end.signal });

  await sleep(durationMs, { signal: end.signal }).catch(() => {});
  end.abort();
  await workDone;
  await directory.close();
  await files.shutdown();
  await bridge.close();
  await fastDone;
  await slowDone;
  return sum(tally, slow, columns);
}

/** Starts a server, as any user would build it, and connects one client to it. */
async function openBridge(watch: Watch<FileEvent>): Promise<{ events: Watch<FileEvent>; close: () => Promise<void> }> {
  const hub = new Hub<FileEvent>();
  const server = createServer(createHttpHandler(hub));
  const url = await listen(server, { host: '127.0.0.1', port: 0 });
  const followed = hub.follow(watch);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { agent: false }, resolve).on('error', reject);
  });
  return {
    events: new StreamWatcher(toDecoder<FileEvent>(response)),
    close: async () => {
      await followed;
      await close(server);
    },
  };
}

interface Reading {
  readonly columns: Columns;
  readonly tally: Tally;
}

async function readFast(events: Watch<FileEvent>, { columns, tally }: Reading): Promise<void> {
  for await (const event of events) {
    tally.fast++;
    columns.left(...describe(event));
  }
}

/** Takes one event at a time and pauses after it. Leaves its queue as it is at the end, because the final sum counts it. */
async function readSlow(slow: Watch<FileEvent>, reading: Reading & { pauseMs: number; end: AbortSignal }): Promise<void> {
  const { columns, tally, pauseMs, end } = reading;
  while (!end.aborted) {
    const { done, value } = await slow.next();
    if (done) return;
    tally.slow++;
    columns.right(...describe(value));
    await sleep(pauseMs, { signal: end }).catch(() => {});
  }
}

function sum({ accepted, fast, slow }: Tally, lossy: Watch<FileEvent>, columns: Columns): number {
  const { dropped, queued } = lossy;
  const adds = fast === accepted && slow + dropped + queued === accepted;
  const row = (name: string, numbers: readonly number[]): void =>
    columns.line(`${name.padEnd(10)}${numbers.map((number) => String(number).padStart(11)).join('')}`);
  columns.line(`\n${'          '}  delivered    dropped     queued   accepted`);
  row('fast', [fast, 0, 0, accepted]);
  row('slow', [slow, dropped, queued, accepted]);
  columns.line(
    adds
      ? '\nDelivered, dropped and queued add up to what was accepted, for both.'
      : '\nThe numbers do not add up: please report this.',
  );
  return adds ? 0 : 1;
}

function describe({ type, object }: FileEvent): [text: string, style: Style] {
  if (!('name' in object)) return ['message' in object ? object.message : type, 'lost'];
  const { name, bytes } = object;
  if (type === 'ADDED') return [`+ ${name}  ${bytes} B`, 'added'];
  if (type === 'DELETED') return [`- ${name}`, 'removed'];
  return [`~ ${name}  ${bytes} B`, 'changed'];
}

function isText({ object }: FileEvent): boolean {
  return 'name' in object && object.name.endsWith('.txt');
}

function count(events: number): string {
  return `${events} event${events === 1 ? '' : 's'}`;
}
