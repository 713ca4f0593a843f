import { ApiServer, type ApiServerOptions, CONFIG_MAPS, NAMESPACES, type ResourceDefinition } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { MemoryStorage, type Storage } from '../../src/storage/index.ts';
import { without } from './storage-without.ts';

export interface Order extends KubernetesObject {
  readonly spec?: { readonly item?: string; readonly count?: number } | undefined;
  readonly status?: { readonly phase?: string } | undefined;
}

export const ORDERS: ResourceDefinition<Order> = {
  group: 'example.com',
  version: 'v1',
  plural: 'orders',
  kind: 'Order',
  status: true,
  fields: { 'spec.item': ({ spec }) => spec?.item },
  validate: ({ spec }) =>
    (spec?.count ?? 0) < 0 ? [{ field: 'spec.count', message: 'Invalid value: -1: must not be negative' }] : undefined,
};

/** What each order says of itself. */
export const ORDER = { apiVersion: 'example.com/v1', kind: 'Order' } as const;

export const ORDERS_PATH = '/apis/example.com/v1/namespaces/default/orders';

/** The same storage as one that is not in memory: a server puts a cache before it. */
export const remote = (storage: MemoryStorage): Storage => without(storage, 'served');

const CUSTOM = /^\/apis\/([^/]+\.[^/]+\/[^/]+)\/(?:namespaces\/[^/]+\/)?([a-z]+)(?:\/[^/]+(?:\/status)?)?(?:\?.*)?$/;

/** A custom resource with its kind, unless it says another one. */
function ofKind(path: string, body: unknown, kinds: Map<string, string>): unknown {
  const [, apiVersion, plural = ''] = CUSTOM.exec(path) ?? [];
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  const { names } = (body as { spec?: { names?: { plural: string; kind: string } } }).spec ?? {};
  if (names) kinds.set(names.plural, names.kind);
  const kind = kinds.get(plural);
  return kind === undefined ? body : { apiVersion, kind, ...body };
}

/** A server over memory. `call` makes a request without a socket; a custom resource need not say its kind. */
export function rig(options: Partial<ApiServerOptions> = {}): {
  server: ApiServer;
  storage: MemoryStorage;
  call: (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<Answered>;
} {
  const storage = new MemoryStorage();
  let uids = 0;
  const server = new ApiServer({
    storage,
    resources: [ORDERS as ResourceDefinition, CONFIG_MAPS as ResourceDefinition, NAMESPACES as ResourceDefinition],
    now: () => Date.UTC(2026, 0, 2, 3, 4, 5, 678),
    random: () => 0.5,
    uid: () => `uid-${++uids}`,
    onError: () => {}, // it would be printed
    ...options,
  });
  const kinds = new Map((options.resources ?? [ORDERS]).map(({ plural, kind }) => [plural, kind]));
  const call = async (method: string, path: string, given?: unknown, headers: Record<string, string> = {}): Promise<Answered> => {
    const type = { 'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json' };
    const body = method === 'POST' || method === 'PUT' ? ofKind(path, given, kinds) : given;
    const text = body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body);
    const init = { method, headers: { ...(text === null ? {} : type), ...headers }, body: text };
    const response = await server.fetch(new Request(`http://127.0.0.1${path}`, init));
    const said = await response.text();
    return { code: response.status, headers: response.headers, text: said, body: parsed(said) };
  };
  return { server, storage, call };
}

export interface Answered {
  readonly code: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into what came over the wire
  readonly body: any;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
