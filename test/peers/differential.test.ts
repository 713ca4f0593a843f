// The same requests to a real kube-apiserver and to ours, answer by answer: the status, the type, and the body without what differs by
// nature (uids, times, versions, managedFields). What differs on purpose is in differential/differences.ts, each with its reason; a
// difference that is listed and not there fails too.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BUILT_IN_KINDS, ApiServer as OurServer, type ResourceDefinition } from 'watchmux/apiserver';
import { MemoryStorage } from 'watchmux/storage';
import { component, isMissing } from '../components.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';
import { caughtUp } from './caught-up.ts';
import { DIFFERENCES, differenceOf, OTHER_HEADERS, type Part } from './differential/differences.ts';
import { asOurs, documentsOf, hashedOf } from './differential/documents.ts';
import { FIELD_REQUESTS, MEALS, MEALS_CRD, MEALS_PATH } from './differential/fields.ts';
import { KIND_REQUESTS } from './differential/kinds.ts';
import { decoded } from './differential/protobuf.ts';
import { type Asked, type Memory, REQUESTS } from './differential/requests.ts';
import { SCALE_REQUESTS, SCALED, SCALED_CRDS, SCALED_PATHS } from './differential/scale.ts';

const missing = isMissing(component('kube-apiserver'));
const START_MS = 90_000;
const PATIENCE_MS = 20_000;
const POLL_MS = 100;

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

interface Side {
  readonly url: string;
  readonly fetch: Fetch;
  readonly memory: Memory;
}

interface Answered {
  readonly status: number;
  readonly type: string;
  /** Of the headers that clients go by, those that there are. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** Their values are compared, but for how long to wait. */
const HEADERS = ['allow', 'cache-control', 'location', 'retry-after', 'warning', 'www-authenticate', 'vary', 'etag'] as const;

function headersOf(headers: Response['headers']): Readonly<Record<string, string>> {
  const entries = HEADERS.map((name) => [name, headers.get(name)] as const).filter(([, value]) => value !== null);
  return Object.fromEntries(entries.map(([name, value]) => [name, name === 'retry-after' ? 'SOME' : (value ?? '')]));
}

const newMemory = (): Memory => ({ version: '1', next: '', objects: new Map() });

/** Asks one server, and remembers what later requests need. */
async function ask(side: Side, asked: Asked): Promise<Answered> {
  try {
    return await answered(side, asked);
  } catch (error) {
    return { status: 0, type: '', headers: {}, body: String(error) };
  }
}

const pathOf = ({ path }: Asked, memory: Memory): string => (typeof path === 'string' ? path : path(memory));

async function answered({ url, fetch, memory }: Side, asked: Asked): Promise<Answered> {
  const path = pathOf(asked, memory);
  const body = typeof asked.body === 'function' ? asked.body(memory) : asked.body;
  // Node sends the body of a DELETE without its length, unless it is told.
  const length = asked.method === 'DELETE' && body !== undefined && { 'content-length': String(body.length) };
  const init = { method: asked.method, headers: { ...asked.headers, ...length }, ...(body !== undefined && { body }) };
  const response = await fetch(`${url}${path}`, { ...init, signal: AbortSignal.timeout(PATIENCE_MS) });
  const bytes = new Uint8Array(await response.arrayBuffer());
  const text = new TextDecoder().decode(bytes);
  const lines = /watch/.test(path) && response.status === 200 ? text.split('\n').filter(Boolean) : [text];
  const isProtobuf = response.headers.get('content-type')?.startsWith('application/vnd.kubernetes.protobuf');
  const parsed = isProtobuf ? decoded(bytes, /watch/.test(path)) : lines.map(parse);
  for (const each of parsed) remember(memory, each, asked);
  const shown = parsed.map((each) => normal(each));
  const type = (response.headers.get('content-type') ?? '').replace(/; ?charset=utf-8/, '');
  return { status: response.status, type, headers: headersOf(response.headers), body: shown.length === 1 ? shown[0] : shown };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function remember(memory: Memory, value: unknown, { keep }: Asked): void {
  const { metadata } = (value ?? {}) as { metadata?: { name?: string; resourceVersion?: string; continue?: string } };
  if (keep && metadata?.continue) memory.next = metadata.continue;
  if (metadata?.resourceVersion && Number(metadata.resourceVersion) > Number(memory.version))
    memory.version = metadata.resourceVersion;
}

const BY_NATURE: Readonly<Record<string, string>> = {
  ...{ uid: 'UID', resourceVersion: 'VERSION', creationTimestamp: 'TIME', deletionTimestamp: 'TIME', continue: 'CONTINUE' },
};

/** Resolves when a custom resource is served, which takes the server a moment. */
async function served({ url, fetch }: ApiServer, path: string): Promise<void> {
  while ((await fetch(`${url}${path}`)).status !== 200) await sleep(POLL_MS);
}

/** Reads do not disturb each other, and a watch takes a second: many at once. Everything else happens one after the other. */
function batches(all: readonly Asked[]): Asked[][] {
  const result: Asked[][] = [];
  let reads: Asked[] = [];
  for (const asked of all) {
    const alone = asked.method !== 'GET' || asked.keep === true;
    if (alone || reads.length === AT_ONCE) {
      if (reads.length > 0) result.push(reads);
      reads = [];
    }
    if (alone) result.push([asked]);
    else reads.push(asked);
  }
  if (reads.length > 0) result.push(reads);
  return result;
}

const AT_ONCE = 24;

/** What is left out of objects under a name. Descriptions of columns are for people; real bookmarks have cells of an empty object. */
const LEFT_OUT: Readonly<Record<string, readonly string[]>> = {
  columnDefinitions: ['description', 'type'],
};

/** A value without what differs by nature. */
function normal(value: unknown, name: string = ''): unknown {
  if (Array.isArray(value)) return value.map((each) => normal(each, name));
  if (typeof value === 'object' && value !== null) {
    const left = LEFT_OUT[name] ?? ['managedFields'];
    const entries = Object.entries(value).filter(([key]) => !left.includes(key));
    return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, each]) => [key, normal(each, key)]));
  }
  if (typeof value !== 'string' || value === '') return value;
  if (Object.hasOwn(BY_NATURE, name)) return BY_NATURE[name];
  return value
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UID')
    .replace(/gen-[a-z0-9]{5}/g, 'gen-RANDOM')
    .replace(/(^x{58}|A-)[a-z0-9]{5}\b/g, '$1RANDOM')
    .replace(/\b\d+s\b/g, 'AGE')
    .replace(/(resource version:? |current: )\d+/gi, '$1N');
}

