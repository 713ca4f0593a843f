/**
 * The entry point `watchmux/nats`: hubs in several processes on one stream of NATS JetStream.
 *
 *     const stream = new NatsStream({ servers: '127.0.0.1:4222', stream: 'chat', create: { maxItems: 1_000_000 } });
 *     const hub = new Hub({ source: stream });
 */

export type { HubSource } from '../bridge/hub/source/source.ts';
export type { NatsStreamLimits, NatsStreamOptions } from './nats-options.ts';
export { NatsStream } from './nats-stream.ts';
