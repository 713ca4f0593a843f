// What the commands share to read their arguments, and to say what is wrong with them.
import type { ParseArgsConfig } from 'node:util';

/** The names of the commands, as typed. */
export const COMMANDS: readonly ['pipe', 'watch', 'get', 'serve', 'check', 'demo'] = [
  'pipe',
  'watch',
  'get',
  'serve',
  'check',
  'demo',
];

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
/** Arguments that `parseArgs` has accepted. */
export interface Parsed {
  readonly values: Readonly<Record<string, unknown>>;
  readonly positionals: readonly string[];
}

/** Which whole numbers are taken. */
export interface Range {
  readonly min?: number;
  readonly max?: number;
}

/** Reads a whole number. */
export function whole(topic: CommandName, option: string, value: unknown, { min = 0, max }: Range = {}): number {
  const number = /^\d+$/.test(String(value)) ? Number(value) : Number.NaN;
  if (Number.isSafeInteger(number) && number >= min && number <= (max ?? number)) return number;
  throw wrong(topic, option, value, `a whole number from ${min}${max === undefined ? '' : ` to ${max}`}`);
}

/** Reads seconds. */
export function milliseconds(topic: CommandName, option: string, value: unknown): number {
  const seconds = /^\d+(\.\d+)?$/.test(String(value)) ? Number(value) : Number.NaN;
  // Node's timers are limited to 2^31 ms; a day is more than anyone waits.
  if (!(seconds <= 86_400)) throw wrong(topic, option, value, 'seconds, from 0 to 86400');
  return Math.round(seconds * 1_000);
}

/** The default of `--keep-alive`, in seconds: longer than clients and load balancers keep connections, which is 60 to 90 s. */
export const KEEP_ALIVE_SECONDS = '120';

/** Reads `--keep-alive`. */
export function keepAlive(topic: CommandName, value: unknown): number {
  const keepAliveMs = milliseconds(topic, 'keep-alive', value);
  // Node takes 0 for no limit at all.
  if (keepAliveMs < 1_000) throw wrong(topic, 'keep-alive', value, 'seconds, from 1 to 86400');
  return keepAliveMs;
}

/** The error of an option's value. */
export function wrong(topic: CommandName, option: string, value: unknown, expected: string): UsageError {
  return new UsageError(`--${option} takes ${expected}, not ${quote(String(value))}`, topic);
}

/** Quotes user input for a message: shortened, and without characters that a terminal would act on. */
export function quote(word: string): string {
  return `"${word.slice(0, 80).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '.')}"`;
}
