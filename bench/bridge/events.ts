import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { WatchEvent } from '../../src/watch/event.ts';
import { BENCH } from '../paths.ts';

/** Events are numbered. The numbers start again after this many bursts. */
export const CYCLE = 64;

/**
 * Text from real Kubernetes objects, without characters that JSON would escape. Large events are filled with it, so that they
 * compress as well as real ones.
 */
const FILLING = gunzipSync(readFileSync(new URL('data/watch-stream.ndjson.gz', BENCH)))
  .toString('latin1')
  .replaceAll(/["\\]/g, "'")
  .replaceAll(/[^ -~]/g, ' ');

/**
 * Creates an event that takes about `bytes` bytes as watchmux sends it: a Kubernetes object with the number in its name. Rooms are
 * namespaces.
 */
export function toEvent(index: number, bytes: number, namespace: string = 'default'): WatchEvent {
  const metadata = { name: `pod-${index}`, namespace, uid: '7f9c2d1e-0000-4000-8000-0123456789ab' };
  const object = { kind: 'Pod', apiVersion: 'v1', metadata, status: { phase: 'Running', podIP: '10.0.0.1', message: '' } };
  const missing = Math.max(0, bytes - JSON.stringify({ type: 'MODIFIED', object }).length - 44);
  const from = (index * 9_973) % (FILLING.length - missing);
  object.status.message = FILLING.slice(from, from + missing);
  return { type: 'MODIFIED', object };
}

/** Returns the name of a room. */
export function roomOf(number: number): string {
  return `room-${number}`;
}
