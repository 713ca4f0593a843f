// The entry point "watchmux": its exports, in the order in which data flows. No code here.

// The words that everything else speaks.

export { type Clock, sleep, systemClock } from './watch/clock.ts';
export { isWatchError, WatchError, type WatchErrorCode } from './watch/errors.ts';
export {
  type AddedEvent,
  type Bookmark,
  type BookmarkEvent,
  type ErrorEvent,
  isErrorEvent,
  isStatus,
  type MissingAdded,
  type MissingError,
  type ObjectEvent,
  type ObjectOf,
  type Status,
  type StatusCause,
  type StatusDetails,
  toStatus,
  type WatchEvent,
} from './watch/event.ts';
export type { CuttingOverflow, KeepingOverflow, Overflow } from './watch/overflow.ts';
export { emptyWatch, fromAsyncIterable, ProxyWatcher, type ProxyWatcherOptions } from './watch/pull-watch.ts';
export type { Watch, WatchBatches } from './watch/watch.ts';

// Bytes become events.

export { type Codec, type JsonCodec, jsonCodec } from './decode/codec.ts';
export { type ByteDecoder, type ByteSource, type ToDecoderOptions, toDecoder } from './decode/decoder.ts';
export { type Framer, type FramerOptions, LengthPrefixedFramer, NewlineFramer } from './decode/framing.ts';
export { type Decoder, StreamWatcher, type StreamWatcherOptions } from './decode/stream-watcher.ts';

// One source, many watchers.

export {
  Broadcaster,
  type BroadcasterConstructor,
  type BroadcasterOptions,
  type BroadcasterStats,
  type KeepingBroadcasterOptions,
  type KeepingWatchOptions,
  type PlainWatchOptions,
  type WatcherStats,
  type WatchOptions,
} from './broadcast/broadcaster.ts';
export { filter, filterTransitions, type NoAsyncFilter, Recorder, type TransitionOptions } from './broadcast/filter.ts';

// A watch in the host's own idiom.

export { fromReadableStream, type ReadableStreamOptions, toReadableStream } from './adapters/web-stream.ts';
