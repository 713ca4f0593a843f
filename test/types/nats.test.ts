import { describe, expect, it } from 'vitest';
import { Hub } from '../../src/bridge/http.ts';
import type { ErrorEvent, Status, Watch, WatchEvent } from '../../src/index.ts';
import { type HubSource, NatsStream, type NatsStreamOptions } from '../../src/nats/index.ts';
import type { FakeSource } from '../../src/testing/index.ts';
import { type Assignable, claim, compiles, type Equal } from './assert.ts';

type Orders = WatchEvent<'placed', { readonly total: number }> | WatchEvent<'cancelled', string>;

const watches = async (hub: Hub<Orders>): Promise<void> => {
  const watch = hub.watch({ after: 'v', topics: ['a'], filter: (event) => event.type === 'placed' && event.object.total > 1 });
  for await (const event of watch) {
    if (event.type === 'placed') claim<Equal<typeof event.object, { readonly total: number }>>();
    if (event.type === 'ERROR') claim<Equal<typeof event.object, Status>>();
    else claim<Equal<typeof event.resourceVersion, string>>();
  }
  claim<Assignable<Watch<(Orders & { readonly resourceVersion: string }) | ErrorEvent>, typeof watch>>();
  claim<Assignable<Hub<Orders>, Hub>>();
  await hub.ready({ signal: new AbortController().signal });
  await hub.publish({ type: 'cancelled', object: 'a' }, { id: 'a', json: '{}' });
  await hub.publish({ type: 'cancelled', object: 'a' }, '{}');
  // @ts-expect-error the hub has no such events
  await hub.publish({ type: 'eaten', object: 'a' });
  // @ts-expect-error an id is a string
  await hub.publish({ type: 'cancelled', object: 'a' }, { id: 7 });
};

const streams = (options: NatsStreamOptions): void => {
  claim<Assignable<NatsStream, HubSource>>();
  claim<Assignable<FakeSource, HubSource>>();
  new Hub<Orders>({ source: new NatsStream(options), maxCatchUpItems: 1, maxReads: 2 });
  new NatsStream({
    servers: ['a', 'b'],
    stream: 's',
    connection: { user: 'u', pass: 'p', tls: {} },
    create: { storage: 'memory' },
  });
  // @ts-expect-error servers have an option of their own
  new NatsStream({ servers: 'a', stream: 's', connection: { servers: 'b' } });
  // @ts-expect-error there is no such storage
  new NatsStream({ servers: 'a', stream: 's', create: { storage: 'tape' } });
  // @ts-expect-error a stream has a name
  new NatsStream({ servers: 'a' });
};

describe('hubs with a source', () => {
  it('have the types that the compiler has checked', () => {
    expect(compiles(watches, streams)).toBe(2);
  });
});
