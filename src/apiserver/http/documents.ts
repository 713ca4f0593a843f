/** What a server publishes about itself over HTTP: discovery and OpenAPI. */
import { Discovery, type DiscoveryOptions } from '../discovery/discovery.ts';
import { OpenApi } from '../openapi/openapi.ts';
import type { ResourceInfo } from '../resource-info.ts';
import type { WholeAnswer, WireRequest } from './wire.ts';

export class Documents {
  readonly #discovery: Discovery;
  readonly #openApi: OpenApi;

  constructor(resources: readonly ResourceInfo[], options: DiscoveryOptions = {}) {
    this.#discovery = new Discovery(resources, options);
    this.#openApi = new OpenApi(resources, options.gitVersion);
  }

  /** The document at a path; undefined if there is none. A client whose ETag is current gets only a 304. */
  answer(segments: readonly string[], request: Pick<WireRequest, 'header'>): WholeAnswer | undefined {
    const path = `/${segments.join('/')}`;
    const accept = request.header('accept');
    const found = segments[0] === 'openapi' ? this.#openApi.document(path, accept) : this.#discovery.document(path, accept);
    if (found === undefined) return undefined;
    const { contentType, body, etag } = found;
    // An ETag without `no-cache` would let a client use the answer of an earlier server at this address.
    const headers = { 'cache-control': 'no-cache, private', vary: 'Accept', ...(etag !== undefined && { etag }) };
    if (etag !== undefined && has(request.header('if-none-match'), etag)) return { code: 304, headers, body: null };
    return { code: 200, headers: { ...headers, 'content-type': contentType, 'x-content-type-options': 'nosniff' }, body };
  }
}

function has(header: string | undefined, etag: string): boolean {
  return header?.split(',').some((each) => each.trim() === etag || each.trim() === `W/${etag}`) === true;
}
