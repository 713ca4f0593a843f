import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An API server, of the source or of the package. */
interface Listener {
  readonly handler: RequestListener;
  shutdown(): Promise<void>;
}

/** A server behind a socket of this machine. */
export interface Listening {
  readonly url: string;
  readonly port: number;
  readonly http: Server;
  readonly close: () => Promise<void>;
}

export async function listening(server: Listener): Promise<Listening> {
  const http = createServer(server.handler);
  await new Promise<void>((resolve) => void http.listen(0, '127.0.0.1', resolve));
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    http,
    close: async () => {
      await server.shutdown();
      http.closeAllConnections();
      await new Promise<void>((resolve) => void http.close(() => resolve()));
    },
  };
}
