// What the servers of this workload have: Things, which change, and Pods, which are listed. The same numbers always give the same
// objects, so that the load can check what it reads.
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { BENCH } from '../paths.ts';

/** How many Things there are. Each is on a node of its own, so a field selector selects one. */
export const THINGS = 500;

export interface Thing extends KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string; readonly labels: Readonly<Record<string, string>> };
  readonly spec: { readonly node: string; readonly turn: number; readonly text: string };
}

export const nodeOf = (number: number): string => `node-${number % THINGS}`;

/** Text from real Kubernetes objects, without characters that JSON would escape. */
const FILLING = gunzipSync(readFileSync(new URL('data/watch-stream.ndjson.gz', BENCH)))
  .toString('latin1')
  .replaceAll(/["\\]/g, "'")
  .replaceAll(/[^ -~]/g, ' ');

/** The change of this number, to one Thing after the other: its new state, about so many bytes of JSON. */
export function thingOf(number: number, bytes: number): Thing {
  const from = (number * 9_973) % (FILLING.length - bytes);
  return {
    apiVersion: 'example.com/v1',
    kind: 'Thing',
    metadata: { name: `thing-${number % THINGS}`, namespace: 'default', labels: { app: 'web', tier: 'backend' } },
    spec: { node: nodeOf(number), turn: number, text: FILLING.slice(from, from + Math.max(0, bytes - FRAME)) },
  };
}

/** What an event takes beside its text, about: the object's other members, and those that a server sets. */
const FRAME = 420;

/** Returns what is wrong with an event as the one of this number; undefined if it is right. */
export function faultOf(event: unknown, number: number, bytes: number): string | undefined {
  const { type, object } = event as { readonly type: string; readonly object: Thing };
  const { apiVersion, kind, metadata, spec } = thingOf(number, bytes);
  const { name, namespace, labels } = object.metadata;
  const told = { apiVersion: object.apiVersion, kind: object.kind, metadata: { name, namespace, labels }, spec: object.spec };
  if (type === 'MODIFIED' && JSON.stringify(told) === JSON.stringify({ apiVersion, kind, metadata, spec })) return undefined;
  return `event ${number} is wrong: ${type} ${JSON.stringify(told).slice(0, 200)}`;
}

interface Pod extends KubernetesObject {
  readonly metadata: NonNullable<KubernetesObject['metadata']> & { readonly name: string; readonly namespace: string };
}

const POD: Pod = JSON.parse(readFileSync(new URL('data/pod.json', BENCH), 'utf8'));

/** What selects every other Pod. */
export const HALF = 'group=even';

/** A Pod as clusters have them, 14 KB of JSON, without a version. */
export function podOf(number: number): Pod {
  const digits = String(number).padStart(5, '0');
  const { resourceVersion: _, labels, uid, ...metadata } = POD.metadata;
  return {
    ...POD,
    metadata: {
      ...metadata,
      name: `small-deployment-10-67cc84df8d-${digits}`,
      uid: `${uid?.slice(0, -5)}${digits}`,
      labels: { ...labels, group: number % 2 === 0 ? 'even' : 'odd' },
    } as unknown as Pod['metadata'],
  };
}
