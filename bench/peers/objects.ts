// What both API servers have: ConfigMaps, which each of them serves without being told of a kind.
import type { KubernetesObject } from '../../src/cache/object.ts';
import { thingOf } from '../server/objects.ts';

export interface Settled extends KubernetesObject {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly data: Readonly<Record<string, string>>;
}

/** Watched, and written by bursts. */
export const WATCHED = 'watched';
/** Written in the same way, and watched by nobody: what a write costs by itself. */
export const UNWATCHED = 'unwatched';
/** The list. */
export const LISTED = 'listed';

export const NAMESPACES: readonly string[] = [WATCHED, UNWATCHED, LISTED];

/** How many ConfigMaps change. */
export const CHANGING = 16;

const KEYS = 40;
/** What an event has beside the text, about. */
const FRAME = 420;

export function pathOf(namespace: string): string {
  return `/api/v1/namespaces/${namespace}/configmaps`;
}

/** The change of this number, to one ConfigMap after the other, about so many bytes of JSON in an event. */
export function changeOf(number: number, bytes: number): Settled {
  const { spec } = thingOf(number, Math.max(bytes, FRAME));
  return {
    metadata: { name: `changing-${number % CHANGING}` },
    data: { turn: String(number), text: spec.text },
  };
}

/** A ConfigMap with 40 small keys. */
export function listedOf(number: number): Settled {
  const data = Object.fromEntries(Array.from({ length: KEYS }, (_, key) => [`key-${key}`, `value-${number}-${key}`]));
  return { metadata: { name: `listed-${String(number).padStart(5, '0')}` }, data };
}

/** Returns what is wrong with an event as the one of this number; undefined if it is right. */
export function faultOf(event: unknown, number: number, bytes: number): string | undefined {
  const { type, object } = event as { readonly type: string; readonly object: Settled };
  const { metadata, data } = changeOf(number, bytes);
  const isRight = type === 'MODIFIED' && object.metadata.name === metadata.name && object.data.text === data.text;
  return isRight ? undefined : `event ${number} is wrong: ${JSON.stringify(event).slice(0, 300)}`;
}
