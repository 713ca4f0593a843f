import type { BookmarkEvent, MissingAdded, MissingError, WatchEvent } from '../../watch/event.ts';
import { checkLength } from './lines.ts';
import type { ClientSettings } from './settings.ts';

/**
 * The events that a client delivers: a hub's own events, the objects of a snapshot as ADDED, the BOOKMARK that ends it, and an ERROR
 * when the watch cannot continue. A client cannot know whether the hub has a snapshot.
 */
export type ClientEvent<E extends WatchEvent = WatchEvent> = E | MissingAdded<E> | MissingBookmark<E> | MissingError<E>;

/** The BOOKMARK, unless it is an `E` already. */
type MissingBookmark<E> = BookmarkEvent extends E ? never : BookmarkEvent;

/** Decodes the event in a frame; undefined if the codec finds none. Throws for a frame that is invalid or too long. */
export function toEvent<E extends WatchEvent>(text: string, settings: ClientSettings<E>): E | undefined {
  const { codec, maxFrameChars } = settings;
  checkLength(text.length, maxFrameChars);
  // Created only when it is needed, so that the client can be loaded where there is no TextEncoder, such as in Jest's jsdom.
  if (codec) return codec.decode(new TextEncoder().encode(text));
  const value = JSON.parse(text) as Partial<WatchEvent> | null;
  if (typeof value?.type === 'string' && value.type && 'object' in value) return value as E;
  throw new Error(`no event: ${text.slice(0, 80)}`);
}
