/**
 * What `watchmux serve` says on stderr: one line per event of interest, for people or, as JSON, for machines.
 *
 *     watchmux serve: storage-lost error="unavailable: connect ECONNREFUSED 127.0.0.1:2379"
 *     {"time":"2026-01-02T03:04:05.678Z","level":"error","event":"storage-lost","error":"unavailable: connect ..."}
 *
 * Lines have no line breaks and no control characters, whatever a client has sent. A reader that has stopped costs no memory:
 * lines that do not fit are counted, and the number is logged later. Callers pass no token, and no URL with a password.
 */
import { dotted } from '../../pages/words.ts';
import type { Clock } from '../../watch/clock.ts';
import { MAX_WAITING_BYTES, type UnwaitedStream } from '../output.ts';

export type LogFormat = 'text' | 'json';

type LogLevel = 'info' | 'warn' | 'error';

/** What a line has besides the name of the event. Undefined members are left out. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

interface LogOptions {
  readonly format: LogFormat;
  readonly output: UnwaitedStream;
  /** The time of day in ms. */
  readonly now: () => number;
}

/** The longest value. */
const MAX_CHARS = 1_000;
/** A value that needs no quotes. */
const WORD = /^[\w.:/@+\-[\]]+$/;

export class ServeLog {
  private readonly options: LogOptions;
  private untold: number = 0;

  constructor(options: LogOptions) {
    this.options = options;
  }

  info(event: string, fields: LogFields = {}): void {
    this.say('info', event, fields);
  }

  warn(event: string, fields: LogFields = {}): void {
    this.say('warn', event, fields);
  }

  error(event: string, fields: LogFields = {}): void {
    this.say('error', event, fields);
  }

  private say(level: LogLevel, event: string, fields: LogFields): void {
    const { output } = this.options;
    if (output.writableLength >= MAX_WAITING_BYTES) {
      this.untold++;
      return;
    }
    const { untold } = this;
    this.untold = 0;
    if (untold > 0) output.write(this.line('warn', 'log-lines-lost', { count: untold }));
    output.write(this.line(level, event, fields));
  }

  private line(level: LogLevel, event: string, fields: LogFields): string {
    const { format, now } = this.options;
    const told = Object.entries(fields).filter(([, value]) => value !== undefined);
    const plain = told.map(
      ([name, value]) => [name, typeof value === 'string' ? dotted(value.slice(0, MAX_CHARS)) : value] as const,
    );
    if (format === 'json') {
      return `${JSON.stringify({ time: new Date(now()).toISOString(), level, event, ...Object.fromEntries(plain) })}\n`;
    }
    const words = plain.map(([name, value]) => ` ${name}=${WORD.test(String(value)) ? value : JSON.stringify(value)}`);
    return `watchmux serve: ${event}${words.join('')}\n`;
  }
}

/** How often one kind of event may have a line. */
const EVERY_MS = 1_000;
/** How many different keys a line may have. */
const MAX_KEYS = 20;

interface DigestOptions {
  /** The field that stands for single events: how many of each key, such as `429:17,401:2`. */
  readonly keys: string;
  readonly clock: Clock;
  /** Writes the line. */
  readonly tell: (fields: LogFields) => void;
}

/**
 * Logs something that may happen any number of times, in one line per second at most. The first is logged at once; those that
 * follow are counted, and logged with the last of them.
 */
export class LogDigest {
  private readonly options: DigestOptions;
  private readonly counts: Map<string, number> = new Map();
  private last: LogFields = {};
  private cancel: (() => void) | undefined = undefined;

  constructor(options: DigestOptions) {
    this.options = options;
  }

  add(key: string, fields: LogFields): void {
    const known = this.counts.has(key) || this.counts.size < MAX_KEYS ? key : 'other';
    this.counts.set(known, (this.counts.get(known) ?? 0) + 1);
    this.last = fields;
    if (this.cancel === undefined) this.flush();
  }

  /** Logs the rest, and leaves no timer behind. */
  end(): void {
    this.cancel?.();
    this.tell();
    this.cancel = undefined;
  }

  private flush(): void {
    this.tell();
    this.cancel = this.options.clock.schedule(EVERY_MS, () => {
      this.cancel = undefined;
      if (this.counts.size > 0) this.flush();
    });
  }

  private tell(): void {
    const { counts, last, options } = this;
    if (counts.size === 0) return;
    const count = [...counts.values()].reduce((sum, each) => sum + each, 0);
    const keys = Array.from(counts, ([key, times]) => `${key}:${times}`).join(',');
    counts.clear();
    options.tell({ count, [options.keys]: keys, ...last });
  }
}
