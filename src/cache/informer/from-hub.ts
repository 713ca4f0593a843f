import type { ClientState } from '../../bridge/client/machine.ts';
import { filter } from '../../broadcast/filter.ts';
import { Latch } from '../../watch/abort.ts';
import { callable, invalid, WatchError } from '../../watch/errors.ts';
import { isErrorEvent, isInitialEventsEnd, type ObjectEvent, type Status, toStatus, type WatchEvent } from '../../watch/event.ts';
import type { Watch } from '../../watch/watch.ts';
import type { List, ListOptions, ListWatcher, ListWatchOptions } from '../list-watcher.ts';
import { type Prepare, takesPrepare } from '../pager.ts';

/** What {@link fromHub} requires of a connection; options of `connect`. */
export interface HubConnectOptions {
  /** Resume after this version. Undefined: begin with the snapshot. */
  readonly resourceVersion?: string | undefined;
  /** Ends the connection when it aborts. */
  readonly signal?: AbortSignal | undefined;
  /** Reports changes of the connection's state. If it is not passed on, a hub counts as connected before it has answered. */
  readonly onStateChange?: ((state: ClientState) => void) | undefined;
}

/**
 * Makes a hub of this package a source. The hub must have a snapshot, which is the list. Pass on all options to `connect`.
 *
 *     const orders = fromHub<Order>((options) => connect('wss://example.org/watch', { ...options, maxAttempts: 0 }));
 *     const informer = new Informer(orders, { keyOf: (order) => order.id });
 *
 * A hub's versions belong to its events, not to its objects, which may be of any kind. They are opaque: `atLeast` needs
 * `compareVersions`. Objects without their own version count as changed whenever the snapshot is read again. Selectors are
 * refused: the hub's `watchOptions` decide what a client gets.
 *
 * A connection that cannot be made, or breaks, is `unreachable`: `list`, `watch` and an open watch reject with its error.
 *
 * @throws {WatchError} INVALID_ARGUMENT for anything but a function.
 */
export function fromHub<T>(connect: (options: HubConnectOptions) => Watch<WatchEvent>): ListWatcher<T> {
  if (!callable('connect', connect)) throw invalid('connect', connect, 'a function');
  return new HubListWatcher<T>(connect);
}

class HubListWatcher<T> implements ListWatcher<T> {
  readonly #connect: (options: HubConnectOptions) => Watch<WatchEvent>;

  constructor(connect: (options: HubConnectOptions) => Watch<WatchEvent>) {
    takesPrepare(HubListWatcher.prototype.list);
    this.#connect = connect;
  }

  async list(
    { labelSelector, fieldSelector, signal }: ListOptions = {},
    prepare: Prepare<T> = (object) => object,
  ): Promise<List<T>> {
    const watch = await this.watch({ labelSelector, fieldSelector, signal });
    const items: T[] = [];
    for await (const event of watch) {
      if (isErrorEvent(event)) throw refused(event.object);
      if (event.type !== 'BOOKMARK') items.push(prepare(event.object as T));
      else if (isInitialEventsEnd(event)) {
        const { resourceVersion } = event.object.metadata;
        return { items, resourceVersion };
      }
    }
    signal?.throwIfAborted();
    throw refusal(503, 'ServiceUnavailable', 'the snapshot of the hub ended early');
  }

  async watch(options: ListWatchOptions = {}): Promise<Watch<ObjectEvent<T>>> {
    const { resourceVersion, sendInitialEvents, labelSelector, fieldSelector, signal } = options;
    // If only a part was asked for, everything would be mistaken for that part.
    const selector = labelSelector || fieldSelector;
    if (selector) throw refusal(400, 'BadRequest', `a hub knows no selectors, and cannot select ${JSON.stringify(selector)}`);
    const resumes = !sendInitialEvents && !!resourceVersion && resourceVersion !== '0';
    let initial = !resumes;
    const watch = await this.#open({ resourceVersion: resumes ? resourceVersion : undefined, signal });
    return filter(watch, (event) => {
      const beside = (event as { resourceVersion?: unknown }).resourceVersion;
      if (isErrorEvent(event)) {
        // One with a version is an event of the application. It is not an object, and only a 410 makes the copy worthless.
        if (beside !== undefined && event.object.code !== 410) return undefined;
        if (isLost(event.object)) throw failed(event.object);
        return event;
      }
      if (isInitialEventsEnd(event)) initial = false;
      else if (event.type !== 'BOOKMARK') {
        // The objects of a snapshot have no version, and live events come after it.
        if (initial && beside !== undefined) throw refusal(405, 'MethodNotAllowed', 'the hub has no snapshot');
        // The empty version says that it is not that of the object.
        if (beside === undefined) return { ...event, resourceVersion: '' } as ObjectEvent<T>;
      }
      return event as ObjectEvent<T>;
    });
  }

  /** Connects, and waits for the answer of the hub. */
  async #open(options: HubConnectOptions): Promise<Watch<WatchEvent>> {
    let isPassedOn = false;
    const answered = new Latch<boolean>();
    const onStateChange = (state: string): void => {
      if (state === 'open' || state === 'closed') answered.open(state === 'open');
    };
    const watch = this.#connect({
      ...options,
      // A `connect` that does not read it does not pass it on, so it would never report a state.
      get onStateChange() {
        isPassedOn = true;
        return onStateChange;
      },
    });
    const isConnecting = (watch as { state?: unknown }).state === 'connecting';
    if (!isPassedOn || !isConnecting || (await answered.promise)) return watch;
    options.signal?.throwIfAborted();
    const { value } = await watch.next();
    if (value && isErrorEvent(value)) throw failed(value.object);
    return watch;
  }
}

/** A client reports a 503 when its connection broke, or could not be made. A hub that refuses with one says when to come back. */
function isLost({ code, details }: Status): boolean {
  return code === 503 && !details?.retryAfterSeconds;
}

/** Nobody has refused a connection that is lost: an error that is not ours is `unreachable` for a reflector. */
function failed(status: Status): Error {
  return isLost(status) ? new Error(status.message) : refused(status);
}

function refusal(code: number, reason: string, message: string): WatchError {
  return refused(toStatus({ code, reason, message }));
}

function refused(status: Status): WatchError {
  return new WatchError('REFUSED', status.message, { status });
}
