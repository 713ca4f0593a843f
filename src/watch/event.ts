/**
 * What travels: an event is a `type` and an `object`. Kubernetes has five types; people's own unions work as well, and
 * `type` narrows `object`:
 *
 *     type Orders = WatchEvent<'placed', Order> | WatchEvent<'cancelled', { id: string }>;
 *
 * Events are shared by reference with every consumer: treat them as read only, and copy before changing one.
 */

/** One event. Upstream: `watch.Event`. */
export interface WatchEvent<Type extends string = string, Obj = unknown> {
  readonly type: Type;
  readonly object: Obj;
}

/** The five event types of Kubernetes over one kind of object. An ERROR bears a {@link Status} and is normally the last event. */
export type ObjectEvent<Obj> = WatchEvent<'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK', Obj> | ErrorEvent;

/** The event by which a watch says why it failed. Upstream: `watch.Error`. */
export type ErrorEvent = WatchEvent<'ERROR', Status>;

/** Kubernetes' failure object, as it stands in an ERROR event and in HTTP bodies. Upstream: `metav1.Status`. */
export interface Status {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  readonly metadata: { readonly continue?: string };
  readonly status: 'Failure';
  readonly message: string;
  /** One word for programs, such as `Expired` or `InternalError`. */
  readonly reason: string;
  /** The HTTP status code that goes with the reason. */
  readonly code: number;
  readonly details?: StatusDetails | undefined;
}

/** What a {@link Status} adds for programs. `missed` is ours: the number of events a cut watch did not get. */
export interface StatusDetails {
  readonly missed?: number | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly causes?: readonly { readonly reason: string; readonly message: string }[] | undefined;
}

/** Makes a failure {@link Status}. */
export function toStatus(failure: {
  code: number;
  reason: string;
  message: string;
  details?: StatusDetails | undefined;
}): Status {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', ...failure };
}

/** Whether a value is a failure {@link Status}, from this package or parsed from a wire. */
export function isStatus(value: unknown): value is Status {
  const status = value as Partial<Status> | null | undefined;
  return status?.kind === 'Status' && typeof status.code === 'number';
}

/** Whether an event is Kubernetes' ERROR: a type of `ERROR` and a {@link Status} for an object. */
export function isErrorEvent(event: WatchEvent): event is ErrorEvent {
  return event.type === 'ERROR' && isStatus(event.object);
}

/** The annotation of the BOOKMARK that ends a snapshot. Kubernetes' own word. */
export const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** Whether an event is the BOOKMARK that ends a snapshot. */
export function isInitialEventsEnd(event: WatchEvent): boolean {
  const object = event.object as { metadata?: { annotations?: Readonly<Record<string, unknown>> } } | null | undefined;
  return event.type === 'BOOKMARK' && object?.metadata?.annotations?.[INITIAL_EVENTS_END] === 'true';
}
