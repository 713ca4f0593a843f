// The servers of this workload. All answer the same requests with the same objects.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ApiServer } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import type { Storage } from '../../src/storage/storage.ts';
import type { Entry } from '../workload.ts';
import { podOf, THINGS, type Thing, thingOf } from './objects.ts';

export const THINGS_PATH = '/apis/example.com/v1/namespaces/default/things';
export const PODS_PATH = '/api/v1/pods';

/** A server that runs, with Things that change and Pods that do not. */
export interface Running {
  readonly server: Server;
  /** Where a watch begins that shall see the next change first. */
  version(): Promise<string>;
  /** Changes Things. Resolves when that has been done; the watchers may hear of it later. */
  change(things: readonly Thing[]): Promise<void> | void;
  /** Opens watches in the process that wait: for anything, or each for a Thing that never comes. */
  idle?(count: number, selectors: boolean): Promise<void>;
}

export interface Size {
  /** Bytes of a Thing; 0: there are none. */
  readonly thingBytes: number;
  readonly pods: number;
}

/** Starts a server with Things and Pods. */
export type Start = (size: Size) => Promise<Running> | Running;

export const BYTES: Entry = { name: 'socket.write', queue: 'unbounded' };
export const OURS: Entry = { name: 'watchmux', queue: 'bounded' };
export const PLAIN: Entry = { name: 'JSON.stringify', queue: 'unbounded' };

const WEEK_S = 604_800;

/** An API server over a cache over memory. */
export function ours(size: Size): Promise<Running> {
  return overStorage(new MemoryStorage(), size);
}

/** An API server over a cache over a storage. Nothing is set but limits that one address with all clients would reach. */
export async function overStorage(storage: Storage, { thingBytes, pods }: Size): Promise<Running> {
  // Pods are as a cluster has them, with members that an API server sets itself.
  const scope = storage.scope('core/pods/');
  for (let i = 0; i < pods; i++) await scope.create(`${podOf(i).metadata.namespace}/${podOf(i).metadata.name}`, podOf(i));
  const api = new ApiServer({
    storage,
    resources: [
      { group: '', version: 'v1', plural: 'pods', kind: 'Pod' },
      {
        ...{ group: 'example.com', version: 'v1', plural: 'things', kind: 'Thing' },
        fields: { 'spec.node': (object: KubernetesObject) => (object as Thing).spec.node },
      },
    ],
    maxWatchers: 20_000,
    maxWatchersPerAddress: 20_000,
    minRequestTimeoutMs: WEEK_S * 1_000,
    // One that takes nothing stays, however long the measurement takes.
    stallTimeoutMs: WEEK_S * 1_000,
  });
  const things = api.resource<Thing>('things.example.com/v1');
  if (thingBytes > 0) for (let i = 0; i < THINGS; i++) await things.create(thingOf(i, thingBytes));
  const written = storage.scope<Thing>('example.com/things/');
  await api.ready;
  return {
    server: createServer(api.handler),
    version: () => storage.currentVersion(),
    async change(all) {
      // Into the storage, as the other servers do not check what is written either. At once, as requests of one turn come.
      const write = (each: Thing): Promise<Thing> =>
        written.update(`default/${each.metadata.name}`, ({ metadata }) => ({
          ...each,
          metadata: { ...metadata, ...each.metadata },
        }));
      await Promise.all(all.map(write));
    },
    async idle(count, selectors) {
      const resourceVersion = await storage.currentVersion();
      for (let i = 0; i < count; i++) {
        const watch = await things.watch({ resourceVersion, ...(selectors && { fieldSelector: `spec.node=idle-${i}` }) });
        void watch[Symbol.asyncIterator]().next();
      }
    },
  };
}

let revision = 1_000_000;

/** An object with what a server sets, so that all contenders send as many bytes. */
function versioned<T extends KubernetesObject>(object: T): T {
  const metadata = { uid: UID, generation: 1, creationTimestamp: '2026-11-01T00:00:00Z', ...object.metadata };
  return { ...object, metadata: { ...metadata, resourceVersion: String(++revision) } };
}

const UID = '7f9c2d1e-0000-4000-8000-0123456789ab';

const STREAM = { 'content-type': 'application/json', 'cache-control': 'no-cache, private' };

/** The control: frames are made once, and written to all sockets. */
export function bytesAlone(): Running {
  const sockets = new Set<Socket>();
  const server = createServer((_request, response) => {
    response.writeHead(200, STREAM);
    response.flushHeaders();
    const { socket } = response;
    if (socket === null) return;
    sockets.add(socket);
    response.on('close', () => sockets.delete(socket));
  });
  return {
    server,
    version: async () => String(revision),
    change(things) {
      const lines = things.map((each) => `${JSON.stringify({ type: 'MODIFIED', object: versioned(each) })}\n`);
      const body = Buffer.from(lines.join(''));
      const frame = Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')]);
      for (const socket of sockets) socket.write(frame);
    },
  };
}

/** The server that is written first: objects in a map, `JSON.stringify` for each answer and for each event of each watch. */
export function plainServer({ pods, thingBytes }: Size): Running {
  const responses = new Set<ServerResponse>();
  const things = new Map<string, Thing>();
  if (thingBytes > 0) for (let i = 0; i < THINGS; i++) things.set(`thing-${i}`, versioned(thingOf(i, thingBytes)));
  const allPods = Array.from({ length: pods }, (_, i) => versioned(podOf(i)));
  const change = (each: Thing): Thing => {
    const object = versioned(each);
    things.set(object.metadata.name, object);
    for (const response of responses) response.write(`${JSON.stringify({ type: 'MODIFIED', object })}\n`);
    return object;
  };
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '', 'http://server');
    if (url.searchParams.has('watch')) {
      response.writeHead(200, STREAM);
      response.flushHeaders();
      responses.add(response);
      response.on('close', () => responses.delete(response));
    } else if (request.method === 'PUT') {
      void jsonOf(request).then((object) => answer(response, change(object as Thing)));
    } else answer(response, listOf(allPods, url.searchParams));
  });
  return {
    server,
    version: async () => String(revision),
    change: (all) => {
      for (const each of all) change(each);
    },
  };
}

async function jsonOf(request: IncomingMessage): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

function answer(response: ServerResponse, object: object): void {
  const body = Buffer.from(JSON.stringify(object));
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
  response.end(body);
}

function listOf(pods: readonly KubernetesObject[], query: URLSearchParams): object {
  const selector = query.get('labelSelector')?.split('=');
  const chosen = selector ? pods.filter(({ metadata }) => metadata?.labels?.[selector[0] as string] === selector[1]) : pods;
  const from = Number(query.get('continue') ?? 0);
  const to = from + Number(query.get('limit') ?? chosen.length);
  const more = to < chosen.length ? { continue: String(to), remainingItemCount: chosen.length - to } : {};
  const metadata = { resourceVersion: String(revision), ...more };
  return { kind: 'PodList', apiVersion: 'v1', metadata, items: chosen.slice(from, to) };
}
