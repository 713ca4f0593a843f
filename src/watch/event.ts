/**
 * An event has a `type` and an `object`. Kubernetes defines five types. You can also define your own union, in which `type`
 * narrows `object`:
 *
 *     type Orders = WatchEvent<'placed', Order> | WatchEvent<'cancelled', { id: string }>;
 *
 * All consumers share events by reference. Treat events as read-only; copy one before you change it. What else belongs to an event
 * goes into its object: a hub, and what carries events over a network, passes on no other members.
 */

/** One event. Upstream: `watch.Event`. */
export interface WatchEvent<Type extends string = string, Obj = unknown> {
  readonly type: Type;
  readonly object: Obj;
}

/** The types of the events that report a change of an object: the only list of them. */
export const CHANGES = ['ADDED', 'MODIFIED', 'DELETED'] as const;

/** The type of an event that reports a change of an object. */
export type ChangeType = (typeof CHANGES)[number];

/**
 * An event with one of Kubernetes' five types. A BOOKMARK carries only a {@link Bookmark}. An ERROR carries a {@link Status} and is
 * normally the last event.
 */
export type ObjectEvent<Obj> = WatchEvent<ChangeType, Obj> | BookmarkEvent | ErrorEvent;

/** The event that tells consumers how far a watch has come. Upstream: `watch.Bookmark`. */
export interface BookmarkEvent {
  readonly type: 'BOOKMARK';
  readonly object: Bookmark;
}

/** The event that tells consumers why a watch failed. Upstream: `watch.Error`. */
export interface ErrorEvent {
  readonly type: 'ERROR';
  readonly object: Status;
}

/** What a watch that may be cut delivers in addition to `E`: an {@link ErrorEvent}, or nothing if `E` already includes it. */
export type MissingError<E> = ErrorEvent extends E ? never : ErrorEvent;

/** What a watch that begins with a snapshot delivers in addition to `E`: ADDED, or nothing if `E` already includes it. */
export type MissingAdded<E extends WatchEvent> = AddedEvent<ObjectOf<E>> extends E ? never : AddedEvent<ObjectOf<E>>;

/** The event for a new object, or for an object of a snapshot. Upstream: `watch.Added`. */
export interface AddedEvent<Obj = unknown> {
  readonly type: 'ADDED';
  readonly object: Obj;
}

/** The type of the objects of a union's events, except BOOKMARK and ERROR. */
export type ObjectOf<E extends WatchEvent> = Exclude<E, { readonly type: 'BOOKMARK' | 'ERROR' }>['object'];

/** All that is known about the object of a BOOKMARK: its version, and the annotation that ends a snapshot. */
export interface Bookmark {
  readonly kind?: string | undefined;
  readonly apiVersion?: string | undefined;
  readonly metadata: {
    /** Everything up to this version has been delivered. */
    readonly resourceVersion: string;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
  };
}

/** Kubernetes' failure object, as it appears in ERROR events and HTTP bodies. Upstream: `metav1.Status`. */
export interface Status {
  readonly kind: 'Status';
  readonly apiVersion: 'v1';
  readonly metadata: { readonly continue?: string };
  readonly status: 'Failure';
  readonly message: string;
  /** A machine-readable reason in one word, such as `Expired` or `InternalError`. */
  readonly reason: string;
  /** The HTTP status code that corresponds to the reason. */
  readonly code: number;
  readonly details?: StatusDetails | undefined;
}

/** Machine-readable details of a {@link Status}. `missed` is this package's own: how many events a cut watch did not get. */
export interface StatusDetails {
  /** The name of the object that the failure is about; with it, its group, kind (or resource) and uid. */
  readonly name?: string | undefined;
  readonly group?: string | undefined;
  readonly kind?: string | undefined;
  readonly uid?: string | undefined;
  readonly missed?: number | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly causes?: readonly StatusCause[] | undefined;
}

/** One of the reasons for a failure. Upstream: `metav1.StatusCause`, whose `reason` is the type. */
export interface StatusCause {
  readonly reason: string;
  readonly message: string;
  /** The path of the member that is wrong, such as `spec.items[0].count`. */
  readonly field?: string | undefined;
}

/** Creates a failure {@link Status}. */
export function toStatus(failure: {
  code: number;
  reason: string;
  message: string;
  details?: StatusDetails | undefined;
}): Status {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', ...failure };
}

/** The Status of what is unavailable for a while: the client should come again. */
export function toUnavailable(message: string, retryAfterSeconds: number = 5): Status {
  return toStatus({ code: 503, reason: 'ServiceUnavailable', message, details: { retryAfterSeconds } });
}

/** The Status of a watch that cannot be given every event. */
export function toExpired(message: string, missed?: number): Status {
  return toStatus({ code: 410, reason: 'Expired', message, details: missed === undefined ? undefined : { missed } });
}

/** Whether a value is a failure {@link Status}, whether created here or parsed from JSON. */
export function isStatus(value: unknown): value is Status {
  const status = value as Partial<Status> | null | undefined;
  return status?.kind === 'Status' && typeof status.code === 'number';
}

/** Whether an event is a Kubernetes ERROR: its type is `ERROR` and its object is a {@link Status}. */
export function isErrorEvent(event: WatchEvent): event is ErrorEvent {
  return event.type === 'ERROR' && isStatus(event.object);
}

/** The annotation on the BOOKMARK that ends a snapshot, as defined by Kubernetes. */
export const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** Whether an event is the BOOKMARK that ends a snapshot. */
export function isInitialEventsEnd(event: WatchEvent): boolean {
  const object = event.object as { metadata?: { annotations?: Readonly<Record<string, unknown>> } } | null | undefined;
  return event.type === 'BOOKMARK' && object?.metadata?.annotations?.[INITIAL_EVENTS_END] === 'true';
}
