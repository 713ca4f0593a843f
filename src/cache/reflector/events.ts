import { WatchError } from '../../watch/errors.ts';
import { CHANGES, isInitialEventsEnd, type ObjectEvent } from '../../watch/event.ts';
import { metadataOf, versionOf } from '../object.ts';
import { compareVersions } from '../version.ts';

/** What an event is to a reader that trusts nothing from the wire. */
export type EventShape = 'change' | 'bookmark' | 'initialEnd' | 'error' | 'broken';

/**
 * Classifies an event. `broken`: its type is unknown, or its object has no metadata, or is a Table; or a BOOKMARK has no version.
 */
export function shapeOf(event: ObjectEvent<unknown>): EventShape {
  const type: unknown = (event as Partial<typeof event> | null)?.type;
  if (type === 'ERROR') return 'error';
  if (type === 'BOOKMARK' && versionIn(event) !== '') return isInitialEventsEnd(event) ? 'initialEnd' : 'bookmark';
  return (CHANGES as readonly unknown[]).includes(type) && (versionBeside(event) !== undefined || isObject(event))
    ? 'change'
    : 'broken';
}

/** The version of an event, whatever is wrong with it; empty if it has none that can be read. */
export function versionIn(event: ObjectEvent<unknown>): string {
  return versionBeside(event) ?? versionOf((event as Partial<typeof event> | null)?.object);
}

/** The version that an event has besides its object, as those of a hub do; see `fromHub`. Its object may be anything then. */
export function versionBeside(event: ObjectEvent<unknown>): string | undefined {
  const { resourceVersion } = (event ?? {}) as { resourceVersion?: unknown };
  return typeof resourceVersion === 'string' ? resourceVersion : undefined;
}

/** Says what is wrong with an event. */
export function toBroken(event: ObjectEvent<unknown>): WatchError {
  const type: unknown = (event as Partial<typeof event> | null)?.type;
  const known = [...(CHANGES as readonly unknown[]), 'BOOKMARK'].includes(type);
  const text = known
    ? `${type} without an object that has metadata`
    : `an event of the unknown type ${String(type).slice(0, 80)}`;
  return new WatchError('INVALID_FRAME', text);
}

function isObject({ object }: ObjectEvent<unknown>): boolean {
  const { kind, apiVersion = '' } = (object ?? {}) as { kind?: unknown; apiVersion?: unknown };
  const metadata: unknown = metadataOf(object);
  const has = typeof object === 'object' && object !== null && 'metadata' in object;
  return has && typeof metadata === 'object' && !(kind === 'Table' && String(apiVersion).startsWith('meta.k8s.io/'));
}

/** Whether `a` is known to be before `b`. Versions that are not Kubernetes' numbers cannot be compared. */
export function isOlder(a: string, b: string): boolean {
  try {
    return compareVersions(a, b) < 0;
  } catch {
    return false;
  }
}
