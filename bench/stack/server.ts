// The server of the workload "stack", in a process of its ownState: one collection of Pods over plain HTTP, as a kube-apiserver serves
// it. Every contender gets the same bytes. Lists are made once per version, and then only copied. Each event of a watch is a chunk
// of its ownState, as those of a kube-apiserver are.
import { EventEmitter } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PodCollection } from './collection.ts';

/** What the server is told over IPC. It answers each with its {@link ServerReply}. */
export type ServerOrder =
  | { readonly do: 'start'; readonly objects: number }
  /** Changes this many Pods, one after the other; watches get the changes. */
  | { readonly do: 'update'; readonly count: number }
  /** Ends all watches with 410. */
  | { readonly do: 'expire' };

export interface ServerReply {
  readonly port: number;
  readonly version: string;
}

const LIST_CHUNK_BYTES = 65_536;
/** Events that are given to the kernel in one go. */
const EVENTS_AT_ONCE = 64;

let pods: PodCollection;
/** Emits `news` for the watches that have sent everything. */
const collection: EventEmitter = new EventEmitter();
let epoch = 0;
const lists: Map<string, readonly Buffer[]> = new Map();

interface Query {
  readonly version: string;
  readonly limit: number;
  readonly from: number;
}

/** The chunks of a list, or of one page of it. */
function listChunks({ version, limit, from }: Query): readonly Buffer[] {
  // As a kube-apiserver does: any version will do, so the list comes from its cache, which has no pages.
  const to = limit === 0 || version === '0' ? pods.size : Math.min(from + limit, pods.size);
  const key = `${pods.version} ${from} ${to}`;
  let chunks = lists.get(key);
  if (chunks === undefined) {
    const rest = to < pods.size ? { continue: `${pods.version}.${to}`, remainingItemCount: pods.size - to } : {};
    const metadata = JSON.stringify({ resourceVersion: pods.version, ...rest });
    const made: Buffer[] = [];
    let text = `{"kind":"PodList","apiVersion":"v1","metadata":${metadata},"items":[`;
    for (let pod = from; pod < to; pod++) {
      text += (pod === from ? '' : ',') + pods.item(pod);
      if (text.length >= LIST_CHUNK_BYTES) {
        made.push(Buffer.from(text));
        text = '';
      }
    }
    made.push(Buffer.from(`${text}]}\n`));
    chunks = made;
    lists.set(key, chunks);
  }
  return chunks;
}

/** The events of the initial state, one each. */
function initialEvents(): readonly Buffer[] {
  const key = `${pods.version} events`;
  let events = lists.get(key);
  if (events === undefined) {
    events = Array.from({ length: pods.size }, (_, pod) => Buffer.from(pods.added(pod)));
    lists.set(key, events);
  }
  return events;
}

/** Resolves with the next event of this name, or when the other side has gone. */
function next(name: string, source: EventEmitter, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      source.off(name, done);
      response.off('close', done);
      resolve();
    };
    source.on(name, done);
    response.on('close', done);
  });
}

/** Resolves when the other side has read enough, or has gone. */
async function drained(response: ServerResponse): Promise<void> {
  while (response.writableNeedDrain && !response.destroyed) await next('drain', response, response);
}

async function list(response: ServerResponse, query: Query): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' });
  for (const chunk of listChunks(query)) {
    response.write(chunk);
    await drained(response);
    if (response.destroyed) return;
  }
  response.end();
}

/** Sends events number `from` to `to`, the first one included. */
async function send(
  response: ServerResponse,
  { from, to, event }: { from: number; to: number; event: (number: number) => string | Buffer },
): Promise<void> {
  for (let number = from; number < to && !response.destroyed; ) {
    response.cork();
    for (const end = Math.min(number + EVENTS_AT_ONCE, to); number < end; number++) response.write(event(number));
    response.uncork();
    await drained(response);
  }
}

async function watch(response: ServerResponse, version: string, initial: boolean): Promise<void> {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
  const own = epoch;
  let sent: number | undefined = pods.updates;
  if (initial || version === '' || version === '0') {
    const events = initialEvents();
    await send(response, { from: 0, to: pods.size, event: (pod) => events[pod] as Buffer });
    if (initial) response.write(pods.initialEnd);
  } else sent = pods.updatesAt(version);
  while (sent !== undefined && own === epoch && !response.destroyed) {
    const { updates } = pods;
    if (sent === updates) {
      await next('news', collection, response);
      continue;
    }
    await send(response, { from: sent + 1, to: updates + 1, event: (update) => pods.modified(update) });
    sent = updates;
  }
  if (!response.destroyed) response.end(pods.expired);
}

function answer({ url = '' }: IncomingMessage, response: ServerResponse): void {
  const { pathname, searchParams } = new URL(url, 'http://127.0.0.1');
  const asked = (name: string): string => searchParams.get(name) ?? '';
  if (pathname !== '/api/v1/pods') {
    response.writeHead(404).end();
  } else if (['true', '1'].includes(asked('watch'))) {
    void watch(response, asked('resourceVersion'), asked('sendInitialEvents') === 'true');
  } else {
    const from = Number(asked('continue').split('.')[1] ?? 0);
    void list(response, { version: asked('resourceVersion'), limit: Number(asked('limit')), from });
  }
}

async function obey(order: ServerOrder): Promise<number> {
  if (order.do === 'start') {
    pods = new PodCollection(order.objects);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  } else if (order.do === 'update') {
    lists.clear();
    pods.update(order.count);
  } else epoch++;
  collection.emit('news');
  return (server.address() as AddressInfo).port;
}

const server = createServer(answer);
server.keepAliveTimeout = 600_000;
process.on('message', async (order: ServerOrder) => {
  const port = await obey(order);
  process.send?.({ port, version: pods.version } satisfies ServerReply);
});
process.on('disconnect', () => process.exit());
