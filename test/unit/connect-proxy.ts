// A proxy of HTTP that only knows CONNECT, and notes what it was asked. It finds cluster.example on this machine.
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';

export interface ConnectProxy {
  readonly url: string;
  /** What it was asked to connect to, with what it was sent besides. */
  readonly asked: string[];
  readonly tunnels: Set<Socket>;
  /** Its answer; undefined: none, ever. */
  answer: string | undefined;
  close(): Promise<void>;
}

export async function serveProxy(): Promise<ConnectProxy> {
  const server = createServer((_request, response) => response.writeHead(405).end());
  const proxy: ConnectProxy = {
    url: '',
    asked: [],
    tunnels: new Set(),
    answer: '200 Connection established',
    close: () =>
      new Promise((resolve) => {
        for (const tunnel of proxy.tunnels) tunnel.destroy();
        server.close(() => resolve());
      }),
  };
  server.on('connect', (request, socket: Socket) => {
    const { port, hostname } = new URL(`tcp://${request.url}`);
    proxy.asked.push([request.url, request.headers.authorization, request.headers['proxy-authorization']].join(' ').trim());
    proxy.tunnels.add(socket.on('close', () => proxy.tunnels.delete(socket)).on('error', () => {}));
    if (proxy.answer === undefined) return void socket.on('end', () => socket.end()).resume();
    socket.write(`HTTP/1.1 ${proxy.answer}\r\n\r\n`);
    if (!proxy.answer.startsWith('200')) return void socket.end();
    const address = hostname === 'cluster.example' ? '127.0.0.1' : hostname;
    const there = connect(Number(port), address).on('error', () => socket.destroy());
    socket.on('close', () => there.destroy());
    there.on('close', () => socket.destroy());
    socket.pipe(there).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(proxy, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}
