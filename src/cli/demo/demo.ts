import { appendFile, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Hub } from '../../bridge/hub/hub.ts';
import { WATCH_PATH } from '../../bridge/protocol.ts';
import { Broadcaster } from '../../broadcast/broadcaster.ts';
import { toDecoder } from '../../decode/decoder.ts';
import { StreamWatcher } from '../../decode/stream-watcher.ts';
import { onSignals } from '../../operator/signals.ts';
import { excerpt, placeOf, SLOW } from '../../pages/words.ts';
import { sleep } from '../../watch/clock.ts';
import type { Watch } from '../../watch/watch.ts';
import type { DemoCommand } from '../args.ts';
import type { Output } from '../output.ts';
import { Recoveries } from '../server/recoveries.ts';
import { close, createPipeServer, listen } from '../server/server.ts';
import { UsageError } from '../usage.ts';
import { DemoColumns, gauge, type Style } from './columns.ts';
import { DirectoryWatch, type FileEvent } from './directory.ts';

/** The slow reader's queue: short, so that losses are visible. */
const SLOW_CAPACITY = 4;
/** The queue of the fast reader, which is a client of a hub. */
const FAST_CAPACITY = 100;
const KEEP_ALIVE_MS = 5_000;

const TITLE = 'watchmux demo: file changes, one fast reader, one slow';
/** The time between two updates of the panel that stays in view. */
const REFRESH_MS = 100;

/**
 * `watchmux demo`: changing files -> Broadcaster -> filter -> two readers, one over HTTP, one deliberately slow. Returns the exit
 * code: 1 if the numbers do not add up in the end.
 */
export async function demo({ directory, durationMs }: DemoCommand, output: Output): Promise<number> {
  const end = new AbortController();
  const release = onSignals(() => {
    end.abort();
    output.hurry();
  });
  output.onGone = () => end.abort();
  const path = directory ?? (await temporary());
  const worker = new DemoWorker(path);
  try {
    return await new Demo(new DemoColumns(output), end).play(worker, { path, durationMs });
  } finally {
    await worker.tidy();
    if (directory === undefined) await rm(path, { recursive: true, force: true }).catch(() => {});
    release();
  }
}

async function temporary(): Promise<string> {
  try {
    return await mkdtemp(join(tmpdir(), 'watchmux-demo-'));
  } catch (error) {
    throw new UsageError(`cannot make a temporary directory: ${(error as Error).message}; name another one`, 'demo');
  }
}

/** Two readers of one stream of changes, and how many events were accepted, and how many each reader got. */
class Demo {
  private accepted: number = 0;
  private fast: number = 0;
  private slow: number = 0;
  private readonly columns: DemoColumns;
  private readonly end: AbortController;

  constructor(columns: DemoColumns, end: AbortController) {
    this.columns = columns;
    this.end = end;
  }

