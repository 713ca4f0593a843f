// A cacher in front of a storage that can be told to fail, and words for what its watches bring.
import type { List } from '../../src/cache/index.ts';
import { versionOf } from '../../src/cache/object.ts';
import { Cacher, type CacherOptions, type StorageEvent } from '../../src/storage/index.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { isInitialEventsEnd } from '../../src/watch/event.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { FIELDS, type Pod, Pods, settle } from './faulty-storage.ts';

const PRESENT: CacherOptions<Pod> = { pastRevisions: 0 };

export interface Rig {
  readonly pods: Pods;
  readonly clock: FakeClock;
  readonly cacher: Cacher<Pod>;
  readonly errors: unknown[];
  /** What was asked of the storage since the last call. */
  asked(): string;
}

/** A cacher that is ready, unless its storage has been told to fail before. It begins with what is there, unless it is told to go back. */
export async function rig(options: CacherOptions<Pod> = {}, prepare?: (pods: Pods) => unknown): Promise<Rig> {
  const pods = new Pods();
  const clock = new FakeClock();
  const errors: unknown[] = [];
  await prepare?.(pods);
  const onError = (error: unknown): void => void errors.push(error);
  const cacher = new Cacher<Pod>(pods.storage, { fields: FIELDS, clock, random: () => 0.5, onError, ...PRESENT, ...options });
  await settle();
  const { asked } = pods.storage.faults;
  asked.length = 0;
  return { pods, clock, cacher, errors, asked: () => asked.splice(0).join(', ') };
}

export type PodWatch = Watch<StorageEvent<Pod>>;

/** All that can be read now: `ADDED a@3, BOOKMARK 4, END 4, ERROR 410`. */
export async function seen(watch: PodWatch): Promise<string> {
  await settle();
  const events: string[] = [];
  for (let event = watch.tryNext(); event; event = watch.tryNext()) events.push(told(event));
  return events.join(', ');
}

export function told(event: StorageEvent<Pod>): string {
  if (event.type === 'ERROR') return `ERROR ${event.object.code}`;
  if (event.type === 'BOOKMARK') return `${isInitialEventsEnd(event) ? 'END' : 'BOOKMARK'} ${versionOf(event.object)}`;
  return `${event.type} ${event.object.metadata?.name}@${versionOf(event.object)}`;
}

export const names = ({ items, resourceVersion }: List<Pod>): string =>
  `${items.map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`).join(' ')} @${resourceVersion}`;

/** The code that a request is refused with; what it resolves with if it is not. */
export async function codeOf(request: Promise<unknown>): Promise<unknown> {
  return await request.then(
    (value) => ({ value }),
    (error: { code?: string; status?: { code: number } }) => error.status?.code ?? error.code,
  );
}
