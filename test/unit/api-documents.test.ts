import { describe, expect, it } from 'vitest';
import { ApiServer } from '../../src/apiserver/server.ts';
import { MemoryStorage } from '../../src/storage/memory/memory-storage.ts';

const orders = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order' };
const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

async function ask(path: string, headers: Record<string, string> = {}, method: string = 'GET'): Promise<Response> {
  const server = new ApiServer({ storage: new MemoryStorage(), resources: [orders] });
  try {
    return await server.fetch(new Request(`http://127.0.0.1${path}`, { headers, method }));
  } finally {
    await server.shutdown();
  }
}

describe('what a server says about itself, over HTTP', () => {
  it('discovery, OpenAPI and the version, each with its type', async () => {
    for (const path of ['/api', '/apis', '/apis/example.com', '/apis/example.com/v1', '/version', '/openapi/v3', '/openapi/v2']) {
      const response = await ask(path);
      expect([path, response.status, response.headers.get('content-type')]).toEqual([path, 200, 'application/json']);
      expect(response.headers.get('vary')).toContain('Accept');
      await response.json();
    }
    const protobuf = await ask('/openapi/v2', { accept: 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf' });
    expect(protobuf.headers.get('content-type')).toContain('protobuf');
    expect((await protobuf.arrayBuffer()).byteLength).toBeGreaterThan(500);
  });

  it('whoever has a document already, by its ETag, is told just that', async () => {
    const first = await ask('/apis', { accept: AGGREGATED });
    const etag = first.headers.get('etag') ?? '';
    expect([first.status, first.headers.get('content-type')]).toEqual([200, AGGREGATED]);
    const again = await ask('/apis', { accept: AGGREGATED, 'if-none-match': `"other", ${etag}` });
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag]);
    expect((await ask('/apis', { accept: AGGREGATED, 'if-none-match': '"other"' })).status).toBe(200);
    expect((await ask('/apis', { accept: AGGREGATED, 'if-none-match': `W/${etag}` })).status).toBe(304);
    expect((await ask('/openapi/v2', { 'if-none-match': '*' })).status).toBe(304);
    expect((await ask('/apis', { 'if-none-match': etag })).status).toBe(200);
  });

  it('other paths are 404, other methods 405, other types 406', async () => {
    for (const path of ['/apis/other', '/apis/other/v1', '/api/v9', '/openapi', '/openapi/v3/apis/other/v1', '/constructor']) {
      expect([path, (await ask(path)).status]).toEqual([path, 404]);
    }
    expect((await ask('/apis', {}, 'DELETE')).status).toBe(405);
    for (const path of ['/apis', '/version', '/openapi/v2', '/openapi/v3/apis/example.com/v1'])
      expect([path, (await ask(path, { accept: 'text/html' })).status]).toEqual([path, 406]);
    for (const accept of ['application/com.github.proto-openapi.spec.v3@v1.0+protobuf', 'text/html, */*;q=0.1'])
      expect((await ask('/openapi/v3/apis/example.com/v1', { accept })).status).toBe(200);
    expect((await ask('/openapi/v3', { accept: 'text/html' })).status).toBe(200);
  });
});
