/** The servers of the workload `peers`, each with all that its clients need to know, and what it has cost so far. */
import { type ChildProcess, fork } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { ApiServer, CONFIG_MAPS, NAMESPACES as NAMESPACE_KIND, type ResourceDefinition } from '../../src/apiserver/index.ts';
import { MemoryStorage } from '../../src/storage/index.ts';
import { startApiServer } from '../../test/peers/apiserver.ts';
import { builtBinary } from '../../test/peers/binary.mjs';
import { certify } from '../../test/unit/certificates.ts';
import { type Entry, LeftOut } from '../workload.ts';
import type { Access } from './connection.ts';
import type { Order, Reply } from './load.ts';
import { NAMESPACES } from './objects.ts';

export const OURS: Entry = { name: 'watchmux', queue: 'bounded' };
export const KUBERNETES: Entry = { name: 'kube-apiserver', queue: 'bounded' };

/** A server that listens. */
export interface Peer {
  readonly access: Access;
  /** Processor time that it has used, in ms. */
  cpuMs(): number;
  end(): Promise<void>;
}

const WEEK_MS = 604_800_000;
const TOKEN = 'secret';

/** Ours, in this process, with TLS, and a token that is checked. */
export async function ours(): Promise<Peer> {
  const api = new ApiServer({
    storage: new MemoryStorage(),
    resources: [CONFIG_MAPS as ResourceDefinition, NAMESPACE_KIND as ResourceDefinition],
    customResourceDefinitions: true,
    authenticate: (request) => (request as { headers: { authorization?: string } }).headers.authorization === `Bearer ${TOKEN}`,
    authorize: () => true,
    ...{ maxWatchers: 20_000, maxWatchersPerAddress: 20_000, minRequestTimeoutMs: WEEK_MS },
  });
  const { ca, server: certified } = certify();
  const server = createServer({ ...certified }, api.handler);
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const namespaces = api.resource('namespaces/v1');
  for (const name of NAMESPACES) await namespaces.create({ metadata: { name } });
  await api.ready;
  return {
    access: { port: (server.address() as AddressInfo).port, ca, token: TOKEN },
    cpuMs() {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1_000;
    },
    async end() {
      server.close().closeAllConnections();
      await api.shutdown();
    },
  };
}

/** The original, with its etcd in one process. */
export async function kubernetes(): Promise<Peer> {
  if (builtBinary() === undefined) throw new LeftOut('it is not built: node test/peers/build.mjs');
  const server = await startApiServer({ flags: ['--max-mutating-requests-inflight=0', '--max-requests-inflight=0'] });
  for (const name of NAMESPACES) await server.create('/api/v1/namespaces', { metadata: { name } });
  return {
    access: { port: Number(new URL(server.url).port), ca: server.ca, token: server.token },
    cpuMs: () => cpuOf(server.pid as number),
    end: () => server.stop(),
  };
}

/** Of Linux: hundredths of a second. */
const TICK_MS = 10;

/** Processor time of another process. */
function cpuOf(pid: number): number {
  // The name of the program comes before, in parentheses, and may have any character in it.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

/** The clients of one server. */
export class Clients {
  readonly #process: ChildProcess = fork(fileURLToPath(new URL('./peers-load.js', import.meta.url)), { execArgv: [] });

  ask(order: Order): Promise<Reply> {
    const child = this.#process;
    return new Promise((resolve, reject) => {
      const ended = (): void => reject(new Error('the load has ended'));
      child.once('exit', ended);
      child.once('message', (reply: Reply) => {
        child.off('exit', ended);
        if (reply.error === undefined) resolve(reply);
        else reject(new Error(reply.error));
      });
      child.send(order);
    });
  }

  end(): void {
    this.#process.kill();
  }
}
