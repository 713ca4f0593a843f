// Packages that only some programs need, so each is loaded when it is needed, and its absence says how to get it.
import { WatchError } from '../watch/errors.ts';

/** Loads an optional package. Rejects with INVALID_ARGUMENT if it is not installed. */
export async function optional<T>(name: string, { load, what }: { load: () => Promise<T>; what: string }): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    // The second code is that of CommonJS, for which this is also built.
    if (!['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes((cause as NodeJS.ErrnoException).code ?? '')) throw cause;
    throw new WatchError('INVALID_ARGUMENT', `${what} needs the package ${name}: npm install ${name}`, { cause });
  }
}
