// A real etcd in a process of its own, for one test file. It is the one that is built into the kube-apiserver; see build.mjs.
//
//   const etcd = await startEtcd();
//   await etcd.kill();                   // SIGKILL, as a crash
//   await etcd.start();                  // the same data and port
//   etcd.pause(); etcd.resume();         // SIGSTOP and SIGCONT
//   await etcd.restartEmpty();           // with other data
//   await etcd.stop();                   // nothing is left of it
//
// It listens on 127.0.0.1 only, and ends when the test process does, however that dies.
import { type ChildProcess, spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { builtBinary, ETCDUTL, HOW } from './binary.mjs';
import { freePorts } from './ports.ts';
import { ServerProcess } from './server-process.ts';

/** How one of several etcds finds the others. */
export interface EtcdMember {
  readonly name: string;
  /** Where it listens for the others. */
  readonly peerPort: number;
  /** The names of all, and where each of them is for the others: `m1=http://127.0.0.1:20123,m2=...`. */
  readonly members: string;
}

/** How an etcd starts. */
export interface EtcdServerOptions {
  /** How often it tells watches how far it has come, such as `200ms`; default 10 minutes. */
  readonly progress?: string | undefined;
  /** Makes it a member of a cluster; see etcd-cluster.ts. */
  readonly member?: EtcdMember | undefined;
  /** Files, for https. With a CA, clients need a certificate of it. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly clientCa?: string | undefined } | undefined;
}

const READY_MS = 30_000;
const POLL_MS = 25;

/** A running etcd. See the top of this file. */
export class EtcdServer extends ServerProcess {
  readonly #binary: string;
  readonly #port: number;
  readonly #options: EtcdServerOptions;

  constructor(binary: string, port: number, options: EtcdServerOptions) {
    super('etcd');
    this.#binary = binary;
    this.#port = port;
    this.#options = options;
  }

  get port(): number {
    return this.#port;
  }

  /** Such as `http://127.0.0.1:20123`. */
  get url(): string {
    return `${this.#options.tls ? 'https' : 'http'}://127.0.0.1:${this.#port}`;
  }

  /** Of the process that runs. */
  get pid(): number {
    const pid = this.child?.pid;
    if (pid === undefined) throw new Error('it does not run');
    return pid;
  }

  async start(): Promise<void> {
    const { progress = '', tls, member } = this.#options;
    const env = {
      ...process.env,
      ETCD_DIR: join(this.dir, 'data'),
      ETCD_URL: this.url,
      ETCD_PROGRESS: progress,
      ETCD_CERT: tls?.cert ?? '',
      ETCD_KEY: tls?.key ?? '',
      ETCD_CLIENT_CA: tls?.clientCa ?? '',
      ...(member && { ETCD_MEMBERS: member.members, ETCD_NAME: member.name }),
      ...(member && { ETCD_PEER_URL: `http://127.0.0.1:${member.peerPort}` }),
      END_WITH_STDIN: '1',
    };
    const child = this.spawn(this.#binary, ['etcd'], { env, stdin: 'pipe' });
    child.stdin?.on('error', () => {});
    await this.#ready(child);
  }

  /** Crashes it, removes its data, and starts it again: its revisions begin anew. */
  async restartEmpty(): Promise<void> {
    await this.kill();
    rmSync(join(this.dir, 'data'), { recursive: true, force: true });
    await this.start();
  }

  /** Writes a snapshot, as `etcdctl snapshot save` does, and resolves with the path of the file. */
  async snapshot(): Promise<string> {
    const response = await fetch(`${this.url}/v3/maintenance/snapshot`, { method: 'POST', body: '{}' });
    const parts = (await response.text()).trim().split('\n');
    const file = join(this.dir, 'snapshot');
    const blobs = parts.map((part) => (JSON.parse(part) as { result: { blob: string } }).result.blob);
    writeFileSync(file, Buffer.concat(blobs.map((blob) => Buffer.from(blob ?? '', 'base64'))));
    return file;
  }

  /** Crashes it, and starts it with what etcdutl makes of a snapshot. */
  async restart(snapshot: string, flags: readonly string[]): Promise<void> {
    await this.kill();
    const data = join(this.dir, 'data');
    rmSync(data, { recursive: true, force: true });
    const { status, stderr } = spawnSync(builtBinary(ETCDUTL) ?? '', [
      'snapshot',
      'restore',
      snapshot,
      '--data-dir',
      data,
      ...flags,
    ]);
    if (status !== 0) throw new Error(`etcdutl: ${stderr}`);
    await this.start();
  }

  /** Makes it forget what was before its newest revision, which is one more than before, or before the last few. Resolves with that. */
  async compact(kept: number = 0): Promise<string> {
    const { header } = await this.json('/v3/kv/put', { key: btoa('/compacted'), value: '' });
    const revision = `${Math.max(1, Number(header.revision) - kept)}`;
    await this.json('/v3/kv/compaction', { revision, physical: true });
    return revision;
  }

  /** Asks its JSON gateway. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of a server, which tests read without ceremony
  async json(path: string, body: object, headers: Record<string, string> = {}): Promise<any> {
    const response = await fetch(`${this.url}${path}`, { method: 'POST', body: JSON.stringify(body), headers });
    const text = await response.text();
    if (!response.ok) throw new Error(`etcd ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  }

  /** Puts a value of any bytes. */
  async put(key: string, value: string): Promise<void> {
    await this.json('/v3/kv/put', { key: btoa(key), value: btoa(value) });
  }

  /** It listens once it is ready. */
  async #ready(child: ChildProcess): Promise<void> {
    const { connect } = await import('node:net');
    for (const limit = performance.now() + READY_MS; ; await sleep(POLL_MS)) {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`etcd did not start:\n${this.log}`);
      if (performance.now() > limit) throw new Error('etcd is not ready');
      const socket = connect(this.#port, '127.0.0.1');
      const isOpen = await new Promise<boolean>((resolve) => {
        socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
      });
      socket.destroy();
      if (isOpen) return;
    }
  }
}

/** Starts an etcd, and resolves when it is ready. */
export async function startEtcd(options: EtcdServerOptions = {}): Promise<EtcdServer> {
  const binary = builtBinary();
  if (binary === undefined) throw new Error(`there is no etcd: ${HOW}`);
  const [port] = await freePorts(1);
  const server = new EtcdServer(binary, port as number, options);
  try {
    await server.start();
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}
