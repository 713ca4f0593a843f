// A server of TLS that answers what a test tells it to, and notes who asked for what; and kubeconfigs that lead to it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { certify } from './certificates.ts';

export interface Noted {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** The name in the client's certificate. */
  readonly client: string | undefined;
}

export type Reply = (response: ServerResponse, noted: Noted) => void;

export interface ClusterServer {
  readonly url: string;
  readonly ca: string;
  readonly client: ReturnType<typeof certify>['client'];
  readonly requests: Noted[];
  /** All connections, also those that are closed. */
  readonly sockets: Socket[];
  reply: Reply;
  /** Writes a file into the directory of this server, and returns its path. */
  file(name: string, text: string): string;
  /** Writes a kubeconfig, and returns its path. */
  kubeconfig(user: object, cluster?: object, context?: object): string;
  close(): Promise<void>;
}

export const json =
  (body: unknown, status = 200, headers: Record<string, string> = {}): Reply =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };

const certificates = certify();

export async function serveCluster(): Promise<ClusterServer> {
  const directory = mkdtempSync(join(tmpdir(), 'watchmux-cluster-'));
  const { ca, client, server: own } = certificates;
  const server = createServer({ ...own, ca, requestCert: true, rejectUnauthorized: false }, (request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (some: string) => {
      body += some;
    });
    request.on('end', () => {
      const socket = request.socket as TLSSocket;
      const { method = '', url = '', headers } = request;
      const name = socket.authorized ? socket.getPeerCertificate().subject?.CN : undefined;
      const noted = { method, url, headers, body, client: name as string | undefined };
      served.requests.push(noted);
      served.reply(response, noted);
    });
  });
  const sockets: Socket[] = [];
  server.on('secureConnection', (socket) => sockets.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const served: ClusterServer = {
    url,
    ca,
    client,
    requests: [],
    sockets,
    reply: json({ kind: 'Status', code: 500 }, 500),
    file: (name, text) => {
      const path = join(directory, name);
      writeFileSync(path, text);
      return path;
    },
    kubeconfig: (user, cluster = {}, context = {}) =>
      served.file(
        'config',
        JSON.stringify({
          apiVersion: 'v1',
          kind: 'Config',
          clusters: [{ name: 'c', cluster: { server: url, 'certificate-authority-data': base64(ca), ...cluster } }],
          users: [{ name: 'u', user }],
          contexts: [
            { name: 'x', context: { cluster: 'c', user: 'u', ...context } },
            { name: 'y', context: { cluster: 'c', user: 'u', namespace: 'team-y' } },
          ],
          'current-context': 'x',
        }),
      ),
    close: () =>
      new Promise((resolve) => {
        rmSync(directory, { recursive: true, force: true });
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return served;
}

export const base64 = (text: string): string => Buffer.from(text).toString('base64');
