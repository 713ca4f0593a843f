import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { KubernetesObject, ListWatcher } from '../../src/cache/index.ts';
import { isWatchError, type ObjectEvent, type Watch } from '../../src/index.ts';

/** A server of one collection, which speaks Kubernetes' list/watch protocol. */
export interface CollectionServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves a source over HTTP. */
export async function serveCollection(source: ListWatcher<KubernetesObject>): Promise<CollectionServer> {
  const watches = new Set<Watch<unknown>>();
  const server: Server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://h/');
    const text = (name: string): string | undefined => searchParams.get(name) ?? undefined;
    const common = {
      resourceVersion: text('resourceVersion'),
      resourceVersionMatch: text('resourceVersionMatch') as never,
      labelSelector: text('labelSelector'),
      fieldSelector: text('fieldSelector'),
      ...(searchParams.has('timeoutSeconds') && { timeoutSeconds: Number(text('timeoutSeconds')) }),
    };
    const work = searchParams.has('watch')
      ? source
          .watch({
            ...common,
            sendInitialEvents: searchParams.has('sendInitialEvents') ? text('sendInitialEvents') === 'true' : undefined,
            allowWatchBookmarks: text('allowWatchBookmarks') === 'true',
          })
          .then((watch) => stream(watch, response, watches))
      : source
          .list({ ...common, limit: Number(text('limit') ?? 0), continue: text('continue') })
          .then(({ items, ...metadata }) => answer(response, 200, { kind: 'ThingList', apiVersion: 'v1', metadata, items }));
    work.catch((error: unknown) => {
      const status = isWatchError(error, 'REFUSED') ? error.status : undefined;
      answer(response, status?.code ?? 500, status ?? {});
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: async () => {
      for (const watch of watches) await watch.return();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function answer(response: ServerResponse, code: number, body: unknown): void {
  response.writeHead(code, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

async function stream(
  watch: Watch<ObjectEvent<KubernetesObject>>,
  response: ServerResponse,
  watches: Set<Watch<unknown>>,
): Promise<void> {
  watches.add(watch);
  response.on('close', () => void watch.return());
  response.writeHead(200, { 'content-type': 'application/json' });
  response.flushHeaders();
  for await (const event of watch) response.write(`${JSON.stringify(event)}\n`);
  watches.delete(watch);
  response.end();
}