/** Pairs of {@link OTHER_HEADERS} that were met. */
const metHeaders = new Set<object>();

function alike(name: string, theirs: string | undefined, ours: string | undefined): boolean {
  if (theirs === ours) return true;
  const listed = OTHER_HEADERS.find((each) => each.name === name && each.theirs === theirs && each.ours === ours);
  if (listed) metHeaders.add(listed);
  return listed !== undefined;
}

/** The parts in which two answers differ. */
function differing(theirs: Answered, ours: Answered): Part[] {
  const parts: Part[] = [];
  if (theirs.status !== ours.status) parts.push('status');
  if (theirs.type !== ours.type) parts.push('type');
  const same = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);
  if (HEADERS.some((name) => !alike(name, theirs.headers[name], ours.headers[name]))) parts.push('headers');
  if (!same(bare(theirs.body), bare(ours.body))) parts.push('body');
  return parts;
}

/** A Status without its words, which are each server's own. What clients go by is left: code, reason, name, fields. */
function bare(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(bare);
  const { type, object } = (body ?? {}) as { type?: string; object?: unknown };
  if (type === 'ERROR') return { type, object: bare(object) };
  if ((body as { kind?: string } | null)?.kind !== 'Status') return body;
  const { message: _, details, ...rest } = body as { message?: string; details?: { causes?: { message?: string }[] } };
  if (details === undefined || Object.keys(details).length === 0) return rest;
  const { causes, ...more } = details;
  return { ...rest, details: { ...more, ...(causes && { causes: causes.map(({ message: __, ...cause }) => cause) }) } };
}

/** What both answered to a request, and the parts in which they differ. */
interface Told {
  readonly asked: Asked;
  readonly theirs: Answered;
  readonly ours: Answered;
  readonly parts: readonly Part[];
}

async function both(sides: readonly [Side, Side], asked: Asked, real: ApiServer): Promise<Told> {
  if (['PATCH', 'PUT', 'DELETE'].includes(asked.method)) await caughtUp(real, pathOf(asked, sides[0].memory));
  const [theirs, ours] = await Promise.all([ask(sides[0], asked), ask(sides[1], asked)]);
  return { asked, theirs, ours, parts: differing(theirs, ours) };
}

const isAsListed = ({ asked, parts }: Told): boolean =>
  parts.length === 0 || parts.join() === differenceOf(asked.title)?.parts.join();

