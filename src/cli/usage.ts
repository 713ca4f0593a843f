// Shared by the commands: reads their arguments, and says what is wrong with them.
import { isIPv6 } from 'node:net';
import type { ParseArgsConfig } from 'node:util';
import { dotted } from '../pages/words.ts';

/** The names of the commands, as typed. */
export const COMMANDS = ['pipe', 'watch', 'get', 'serve', 'new', 'check', 'types', 'demo'] as const;

export type CommandName = (typeof COMMANDS)[number];

/** An invalid command line, or one whose request cannot be met. Its message is the one line to print; the exit code is 2. */
export class UsageError extends Error {
  override readonly name: string = 'UsageError';

  constructor(text: string, topic?: CommandName) {
    super(`watchmux${topic === undefined ? '' : ` ${topic}`}: ${text}`);
  }
}

/** The options of a command, as `parseArgs` takes them. */
export type Options = NonNullable<ParseArgsConfig['options']>;

/** Options that have a value. */
export const valued = (...names: readonly string[]): Options =>
  Object.fromEntries(names.map((name) => [name, { type: 'string' }]));

/** The same, with defaults. */
export const preset = (defaults: Readonly<Record<string, string>>): Options =>
  Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, { type: 'string', default: value }]));

interface WholeRange {
  readonly min?: number;
  readonly max?: number;
}

/** The default of `--keep-alive`, in seconds: longer than clients and load balancers keep connections, which is 60 to 90 s. */
export const KEEP_ALIVE_SECONDS = '120';

/** The arguments of a command, as `parseArgs` has accepted them, and what is wrong with them. Every method throws {@link UsageError}. */
export class Given {
  readonly positionals: readonly string[];
  private readonly topic: CommandName;
  private readonly values: Readonly<Record<string, unknown>>;

  constructor(topic: CommandName, parsed: { readonly values: Given['values']; readonly positionals: readonly string[] }) {
    this.topic = topic;
    this.values = parsed.values;
    this.positionals = parsed.positionals;
  }

  /** Checks that there are no more positionals than this. */
  atMost(count: number, why: string): void {
    const extra = this.positionals[count];
    if (extra !== undefined) throw this.error(`unexpected argument ${quote(extra)}: ${why}`);
  }

  has(option: string): boolean {
    return this.values[option] !== undefined;
  }

  /** Whether there is an option without a value. */
  flag(option: string): boolean {
    return this.values[option] === true;
  }

  text(option: string): string | undefined {
    return this.values[option] as string | undefined;
  }

  list(option: string): readonly string[] {
    return (this.values[option] as string[] | undefined) ?? [];
  }

  /** A script with an empty variable would silently get something other than it names. */
  notEmpty(options: readonly string[], expected: string = 'a non-empty value'): void {
    for (const option of options) if (this.values[option] === '') throw this.wrong(option, expected);
  }

  oneOf<T extends string>(option: string, words: readonly T[], value: unknown = this.values[option]): T {
    const found = words.find((word) => word === value);
    if (found === undefined) throw this.wrong(option, `one of ${words.join(', ')}`, value);
    return found;
  }

  whole(option: string, { min = 0, max }: WholeRange = {}): number {
    const value = this.text(option);
    const number = /^\d+$/.test(String(value)) ? Number(value) : Number.NaN;
    if (Number.isSafeInteger(number) && number >= min && number <= (max ?? number)) return number;
    const most = max ?? (number > Number.MAX_SAFE_INTEGER ? Number.MAX_SAFE_INTEGER : undefined);
    throw this.wrong(option, `a whole number from ${min}${most === undefined ? '' : ` to ${most}`}`);
  }

  wholeIf(option: string, range?: WholeRange): number | undefined {
    return this.has(option) ? this.whole(option, range) : undefined;
  }

  /** Reads seconds. */
  milliseconds(option: string, min: number = 0): number {
    const value = this.text(option);
    const seconds = /^\d+(\.\d+)?$/.test(String(value)) ? Number(value) : Number.NaN;
    // Node's timers are limited to 2^31 ms; a day is more than anyone waits.
    if (!(seconds >= min && seconds <= 86_400)) throw this.wrong(option, `seconds, from ${min} to 86400`);
    // Only 0 becomes 0, which often means something special: no limit.
    return Math.max(Math.round(seconds * 1_000), seconds > 0 ? 1 : 0);
  }

  host(): string {
    const host = toHost(this.text('host') ?? '');
    if (host === undefined) throw this.wrong('host', 'an address or a host name, without a port');
    return host;
  }

  /** Reads an HTTP URL. Undefined: it is not one. Throws if its user or password is ambiguous. */
  httpUrl(text: string): URL | undefined {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || !/^https?:$/.test(url.protocol)) return undefined;
    try {
      decodeURIComponent(url.username + url.password);
    } catch {
      throw this.error(`${quoteUrl(text)}: expected %25 for % in the user and the password`);
    }
    return url;
  }

  wrong(option: string, expected: string, value: unknown = this.values[option]): UsageError {
    return this.error(`--${option} takes ${expected}, not ${quote(String(value))}`);
  }

  error(text: string): UsageError {
    return new UsageError(text, this.topic);
  }
}

/** The host that a text names; an IPv6 address may be in brackets, as in a URL. Undefined if it names none. */
export function toHost(text: string): string | undefined {
  const host = text.replace(/^\[(.*)\]$/, '$1');
  // An empty name, such as that of an unset variable, would mean all interfaces.
  return isIPv6(host) || /^[^\s:/[\]]+$/.test(host) ? host : undefined;
}

/** Quotes what should be a URL, without its user and its password: messages end up in logs. */
export function quoteUrl(text: string): string {
  return quote(text.replace(/\/\/[^/]*@/, '//'));
}

/** Quotes user input for a message: shortened, and without characters that a terminal would act on. */
export function quote(word: string): string {
  return `"${dotted(word.slice(0, 80))}"`;
}
