import { invalid } from '../watch/errors.ts';

/** The largest version: 2^128 - 1. */
const LARGEST = '340282366920938463463374607431768211455';

/** Says which of two versions is newer: negative if `b` is, positive if `a` is, 0 if they are the same. */
export type VersionComparator = (a: string, b: string) => number;

/**
 * Compares two Kubernetes versions: decimal numbers from 0 to 2^128 - 1 without leading zeros. Returns -1, 0 or 1.
 *
 * Versions of other sources are opaque: provide a {@link VersionComparator}, or compare them only for equality.
 *
 * Upstream: `resourceversion.CompareResourceVersion`, which refuses 0.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything else, including the empty string.
 */
export function compareVersions(a: string, b: string): -1 | 0 | 1 {
  check(a);
  check(b);
  return order(a, b);
}

/** The same for what is known to be decimal, however long. */
export function order(a: string, b: string): -1 | 0 | 1 {
  if (a.length !== b.length) return a.length < b.length ? -1 : 1;
  return a === b ? 0 : a < b ? -1 : 1;
}

function check(version: string): void {
  if (typeof version !== 'string' || !/^(0|[1-9]\d{0,38})$/.test(version) || order(version, LARGEST) > 0) {
    throw invalid('resourceVersion', version, 'a version of Kubernetes, a decimal number below 2^128');
  }
}