describe.skipIf(missing)('a kube-apiserver and ours', () => {
  let real: ApiServer;
  let our: OurServer;
  let server: Server;
  const told: Told[] = [];

  beforeAll(async () => {
    real = await startApiServer();
    for (const definition of [MEALS_CRD, ...SCALED_CRDS]) {
      await real.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
    }
    for (const path of [MEALS_PATH, ...SCALED_PATHS]) await served(real, path);
    const resources = [...BUILT_IN_KINDS, MEALS, ...SCALED] as ResourceDefinition[];
    our = new OurServer({ storage: new MemoryStorage(), resources, identityOf: (user) => user });
    await our.ready;
    server = createServer(our.handler);
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const sides: readonly [Side, Side] = [
      { url: real.url, fetch: real.fetch as unknown as Fetch, memory: newMemory() },
      { url, fetch, memory: newMemory() },
    ];
    for (const batch of batches([...REQUESTS, ...FIELD_REQUESTS, ...SCALE_REQUESTS, ...KIND_REQUESTS])) {
      told.push(...(await Promise.all(batch.map((asked) => both(sides, asked, real)))));
    }
  }, START_MS * 4);

  afterAll(async () => {
    await our?.shutdown();
    server?.closeAllConnections();
    server?.close();
    await real?.stop();
  }, START_MS);

  it('answer alike, but for what differs on purpose', () => {
    expect(told.length).toBeGreaterThan(300);
    const wrong = told.filter((each) => !isAsListed(each));
    expect(
      wrong.map(({ asked, theirs, ours, parts }) => {
        const [one, other] = [JSON.stringify(theirs), JSON.stringify(ours)];
        return `${asked.title}: ${parts.join()}\n${shown(one, other)}\n${shown(other, one)}\n`;
      }),
    ).toEqual([]);
  });

  it('neither sends Allow, Location, ETag nor WWW-Authenticate in these answers, and each header that is sent is compared', () => {
    const sent = (of: 'theirs' | 'ours'): string[] => [...new Set(told.flatMap((each) => Object.keys(each[of].headers)))].sort();
    expect(sent('theirs')).toEqual(['cache-control', 'retry-after', 'warning']);
    expect(sent('ours')).toEqual(['cache-control', 'vary', 'warning']);
  });

  it('say the same of fields that are unknown or sent twice, word for word', () => {
    const refused = told.filter(({ asked, theirs }) => asked.title.startsWith('FIELDS Strict') && theirs.status === 400);
    const words = ({ body }: Answered): unknown => (body as { message?: string } | null)?.message;
    expect(refused.length).toBeGreaterThan(10);
    expect(refused.map(({ ours }) => words(ours))).toEqual(refused.map(({ theirs }) => words(theirs)));
  });

  it('warn of the finalizers that a write adds to a custom resource', () => {
    const warned = told.filter(({ asked }) => asked.title.startsWith('FINALIZERS')).map(({ theirs }) => theirs.headers.warning);
    expect(warned.filter((each) => each?.includes('finalizer')).length).toBeGreaterThan(8);
    expect(warned.filter((each) => each === undefined).length).toBeGreaterThan(5);
  });

  it('refuse what is no metadata word for word', () => {
    const words = (of: 'theirs' | 'ours'): unknown[] =>
      told.filter(({ asked }) => asked.title.startsWith('WORDS')).map((each) => [each.asked.title, each[of].body]);
    expect(words('theirs').length).toBeGreaterThan(20);
    expect(words('ours')).toEqual(words('theirs'));
  });

  it('publish the same documents in the same forms, and tell caches the same, but for what differs on purpose', async () => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const theirs = await documentsOf(real.fetch as unknown as Fetch, real.url);
    expect(new Set(theirs.map(({ status }) => status))).toEqual(new Set([200, 406]));
    expect(new Set(theirs.map(({ cache }) => cache))).toEqual(new Set(['no-cache, private', 'public']));
    expect(await documentsOf(fetch, url)).toEqual(theirs.map(asOurs));
    const hashed = await hashedOf(real.fetch as unknown as Fetch, real.url);
    expect(hashed).toEqual([
      [200, 'public, immutable'],
      [301, 'no-cache, private'],
    ]);
    // Ours says the same of a hash as of none.
    expect(await hashedOf(fetch, url)).toEqual(hashed.map(() => [200, 'no-cache, private']));
  });

  it('tell the same of subresources', async () => {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const told = [await real.fetch(`${real.url}/apis/example.com/v1`), await fetch(`${url}/apis/example.com/v1`)];
    const [theirs, ours] = await Promise.all(
      told.map(async (response) => {
        const { resources } = (await response.json()) as { resources: { name: string }[] };
        const parts = resources.filter(({ name }) => name.includes('/')).map((each) => normal(each));
        return parts.map((each) => JSON.stringify(each)).sort();
      }),
    );
    expect(ours).toEqual(theirs);
    expect(ours?.filter((each) => each.includes('"Scale"'))).toHaveLength(SCALED.length);
  });

  it('every difference that is listed is there', () => {
    const met = new Set(told.filter(({ parts }) => parts.length > 0).map(({ asked }) => differenceOf(asked.title)));
    expect(DIFFERENCES.filter((each) => !met.has(each)).map(({ reason }) => reason)).toEqual([]);
    expect(OTHER_HEADERS.filter((each) => !metHeaders.has(each)).map(({ reason }) => reason)).toEqual([]);
  });
});

const SHOWN_CHARACTERS = 600;

/** Its beginning, and what stands where its body, which comes last, differs from the other. */
function shown(text: string, other: string): string {
  const body = text.indexOf('"body":');
  const start = other.indexOf('"body":') - body;
  let at = body;
  while (at < text.length && text[at] === other[at + start]) at += 1;
  const from = Math.max(body, at - SHOWN_CHARACTERS / 2);
  return `${text.slice(0, body)}…${text.slice(from, from + SHOWN_CHARACTERS)}`;
}
