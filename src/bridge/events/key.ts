import { objectKey } from '../../broadcast/policies/key.ts';
import type { WatchEvent } from '../../watch/event.ts';
import type { Envelope } from './envelope.ts';

/** Returns the key by which events fold. An event without a name folds with no other: its key is its position. */
export function eventKey<E extends WatchEvent>(envelope: Envelope, keyOf: ((event: E) => string) | undefined): string {
  if (keyOf !== undefined) return keyOf(envelope as WatchEvent as E);
  const { metadata } = (envelope.object ?? {}) as { metadata?: { name?: unknown } | null };
  return typeof metadata?.name === 'string' ? objectKey(envelope) : `#${envelope.sequence}`;
}
