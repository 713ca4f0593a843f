import type { WatchEvent } from '../../src/watch/event.ts';

/** Events are numbered; after so many bursts their numbers begin again. */
export const CYCLE = 64;

/** A Kubernetes object of about the size that is asked for, as watchmux writes it, with its number in its name. */
export function toEvent(index: number, bytes: number): WatchEvent {
  const metadata = { name: `pod-${index}`, namespace: 'default', uid: '7f9c2d1e-0000-4000-8000-0123456789ab' };
  const object = { kind: 'Pod', apiVersion: 'v1', metadata, status: { phase: 'Running', podIP: '10.0.0.1', message: '' } };
  const missing = bytes - JSON.stringify({ type: 'MODIFIED', object }).length - 44;
  object.status.message = 'x'.repeat(Math.max(0, missing));
  return { type: 'MODIFIED', object };
}