  async play(worker: DemoWorker, { path, durationMs }: { readonly path: string; readonly durationMs: number }): Promise<number> {
    const { columns, end } = this;
    const { signal } = end;
    const pauseMs = Math.round(Math.min(700, durationMs / 12));
    const files = new Broadcaster<FileEvent>();
    const directory = new DirectoryWatch(path, async (event) => {
      await files.publish(event);
      if (isText(event)) this.accepted++;
    });
    await directory.open().catch((error: Error) => {
      throw new UsageError(`cannot watch ${path}: ${error.message}`, 'demo');
    });
    columns.line(TITLE);
    // On a line of its own: the path of the temporary folder may be long.
    columns.line(`the *.txt files in ${path},`);
    columns.line(`for ${durationMs / 1_000} s; Ctrl-C ends it`);
    const bridge = await openBridge(files.watch({ filter: isText }));
    columns.line(`a page that can be slow on purpose: ${bridge.url}/?${SLOW}`);
    columns.line();

    const slow = files.watch({
      filter: isText,
      capacity: SLOW_CAPACITY,
      overflow: 'drop-oldest',
      onGap: (missed) => columns.right(`! lost ${missed} event${missed === 1 ? '' : 's'} here`, 'lost'),
    });
    const heads = ['fast: over HTTP, at full speed', `slow: one per ${pauseMs} ms, drop-oldest`] as const;
    columns.head([heads[0]], [heads[1]]);
    const queue = (queued: number, of: number): string => `queue ${gauge(queued, of, 8)} ${queued} of ${of}`;
    columns.keep(() => [
      '',
      `${TITLE}   ${columns.seconds.toFixed(1)} of ${durationMs / 1_000} s`,
      columns.pair(...heads),
      columns.pair(queue(bridge.queued(), FAST_CAPACITY), `${queue(slow.queued, SLOW_CAPACITY)}, lost ${slow.dropped}`),
    ]);
    const reading = [this.readFast(bridge), this.readSlow(slow, pauseMs)];
    const refused = ({ message }: Error): void => columns.line(`! nothing is changed here: ${excerpt(message, 200)}`);
    const working = [worker.work({ pauseMs: Math.min(110, durationMs / 60), signal, refused }), this.keepFresh()];
    await sleep(durationMs, { signal }).catch(() => {});
    end.abort();
    await Promise.all(working);
    await directory.close();
    await files.shutdown();
    await bridge.close();
    await Promise.all(reading);
    columns.keep(() => []);
    return this.sum(slow);
  }

  private async keepFresh(): Promise<void> {
    const { signal } = this.end;
    while (!signal.aborted) {
      this.columns.refresh();
      await sleep(REFRESH_MS, { signal }).catch(() => {});
    }
  }

  private async readFast({ events, queued }: Bridge): Promise<void> {
    for await (const event of events) {
      this.fast++;
      const [text, style] = describe(event);
      this.columns.left(this.columns.apart(text, gauge(queued(), FAST_CAPACITY, SLOW_CAPACITY)), style);
    }
  }

  /** Takes one event at a time and pauses after it. At the end, leaves its queue as it is, because the final sum counts it. */
  private async readSlow(slow: Watch<FileEvent>, pauseMs: number): Promise<void> {
    const { signal } = this.end;
    while (!signal.aborted) {
      const { done, value } = await slow.next();
      if (done) return;
      this.slow++;
      const [text, style] = describe(value);
      // One cell per event.
      this.columns.right(this.columns.apart(text, gauge(slow.queued, SLOW_CAPACITY, SLOW_CAPACITY)), style);
      await sleep(pauseMs, { signal }).catch(() => {});
    }
  }

  private sum({ dropped, queued }: Watch<FileEvent>): number {
    const { accepted, fast, slow, columns } = this;
    const adds = fast === accepted && slow + dropped + queued === accepted;
    const row = (name: string, numbers: readonly number[]): void =>
      columns.line(`${name.padEnd(10)}${numbers.map((number) => String(number).padStart(11)).join('')}`);
    columns.line(`\n${'          '}  delivered    dropped     queued   accepted`);
    row('fast', [fast, 0, 0, accepted]);
    row('slow', [slow, dropped, queued, accepted]);
    const told = 'Delivered, dropped and queued add up to what was accepted, for both.';
    columns.line(adds ? `\n${told}` : '\nThe numbers do not add up: please report this.');
    return adds ? 0 : 1;
  }
}

/** The fast reader's side of a bridge. */
interface Bridge {
  readonly events: Watch<FileEvent>;
  /** Number of events in its queue on the server. */
  readonly queued: () => number;
  readonly url: string;
  readonly close: () => Promise<void>;
}

