// Server-side apply and managedFields of a real kube-apiserver and of ours, answer by answer and word by word: the same requests to
// both, and the whole answers, without what differs by nature.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONFIG_MAPS, NAMESPACES, ApiServer as OurServer, type ResourceDefinition } from 'watchmux/apiserver';
import { MemoryStorage } from 'watchmux/storage';
import { component, isMissing } from '../components.ts';
import { type ApiServer, startApiServer } from './apiserver.ts';
import { APPLY_REQUESTS, GADGETS, GADGETS_CRD, GADGETS_PATH } from './differential/apply.ts';
import type { Asked, Memory } from './differential/requests.ts';

const START_MS = 90_000;
const PATIENCE_MS = 20_000;
const POLL_MS = 100;

interface Side {
  readonly url: string;
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  readonly memory: Memory;
}

interface Answered {
  readonly status: number;
  readonly body: unknown;
}

async function ask({ url, fetch, memory }: Side, asked: Asked): Promise<Answered> {
  const path = typeof asked.path === 'string' ? asked.path : asked.path(memory);
  const body = typeof asked.body === 'function' ? asked.body(memory) : asked.body;
  const init = {
    method: asked.method,
    headers: { 'user-agent': 'asker/1', ...asked.headers },
    ...(body !== undefined && { body }),
  };
  const response = await fetch(`${url}${path}`, { ...init, signal: AbortSignal.timeout(PATIENCE_MS) });
  const text = await response.text();
  const value = parse(text) as { kind?: string; metadata?: { name?: string } };
  if (value?.metadata?.name && value.kind !== 'Scale') memory.objects.set(value.metadata.name, value as never);
  const shown = normal(value) as { code?: number; message?: string; reason?: string };
  const isTyped = /^failed to create typed patch object/.test(shown?.message ?? '');
  // What is wrong with a text is told in the words of its reader.
  if (!isTyped && (shown?.code === 400 || shown?.code === 422)) delete shown.message;
  // A client's mistake, of which upstream says that it is the server's own.
  if (isTyped && shown.code === 500 && fetch !== globalThis.fetch) {
    return { status: 400, body: normal({ ...shown, code: 400, reason: 'BadRequest' }) };
  }
  if (shown?.reason === '') delete shown.reason;
  return { status: response.status, body: shown };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const BY_NATURE = ['uid', 'resourceVersion', 'creationTimestamp', 'deletionTimestamp', 'time'];

/**
 * A value without what differs by nature. The order of managers depends on the clock, that of conflicts on nothing, and upstream tells
 * a fault as often as it looks.
 */
function normal(value: unknown, name: string = ''): unknown {
  if (Array.isArray(value)) {
    const all = value.map((each) => normal(each));
    if (name === 'causes') return [...new Set(all.map((each) => JSON.stringify(each)))].sort();
    return name === 'managedFields' ? all.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) : all;
  }
  if (typeof value === 'object' && value !== null) {
    // Namespaces have no finalizers here: see differential/differences.ts.
    const { spec: _, ...rest } = value as { kind?: string; spec?: unknown };
    const entries = Object.entries(rest.kind === 'Namespace' ? rest : value).sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(entries.map(([key, each]) => [key, normal(each, key)]));
  }
  if (typeof value !== 'string') return value;
  if (BY_NATURE.includes(name)) return name.toUpperCase();
  return value.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'UID').replace('a\\ab', 'a.b');
}

/** What differs on purpose, and why, by what its titles contain. */
const DIFFERENCES: readonly { readonly reason: string; readonly of: readonly RegExp[] }[] = [
  {
    reason: 'The Scale of a custom resource can be applied; upstream cannot convert it (500)',
    of: [/PATCH \/s\/scale/, /GET \S+\/s$/],
  },
  { reason: 'The uid is a precondition, wherever it is sent', of: [/"uid":"other"/] },
];

describe.skipIf(isMissing(component('kube-apiserver')))('server-side apply of a kube-apiserver and of ours', () => {
  let real: ApiServer;
  let our: OurServer;
  let server: Server;
  const told: { title: string; theirs: Answered; ours: Answered }[] = [];

  beforeAll(async () => {
    real = await startApiServer();
    await real.create('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', GADGETS_CRD);
    while ((await real.fetch(`${real.url}${GADGETS_PATH}`)).status !== 200) await sleep(POLL_MS);
    const resources = [CONFIG_MAPS, NAMESPACES, GADGETS] as ResourceDefinition[];
    our = new OurServer({ storage: new MemoryStorage(), resources, managedFields: 'always' });
    await our.ready;
    server = createServer(our.handler);
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const newMemory = (): Memory => ({ version: '1', next: '', objects: new Map() });
    const sides: readonly [Side, Side] = [
      { url: real.url, fetch: real.fetch as unknown as Side['fetch'], memory: newMemory() },
      { url, fetch, memory: newMemory() },
    ];
    for (const asked of APPLY_REQUESTS) {
      const [theirs, ours] = await Promise.all(sides.map((side) => ask(side, asked)));
      told.push({ title: asked.title, theirs: theirs as Answered, ours: ours as Answered });
    }
  }, START_MS * 2);

  afterAll(async () => {
    await our?.shutdown();
    server?.closeAllConnections();
    server?.close();
    await real?.stop();
  }, START_MS);

  it('answer alike, word for word, but for what differs on purpose', () => {
    const wrong = told.filter(({ theirs, ours }) => JSON.stringify(theirs) !== JSON.stringify(ours));
    const met = new Set<object>();
    const others = wrong.filter(({ title }) => {
      const listed = DIFFERENCES.find(({ of }) => of.some((each) => each.test(title)));
      if (listed) met.add(listed);
      return !listed;
    });
    expect(told.length).toBeGreaterThan(100);
    expect(others.map(({ title, theirs, ours }) => [title, JSON.stringify(theirs), JSON.stringify(ours)].join('\n'))).toEqual([]);
    expect(DIFFERENCES.filter((each) => !met.has(each))).toEqual([]);
  });
});
