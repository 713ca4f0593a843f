// What servers publish about themselves, in each form that a client may ask for, and what it tells caches.

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** What is told of a document. */
export interface Told {
  readonly of: string;
  readonly status: number;
  readonly type: string | null;
  readonly cache: string | null;
  readonly vary: string | null;
  /** The answer to whoever has it already: its ETag is sent back. */
  readonly again: number | undefined;
  /** Only of what is the same on both sides. */
  readonly body: string | undefined;
}

const AGGREGATED = ';g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const [JSON_TYPE, YAML] = ['application/json', 'application/yaml'];
const ACCEPTS = [
  ...['', '*/*', JSON_TYPE, YAML, 'text/html', JSON_TYPE + AGGREGATED, YAML + AGGREGATED],
  ...[`${YAML}${AGGREGATED},${JSON_TYPE}`, `${JSON_TYPE},${YAML}`, `${YAML};as=Table;g=meta.k8s.io;v=v1`],
];
const GROUP = '/apis/coordination.k8s.io';
const DISCOVERY = ['/api', '/apis', GROUP, `${GROUP}/v1`];
const OPENAPI = ['/openapi/v2', '/openapi/v3', `/openapi/v3${GROUP}/v1`];

/** Asks for all of them. */
export async function documentsOf(fetch: Fetch, url: string): Promise<Told[]> {
  const told: Told[] = [];
  for (const path of ['/', '/version', ...DISCOVERY, ...OPENAPI])
    for (const accept of ACCEPTS) told.push(await one(fetch, url, { path, accept }));
  return told;
}

async function one(fetch: Fetch, url: string, { path, accept }: { path: string; accept: string }): Promise<Told> {
  const get = (more: Record<string, string> = {}): Promise<Response> => fetch(url + path, { headers: { accept, ...more } });
  const response = await get();
  const { status, headers } = response;
  const body = await response.text();
  const etag = headers.get('etag');
  const again = etag === null ? undefined : await get({ 'if-none-match': etag });
  await again?.arrayBuffer();
  const vary = headers.get('vary');
  return {
    of: `${path} ${accept}`,
    status,
    type: headers.get('content-type'),
    cache: headers.get('cache-control'),
    vary: vary?.includes('Accept') ? 'Accept' : vary,
    again: again?.status,
    body: path === GROUP && status === 200 ? (accept.startsWith(YAML) ? body : JSON.stringify(JSON.parse(body))) : undefined,
  };
}

/** Status and caching of an OpenAPI document at the address that the index tells, and with the hash of an older one. */
export async function hashedOf(fetch: Fetch, url: string): Promise<unknown[]> {
  const index = (await (await fetch(`${url}/openapi/v3`, {})).json()) as { paths: Record<string, { serverRelativeURL: string }> };
  const at = index.paths[`${GROUP.slice(1)}/v1`]?.serverRelativeURL ?? '';
  const told: unknown[] = [];
  for (const path of [at, at.replace(/hash=.*/, 'hash=0')]) {
    const { status, headers } = await fetch(url + path, {});
    told.push([status, headers.get('cache-control')]);
  }
  return told;
}

/** What ours answers where a kube-apiserver answers this: it differs on purpose. */
export function asOurs(theirs: Told): Told {
  const [path = ''] = theirs.of.split(' ');
  // A refusal is JSON, which every client reads, and no cache keeps it for others.
  if (theirs.status === 406) return { ...theirs, type: JSON_TYPE as string, vary: null };
  // An ETag without `no-cache` would let a client use the answer of an earlier server at this address.
  const cached = { ...theirs, cache: 'no-cache, private', vary: 'Accept' };
  // The index is JSON, and says so.
  return path === '/openapi/v3' ? { ...cached, type: JSON_TYPE as string, again: 304 } : cached;
}
