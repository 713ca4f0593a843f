import { describe, expect, it } from 'vitest';
import type {
  Bookmark,
  BookmarkEvent,
  ErrorEvent,
  MissingError,
  ObjectEvent,
  ObjectOf,
  Status,
  StatusDetails,
  WatchEvent,
} from '../../src/index.ts';
import { isErrorEvent, isStatus, isWatchError, jsonCodec, type WatchErrorCode } from '../../src/index.ts';
import { claim, compiles, type Equal } from './assert.ts';

interface Order {
  readonly id: string;
  readonly total: number;
}
type Orders = WatchEvent<'placed', Order> | WatchEvent<'cancelled', { readonly id: string }>;
interface Pod {
  readonly metadata: { readonly name: string };
}

/** `type` narrows `object`, for people's own unions. */
function ordersOf(event: Orders): number {
  if (event.type === 'placed') {
    claim<Equal<typeof event.object, Order>>();
    return event.object.total;
  }
  claim<Equal<typeof event.object, { readonly id: string }>>();
  // @ts-expect-error a cancelled order has no total
  event.object.total;
  // @ts-expect-error there is no such type of event
  if (event.type === 'shipped') return 1;
  return 0;
}

/** And for Kubernetes' five. */
function podOf(event: ObjectEvent<Pod>): string {
  switch (event.type) {
    case 'ERROR': {
      claim<Equal<typeof event.object, Status>>();
      return event.object.reason;
    }
    case 'BOOKMARK': {
      claim<Equal<typeof event.object, Bookmark>>();
      // @ts-expect-error a bookmark has no name: it is not of the object's type
      event.object.metadata.name;
      return event.object.metadata.resourceVersion;
    }
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED': {
      claim<Equal<typeof event.object, Pod>>();
      return event.object.metadata.name;
    }
    default: {
      claim<Equal<typeof event, never>>();
      return event;
    }
  }
}

function types(): void {
  claim<Equal<ObjectOf<ObjectEvent<Pod>>, Pod>>();
  claim<Equal<ObjectOf<Orders>, Order | { readonly id: string }>>();
  claim<Equal<ErrorEvent['object'], Status>>();
  claim<Equal<BookmarkEvent['object'], Bookmark>>();
  claim<Equal<ErrorEvent, WatchEvent<'ERROR', Status>>>();
  // What carries the object in a BOOKMARK is no bookmark of ours.
  claim<Equal<ObjectOf<WatchEvent<'ADDED' | 'BOOKMARK', Pod>>, Pod>>();
  claim<Equal<ObjectOf<WatchEvent>, unknown>>();
  claim<Equal<MissingError<Orders>, ErrorEvent>>();
  claim<Equal<MissingError<ObjectEvent<Pod>>, never>>();
  claim<Equal<MissingError<Orders | WatchEvent<'ERROR', Status>>, never>>();
  claim<Equal<MissingError<WatchEvent>, never>>();
  claim<Equal<WatchEvent['type'], string>>();
  claim<Equal<WatchEvent['object'], unknown>>();
}

function readOnly(event: WatchEvent, status: Status, details: StatusDetails): void {
  // @ts-expect-error events are shared: their type cannot be set
  event.type = 'x';
  // @ts-expect-error nor their object
  event.object = 1;
  // @ts-expect-error nor anything in a status
  status.code = 1;
  // @ts-expect-error nor its details
  details.missed = 1;
}

function guards(value: unknown, event: WatchEvent): void {
  if (isStatus(value)) {
    claim<Equal<typeof value, Status>>();
  }
  if (isErrorEvent(event)) {
    claim<Equal<typeof event.object, Status>>();
  }
  if (isWatchError(value, 'CLOSED')) {
    claim<Equal<typeof value.code, WatchErrorCode>>();
  }
  // @ts-expect-error no such code
  isWatchError(value, 'SHUT');
  jsonCodec<Orders>({ types: ['placed'] });
  // @ts-expect-error no such type of event
  jsonCodec<Orders>({ types: ['shipped'] });
}

describe('events', () => {
  it('have the types that the compiler has checked', () => {
    expect(compiles(ordersOf, podOf, types, readOnly, guards)).toBe(5);
  });

  it('narrow by type, at run time as in the types', () => {
    expect(ordersOf({ type: 'placed', object: { id: 'a', total: 3 } })).toBe(3);
    expect(podOf({ type: 'ADDED', object: { metadata: { name: 'p' } } })).toBe('p');
    expect(podOf({ type: 'BOOKMARK', object: { kind: 'Pod', apiVersion: 'v1', metadata: { resourceVersion: '7' } } })).toBe('7');
  });
});