/** Starts a server with the page of `pipe`, and connects one client to it. */
async function openBridge(watch: Watch<FileEvent>): Promise<Bridge> {
  const hub = new Hub<FileEvent>({ capacity: FAST_CAPACITY });
  const recoveries = new Recoveries(() => placeOf(hub.version) ?? 0);
  hub.observe(recoveries);
  const host = '127.0.0.1';
  const server = createPipeServer(hub, {
    ...{ host, keepAliveMs: KEEP_ALIVE_MS, capacity: FAST_CAPACITY, overflow: 'disconnect', title: 'watchmux demo' },
    recoveries,
  });
  const url = await listen(server, { host, port: 0 });
  const followed = hub.follow(watch);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url + WATCH_PATH, { agent: false }, resolve).on('error', reject);
  });
  return {
    events: new StreamWatcher(toDecoder<FileEvent>(response)),
    queued: () => hub.stats().clients[0]?.queued ?? 0,
    url,
    close: async () => {
      await followed;
      await close(server);
    },
  };
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

const FRUITS = ['apple', 'pear', 'plum', 'fig', 'quince', 'cherry', 'lemon', 'grape'];

interface WorkOptions {
  readonly pauseMs: number;
  readonly signal: AbortSignal;
  /** Called with the reason why files cannot be changed. */
  readonly refused: (error: Error) => void;
}

/** Simulates a user who adds, changes, renames and removes files, some of them irrelevant. */
export class DemoWorker {
  private readonly directory: string;
  /** The files this worker created. It touches no others. */
  private readonly mine: Set<string> = new Set();
  /** Steps so far. */
  turns: number = 0;

  constructor(directory: string) {
    this.directory = directory;
  }

  /**
   * Performs one step every `pauseMs` until the signal aborts. Ignores files that others have removed or created. Reports the
   * first other reason why a step fails.
   */
  async work({ pauseMs, signal, refused }: WorkOptions): Promise<void> {
    let told = false;
    while (!signal.aborted) {
      await this.step(this.turns++).catch((error: NodeJS.ErrnoException) => {
        if (told || ['EEXIST', 'ENOENT'].includes(error.code ?? '')) return;
        told = true;
        refused(error);
      });
      await sleep(pauseMs, { signal }).catch(() => {});
    }
  }

  /** Removes its remaining files. */
  async tidy(): Promise<void> {
    for (const name of this.mine) await rm(join(this.directory, name), { force: true }).catch(() => {});
    this.mine.clear();
  }

  /**
   * Each fruit takes five turns: its file is added and changed, a .log file is added, the file is renamed or changed again (by
   * turns), and both are removed.
   */
  private async step(turn: number): Promise<void> {
    const fruit = FRUITS[Math.floor(turn / 5) % FRUITS.length] as string;
    const name = `demo-${fruit}.txt`;
    const other = `demo-${fruit}-2.txt`;
    const done: readonly (() => Promise<void>)[] = [
      () => this.add(name, `one ${fruit}\n`),
      () => this.append(name, `and another ${fruit}\n`),
      () => this.add(`demo-${fruit}.log`, 'nobody asked for this one\n'),
      () => (turn % 2 === 0 ? this.move(name, other) : this.append(name, `${fruit}, and that is enough\n`)),
      () => this.remove(this.mine.has(other) ? other : name),
    ];
    await done[turn % done.length]?.();
    if (turn % 5 === 4) await this.remove(`demo-${fruit}.log`);
  }

  private async add(name: string, text: string): Promise<void> {
    // wx: do not overwrite an existing file of this name, which is not ours.
    await writeFile(join(this.directory, name), text, { flag: 'wx' });
    this.mine.add(name);
  }

  private async append(name: string, text: string): Promise<void> {
    if (this.mine.has(name)) await appendFile(join(this.directory, name), text, { flag: 'a' });
  }

  private async move(from: string, to: string): Promise<void> {
    if (!this.mine.delete(from)) return;
    await rename(join(this.directory, from), join(this.directory, to));
    this.mine.add(to);
  }

  private async remove(name: string): Promise<void> {
    if (this.mine.delete(name)) await rm(join(this.directory, name));
  }
}
