import { fstatSync } from 'node:fs';
import { Hub } from '../bridge/hub/hub.ts';
import { attachWebSocket } from '../bridge/websocket.ts';
import { POLICIES } from '../broadcast/policies.ts';
import { onSignals } from '../operator/signals.ts';
import { placeOf } from '../pages/words.ts';
import { isWatchError, tried } from '../watch/errors.ts';
import type { WatchEvent } from '../watch/event.ts';
import type { PipeCommand } from './args.ts';
import { InputLines, type LineEvent, type LineFault, readLine } from './lines.ts';
import { aborted, announce, MAX_WAITING_BYTES, type Output, plural, type UnwaitedStream } from './output.ts';
import { Recoveries } from './server/recoveries.ts';
import { close, createPipeServer, isSame, listen } from './server/server.ts';

/** `watchmux pipe`: serves lines from stdin to clients. Returns the exit code. */
export async function pipe(command: PipeCommand, output: Output): Promise<number> {
  const reports = new Reports(process.stderr);
  // To Node, it looks like an empty stream.
  if (isDirectory(STDIN)) {
    reports.say('cannot read stdin: it is a directory');
    return 1;
  }
  const hub = new Hub({
    capacity: command.capacity,
    maxQueuedBytes: command.maxQueuedBytes,
    overflow: command.overflow,
    replay: command.replay,
    replayItems: command.window,
  });
  const recoveries = observeRecoveries(hub, command);
  const server = createPipeServer(hub, { ...command, skipped: () => reports.skipped, recoveries });
  const { host } = command;
  attachWebSocket(server, hub, { allowedOrigins: (origin, request) => isSame(origin, request, { server, host }) });
  const url = await listen(server, command);
  // For example too many open files. That costs one connection, but is not a reason to drop the others.
  server.on('error', (error) => reports.say(error.message));
  const stop = new AbortController();
  const release = onSignals(() => stop.abort());
  announce(output, [`listening on ${url}`], stop);
  if (process.stdin.isTTY) reports.say('reading from the terminal: one event per line, Ctrl-D at the end');
  const fed = await feed(hub, command, { reports, stop: stop.signal });
  if (command.keepOpen && !stop.signal.aborted) {
    reports.say('stdin has ended; serving until a signal');
    await aborted(stop.signal);
  }
  // A signal ends this server, not the stream: clients reconnect when the server is started again.
  const retryAfterMs = stop.signal.aborted ? RETRY_AFTER_MS : undefined;
  server.closeIdleConnections();
  const cut = await drain(hub, { drainMs: command.drainMs, retryAfterMs, reports });
  await close(server);
  release();
  summarize(hub, { reports, cut, recovered: recoveries?.total ?? 0 });
  return fed ? 0 : 1;
}

/** The file descriptor of stdin. */
const STDIN = 0;

/** After a signal, clients are told to reconnect within this time, spread over it. */
const RETRY_AFTER_MS = 5_000;

/** If ending takes longer, it says why. */
const PATIENCE_MS = 500;

/** If it cannot be told, reading it will show what is wrong. */
const isDirectory = (descriptor: number): boolean => tried(() => fstatSync(descriptor).isDirectory()) ?? false;

/** Other policies drop events between those that a client gets, so it cannot be known whether it has them all in the end. */
function observeRecoveries(hub: Hub, { overflow }: PipeCommand): Recoveries | undefined {
  if (overflow !== 'disconnect') return undefined;
  const recoveries = new Recoveries(() => placeOf(hub.version) ?? 0);
  hub.observe(recoveries);
  return recoveries;
}

/**
 * Publishes stdin's lines until stdin ends or `stop` aborts. Each publish is awaited before the next line, and the next chunk is
 * read after the last line of this one. So with `wait` the slowest client holds back the program that writes to stdin. Returns
 * whether stdin could be read.
 */
async function feed(
  hub: Hub,
  command: PipeCommand,
  { reports, stop }: { reports: Reports; stop: AbortSignal },
): Promise<boolean> {
  const lines = new InputLines(command);
  let events = 0;
  let failed = false;
  const feedAll = async (): Promise<void> => {
    for await (const chunk of process.stdin as AsyncIterable<Uint8Array>) {
      await publish(hub, lines.push(chunk));
      if (stop.aborted) return;
    }
    await publish(hub, lines.end());
    if (!command.raw && !stop.aborted) reports.end(events);
  };
  const publish = async (hub: Hub, some: Iterable<Parameters<typeof readLine>[0]>): Promise<void> => {
    for (const line of some) {
      if (stop.aborted) return;
      const reading = readLine(line, command);
      const skipped = 'fault' in reading ? reading : await published(hub, reading, command);
      if ('replaced' in reading) reports.replace(line.number);
      if (skipped === undefined) events++;
      else reports.skip({ number: line.number, ...skipped }, events);
    }
  };
  // A signal does not wait for the pending publish; the drain that follows takes care of it.
  const stopped = aborted(stop).then(() => void process.stdin.destroy());
  const fed = feedAll().catch((error: Error) => {
    if (stop.aborted) return;
    failed = true;
    reports.say(`cannot read stdin: ${error.message}`);
  });
  await Promise.race([fed, stopped]);
  process.stdin.destroy();
  return !failed;
}

