// An HTTPS server whose answers to AdmissionReviews a test decides, and which writes down what it is asked.
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { certify } from './certificates.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into reviews
type Any = any;

/**
 * Returns the `response` to a request, without its uid; or `raw`, the whole body, with any `httpStatus`, or `cut` short; or `wire`, all
 * that is sent before the connection is closed. Never: the webhook hangs.
 */
export type Decide = (request: Any) => object | Promise<object>;

interface Asked {
  readonly method: string | undefined;
  readonly path: string;
  readonly servername: string;
  /** Another number for each connection. */
  readonly port: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly review: Any;
}

export interface ReviewServer {
  readonly url: string;
  /** As a `caBundle`. */
  readonly ca: string;
  /** HOST:PORT */
  readonly address: string;
  /** What has been asked, by path. */
  readonly asked: Asked[];
  /** By path, without the query. Default: everything is allowed. */
  readonly decide: Map<string, Decide>;
  stop(): Promise<void>;
}

export async function startReviewServer(): Promise<ReviewServer> {
  const { ca, server: pair } = certify();
  const asked: Asked[] = [];
  const decide = new Map<string, Decide>();
  const server = createServer({ cert: pair.cert, key: pair.key }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const review = JSON.parse(Buffer.concat(chunks).toString());
      const path = request.url ?? '';
      const { servername } = request.socket as unknown as { servername: string | false };
      const { headers, method, socket } = request;
      asked.push({ method, path, servername: servername || '', port: socket.remotePort, headers, review });
      const said = (await (decide.get(path.split('?')[0] as string) ?? (() => ({ allowed: true })))(review.request)) as Any;
      const { raw, httpStatus = 200, cut, wire, ...own } = said;
      const whole = { ...review, request: undefined, response: { uid: review.request.uid, ...own } };
      if (wire !== undefined) {
        socket.end(wire);
        return;
      }
      if (cut) {
        response.writeHead(200, { 'content-length': 100 });
        response.write(raw, () => request.socket.destroy());
        return;
      }
      response.writeHead(httpStatus, { 'content-type': 'application/json' }).end(raw ?? JSON.stringify(whole));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    ...{ url: `https://${address}`, address, ca: Buffer.from(ca).toString('base64'), asked, decide },
    stop: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The patch of an answer. */
export const patched = (...operations: readonly object[]): object => ({
  ...{ allowed: true, patchType: 'JSONPatch' },
  patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
});
