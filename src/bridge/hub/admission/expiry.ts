import { invalid } from '../../../watch/errors.ts';
import { Denied, unauthorized } from './refusals.ts';

/** Something that an application has decided about a client, and until when that is valid. */
export interface Expirable {
  /**
   * When it is no longer valid, in ms since 1970: the `exp` of a JSON Web Token times 1,000. The stream then ends as if the server
   * went away, so that the client comes again, with a fresh token. Default: never.
   */
  readonly expiresAtMs?: number | undefined;
}

/** When something that a hook has returned expires; Infinity: never. Throws for anything but a time, so that a mistake admits nobody. */
export function expiryOf(said: unknown): number {
  const { expiresAtMs = Number.POSITIVE_INFINITY } = (said ?? {}) as { expiresAtMs?: unknown };
  if (typeof expiresAtMs === 'number' && !Number.isNaN(expiresAtMs)) return expiresAtMs;
  throw invalid('expiresAtMs', expiresAtMs, 'a number of milliseconds since 1970');
}

/** Throws 401 for what has expired. */
export function checkExpiry(expiresAtMs: number, now: () => number): void {
  if (expiresAtMs <= now()) throw new Denied('unauthorized', unauthorized('the authentication has expired'));
}
