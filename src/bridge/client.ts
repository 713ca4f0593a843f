/**
 * The door `watchmux/client`: the far end of a hub, in browsers and in Node. It comes back when its connection is lost, and goes
 * on where it was.
 *
 *     const orders = connect<Orders>('https://example.org/watch');
 *     for await (const event of orders) console.log(event.type, orders.resourceVersion);
 *
 * - **Resumable**: a new connection asks for what follows the last event that came in order. Nothing is repeated and nothing is
 *   skipped; where that cannot be had, the watch says so by one ERROR of code 410.
 * - **Bounded**: at most `capacity` events and `maxBufferedBytes` wait for their reader. With `wait`, the server waits with them.
 * - **Alive**: a connection that breaks, or on which nothing comes any more, is made again, after a wait that grows and that no
 *   two clients have in common. `state` and `onStateChange` tell how it stands.
 * - **Settled**: after `stop`, `return`, an abort or any other end there is no connection, no timer and no listener.
 */
export { connect } from './client-connect.ts';
export type { ClientState } from './client-machine.ts';
export type { Backoff, ClientEvent, ClientTransport, ConnectOptions } from './client-options.ts';
export type { ClientOverflow, ClientWatch, StateDetail } from './client-settings.ts';
export type { WebSocketConstructor, WebSocketLike } from './client-socket.ts';
export type { FetchLike } from './client-stream.ts';
export type { Bookmark, BookmarkEvent } from './protocol.ts';
export { isInitialEventsEnd } from './protocol.ts';
