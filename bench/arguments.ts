import { type ParseArgsConfig, parseArgs } from 'node:util';

/** An invalid command line. The message says what was expected, so that no stack is needed. */
export class UsageError extends Error {}

/** Like `parseArgs`, for this process. Throws {@link UsageError}. */
export function parseOptions<T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new UsageError(`${(error as Error).message.split('. ')[0]}; --help tells more`);
  }
}

/** Parses `--name 1,100` into whole numbers. */
export function numbers(name: string, text: string): number[] {
  const list = text.split(',').map(Number);
  if (list.some((n) => !Number.isSafeInteger(n) || n < 1))
    throw new UsageError(`--${name}: expected whole numbers >= 1, got "${text}"`);
  return list;
}

/** Parses `--name 5` into one whole number. */
export function oneNumber(name: string, text: string): number {
  const [first, ...more] = numbers(name, text);
  if (first === undefined || more.length > 0) throw new UsageError(`--${name}: expected one whole number >= 1, got "${text}"`);
  return first;
}

/** Prints the error, and exits. */
export function giveUp(error: unknown): never {
  console.error(error instanceof UsageError ? error.message : error);
  process.exit(1);
}