/**
 * Publishes the event of a line. Resolves to a fault if clients would not accept it: with escapes, text can become six times as
 * long.
 */
async function published(hub: Hub, found: LineEvent, command: PipeCommand): Promise<LineFault | undefined> {
  try {
    await hub.publish(needed(found, command), found.json);
    return undefined;
  } catch (error) {
    if (!isWatchError(error, 'FRAME_TOO_LARGE')) throw error;
    return { fault: error.message };
  }
}

/**
 * Returns what the hub needs from an event whose text it has. A value in memory is often many times as large as its text, and
 * only a policy that folds looks at it, for the key.
 */
function needed({ event }: LineEvent, { overflow }: PipeCommand): WatchEvent {
  return POLICIES[overflow].folds ? event : { type: event.type, object: undefined };
}

/** Gives clients up to `drainMs` to take their queues. Returns how many had to be cut. */
async function drain(
  hub: Hub,
  { drainMs, retryAfterMs, reports }: { drainMs: number; retryAfterMs: number | undefined; reports: Reports },
): Promise<number> {
  let left = 0;
  const deadline = new AbortController();
  const slow = setTimeout(() => {
    const clients = plural(hub.stats().clients.length, 'client');
    reports.say(`waiting up to ${drainMs / 1_000} s for ${clients} to take their queued events`);
  }, PATIENCE_MS);
  const timer = setTimeout(() => {
    left = hub.stats().clients.length;
    deadline.abort();
  }, drainMs);
  await hub.shutdown({ signal: deadline.signal, retryAfterMs });
  clearTimeout(slow);
  clearTimeout(timer);
  return left;
}

function summarize(hub: Hub, { reports, cut, recovered }: { reports: Reports; cut: number; recovered: number }): void {
  const { accepted, total } = hub.stats();
  const clients = plural(total.clients, 'client');
  const refused = total.refused > 0 ? `, ${total.refused} refused` : '';
  const back = recovered > 0 ? `, ${recovered} of them recovered` : '';
  if (cut > 0) reports.say(`${cut} of ${clients} did not take their queue in time and were cut`);
  reports.say(
    `${plural(accepted, 'event')}, ${plural(reports.skipped, 'line')} skipped; ${clients}${refused}: ${total.delivered} delivered, ${total.dropped} dropped${back}`,
  );
}

/** If this many lines are skipped before there is an event, the input is probably text. */
const TEXT_LINES = 10;

/**
 * What `watchmux pipe` says on stderr. The program that reads it may have stopped, and input may consist of nothing but bad lines:
 * reports that do not fit are only counted.
 */
export class Reports {
  /** Lines that were skipped. */
  skipped: number = 0;
  private untold: number = 0;
  /** It was said that text is not passed on as it was. */
  private replaced: boolean = false;
  /** A hint about the kind of input was given. */
  private hinted: boolean = false;
  private readonly output: UnwaitedStream;

  constructor(output: UnwaitedStream) {
    this.output = output;
  }

  say(text: string): void {
    this.tellUntold();
    this.output.write(`watchmux pipe: ${text}\n`);
  }

  /** Reports a line that is skipped. `events` is the number of events before it. */
  skip({ number, fault, opens = false }: { number: number } & LineFault, events: number): void {
    this.skipped++;
    if (this.output.writableLength >= MAX_WAITING_BYTES) this.untold++;
    else this.say(`line ${number} skipped: ${fault}`);
    if (this.hinted) return;
    this.hinted = opens;
    if (opens) this.say(`line ${number} begins a value that spans several lines; for one line per value, use jq -c`);
    else if (this.skipped >= TEXT_LINES && events === 0) this.hint('no line is an event so far');
  }

  /** Reports the first line of text that is not UTF-8. In another encoding, most lines are. */
  replace(number: number): void {
    if (this.replaced) return;
    this.replaced = true;
    this.say(`line ${number} is not UTF-8: what cannot be read in it, and in later lines, becomes U+FFFD; iconv converts text`);
  }

  /** The input has ended, after this many events. Short input can be text, too. */
  end(events: number): void {
    if (events === 0 && this.skipped > 0 && !this.hinted) this.hint('no line was an event');
  }

  private hint(found: string): void {
    this.hinted = true;
    this.say(`${found}; to serve lines of text, use --raw`);
  }

  private tellUntold(): void {
    const { untold } = this;
    this.untold = 0;
    if (untold > 0) this.say(`${untold} more skipped: nobody has read these reports`);
  }
}
