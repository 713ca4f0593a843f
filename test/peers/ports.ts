import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below those that a kernel gives to outgoing connections: a server that is started again finds its port free. */
const FIRST = 18_000;
const LAST = 31_999;

/** Ports of 127.0.0.1 on which nobody listens. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) {
    const port = randomInt(FIRST, LAST + 1);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

/** One such port. */
export async function freePort(): Promise<number> {
  return (await freePorts(1))[0] as number;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}
