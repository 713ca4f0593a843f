import { objectKey } from '../../broadcast/fold.ts';
import type { ObjectOf, WatchEvent } from '../../watch/event.ts';
import { show, type Violation, violation } from './history.ts';

/** The input and output of a selector. */
export interface TransitionHistory<E extends WatchEvent> {
  /** The events the selector read, from its initial state on. */
  readonly before: readonly E[];
  /** The events it passed on. */
  readonly after: readonly E[];
  readonly predicate: (object: ObjectOf<E>) => boolean;
  /** Default: namespace and name in `object.metadata`. */
  readonly keyOf?: ((event: E) => unknown) | undefined;
}

/** **Transitional**: what enters a selector is ADDED, what changes within it MODIFIED, and what leaves it DELETED. */
export function checkTransitional<E extends WatchEvent>(history: TransitionHistory<E>): Violation | undefined {
  const { before, after, predicate, keyOf = objectKey } = history;
  const within = new Set<unknown>();
  let next = 0;
  for (const event of before) {
    const { type, object } = event;
    const seen = after[next];
    let expected: string = type;
    if (type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED') {
      const key = keyOf(event);
      const was = within.has(key);
      const is = type !== 'DELETED' && predicate(object);
      if (is) within.add(key);
      else within.delete(key);
      if (!was && !is) continue;
      expected = is ? (was ? 'MODIFIED' : 'ADDED') : 'DELETED';
      if (seen !== undefined && keyOf(seen) !== key) {
        return violation('Transitional', { event, expected: `${expected} of ${show(key)}`, seen: show(seen) });
      }
    }
    if (seen?.type !== expected) return violation('Transitional', { event, expected, seen: seen?.type ?? 'nothing' });
    next++;
  }
  const extra = after[next];
  if (extra === undefined) return undefined;
  return violation('Transitional', { event: extra, expected: 'nothing more', seen: show(extra) });
}

/** One connection of a client that resumes. */
export interface Connection {
  /** The version to continue after; undefined for a fresh start. */
  readonly from?: string | undefined;
  /** The versions it received, in order. */
  readonly versions: readonly string[];
  /** Whether it was refused with 410. */
  readonly gone?: boolean | undefined;
}

/** What a server published, and what one client received over its connections. */
export interface ResumeHistory {
  /** All versions, in the order in which they were published. */
  readonly published: readonly string[];
  readonly connections: readonly Connection[];
}

/** **Resumable**: reconnecting from the last version repeats nothing and skips nothing, or reports one 410. */
export function checkResumable({ published, connections }: ResumeHistory): Violation | undefined {
  const order = new Map<string | undefined, number>(published.map((version, index) => [version, index]));
  const refused = new Set<string | undefined>();
  for (const [index, { from, versions, gone }] of connections.entries()) {
    const watcher = `connection ${index + 1}`;
    if (from !== undefined && refused.has(from)) {
      return violation('Resumable', {
        watcher,
        event: from,
        expected: '410 once, then a fresh start',
        seen: 'the same version again',
      });
    }
    if (gone) {
      refused.add(from);
      if (versions.length > 0) return violation('Resumable', { watcher, expected: 'nothing with a 410', seen: show(versions) });
      continue;
    }
    const start = order.get(from);
    if (from !== undefined && start === undefined) {
      return violation('Resumable', { watcher, event: from, expected: '410 for an unknown version', seen: 'it accepted' });
    }
    const broken = brokenRow(versions, order, start);
    if (broken !== undefined) return violation('Resumable', { watcher, ...broken });
  }
  return undefined;
}

/** Returns where a sequence of versions repeats or skips one. */
function brokenRow(
  versions: readonly string[],
  order: ReadonlyMap<string | undefined, number>,
  start: number | undefined,
): { event: string; expected: string; seen: string } | undefined {
  let last = start;
  for (const event of versions) {
    const place = order.get(event);
    if (place === undefined) return { event, expected: 'a version that was published', seen: 'another one' };
    if (last !== undefined && place !== last + 1) {
      if (place <= last) return { event, expected: 'nothing repeated', seen: `it after number ${last}` };
      return { event, expected: `number ${last + 1} next`, seen: `number ${place}` };
    }
    last = place;
  }
  return undefined;
}
