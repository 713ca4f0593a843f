/**
 * The entry point `watchmux/client`: a client of a hub, for browsers and Node. It reconnects when its connection is lost, and
 * resumes where it was.
 *
 *     const orders = connect<Orders>('https://example.org/watch');
 *     for await (const event of orders) console.log(event.type, orders.resourceVersion);
 *
 * - **Resumable**: a new connection asks for what follows the last event that arrived in order. No event is repeated or skipped.
 *   If that is impossible, the watch delivers one ERROR with code 410.
 * - **Bounded**: at most `capacity` events and `maxBufferedBytes` wait for the reader. With `wait`, the server also waits.
 * - **Alive**: a connection that breaks or goes silent is replaced, after a random, growing delay. `state` and `onStateChange`
 *   show the current state.
 * - **Settled**: after `stop`, `return`, an abort or any other end there is no connection, timer or listener.
 */

export type {
  Attempt,
  Backoff,
  ClientOverflow,
  ClientTransport,
  ClientWatch,
  ConnectOptions,
  PerAttempt,
  StateDetail,
} from './client/client-options.ts';
export {
  type Collection,
  type CollectionOptions,
  type CollectionSource,
  type Items,
  toCollection,
  type ViewOptions,
} from './client/collection.ts';
export { connect } from './client/connect.ts';
export type { OpenOptions, SharedOptions, Source, Watchable } from './client/feed.ts';
export type { ClientState } from './client/machine.ts';
export type { ConnectionState, ConnectionStatus } from './client/shown-connection.ts';
export type { Store } from './client/store.ts';
export { type EventStore, type Folded, type StoreOptions, toStore } from './client/store.ts';
export type { FetchLike } from './client/stream.ts';
export type { WebSocketConstructor, WebSocketLike } from './client/transport.ts';
export type { ClientEvent } from './client/watch.ts';
export type { Bookmark, BookmarkEvent } from './protocol.ts';
export { isInitialEventsEnd } from './protocol.ts';
