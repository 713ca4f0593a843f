// A real kube-apiserver with its etcd, in one process, for one test file. See build.mjs for how it is built.
//
//   const server = await startApiServer({ flags: ['--watch-cache-sizes=configmaps#0'] });
//   await server.create('/api/v1/namespaces/default/configmaps', { metadata: { name: 'a' } });
//   await server.kill();                 // SIGKILL, as a crash
//   await server.start();                // the same data, port, token and certificate
//   await server.stop();                 // nothing is left of it
//
// It listens on 127.0.0.1 only. The server ends when the test process does, however that dies: it reads its standard input, and the
// kernel closes that pipe.
import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { builtBinary, HOW } from './binary.mjs';
import { freePorts } from './ports.ts';
import { createSecureFetch, type SecureFetch } from './secure-fetch.ts';

/** How a server starts. */
export interface ApiServerOptions {
  /** More arguments, such as {@link WITHOUT_WATCH_LIST}. One that is given here takes the place of its default. */
  readonly flags?: readonly string[];
}

/** Reads of this resource, such as `configmaps`, go to etcd: a compaction is felt at once. Others keep their watch cache. */
export const withoutWatchCache = (resource: string): string => `--watch-cache-sizes=${resource}#0`;
/** No resource has a watch cache. */
export const WITHOUT_WATCH_CACHE = '--watch-cache=false';
/** As servers before 1.32: `sendInitialEvents` is refused with 422. */
export const WITHOUT_WATCH_LIST = '--feature-gates=WatchList=false';
/** The defaults of an older release, such as `1.34`. */
export const emulating = (version: string): string => `--emulated-version=${version}`;

const READY_MS = 60_000;
const POLL_MS = 50;
const STOP_MS = 10_000;
const LOG_LINES = 30;

/** An object as the server answers it. */
// biome-ignore lint/suspicious/noExplicitAny: answers of a server, which tests read without ceremony
export type Answer = any;

/** A Status with which the server refused a request of a test. */
export class RefusedError extends Error {
  readonly code: number;
  constructor(what: string, code: number, body: string) {
    super(`${what}: ${code} ${body.slice(0, 500)}`);
    this.code = code;
  }
}

/** A running server. See the top of this file. */
export class ApiServer {
  readonly token: string = randomBytes(16).toString('hex');
  readonly #dir: string = mkdtempSync(join(tmpdir(), 'watchmux-apiserver-'));
  readonly #binary: string;
  readonly #ports: readonly [number, number];
  #flags: readonly string[];
  #child: ChildProcess | undefined;
  #fetch: (SecureFetch & { close(): void }) | undefined;

  constructor(binary: string, ports: readonly [number, number], flags: readonly string[]) {
    this.#binary = binary;
    this.#ports = ports;
    this.#flags = flags;
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    writeFileSync(join(this.#dir, 'sa.key'), privateKey.export({ type: 'pkcs1', format: 'pem' }));
    writeFileSync(join(this.#dir, 'tokens.csv'), `${this.token},admin,admin,system:masters\n`);
  }

  /** Such as `https://127.0.0.1:20123`. */
  get url(): string {
    return `https://127.0.0.1:${this.#ports[0]}`;
  }

  /** Where etcd's JSON gateway is. */
  get etcdUrl(): string {
    return `http://127.0.0.1:${this.#ports[1]}`;
  }

  /** The file of the certificate that signs the server's, for NODE_EXTRA_CA_CERTS. */
  get caFile(): string {
    return join(this.#dir, 'certs', 'apiserver.crt');
  }

  /** That certificate, in PEM. */
  get ca(): string {
    return readFileSync(this.caFile, 'utf8');
  }

  /** A `fetch` that trusts the server's certificate and sends the token. */
  get fetch(): SecureFetch {
    this.#fetch ??= createSecureFetch(this.ca, this.token);
    return this.#fetch;
  }

  /** The end of what the server has written. */
  get log(): string {
    return readFileSync(join(this.#dir, 'log'), 'utf8').split('\n').slice(-LOG_LINES).join('\n');
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Starts the process, and resolves when it is ready. Flags, if given, replace those of before. */
  async start(flags: readonly string[] = this.#flags): Promise<void> {
    if (this.#child) throw new Error('the server runs already');
    this.#flags = flags;
    const log = openSync(join(this.#dir, 'log'), 'a');
    const env = { ...process.env, ETCD_DIR: join(this.#dir, 'etcd'), ETCD_URL: this.etcdUrl, END_WITH_STDIN: '1' };
    const nameOf = (flag: string): string | undefined => flag.split('=')[0];
    const given = new Set(flags.map(nameOf));
    const args = [...this.#arguments().filter((flag) => !given.has(nameOf(flag))), ...flags];
    const child = spawn(this.#binary, args, { env, stdio: ['pipe', log, log] });
    this.#child = child;
    child.stdin?.on('error', () => {});
    try {
      await this.#ready(child);
    } catch (error) {
      const log = this.log;
      await this.kill();
      throw new Error(`the kube-apiserver did not start: ${(error as Error).message}; the end of its log:\n${log}`);
    }
  }

  #arguments(): string[] {
    const at = (name: string): string => join(this.#dir, name);
    return [
      `--etcd-servers=${this.etcdUrl}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${this.#ports[0]}`,
      `--cert-dir=${at('certs')}`,
      '--endpoint-reconciler-type=none',
      '--service-cluster-ip-range=10.0.0.0/24',
      `--token-auth-file=${at('tokens.csv')}`,
      '--authorization-mode=AlwaysAllow',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${at('sa.key')}`,
      `--service-account-signing-key-file=${at('sa.key')}`,
      '--disable-admission-plugins=ServiceAccount',
      '--enable-priority-and-fairness=false',
      '--profiling=false',
      '--etcd-compaction-interval=0',
      '--shutdown-watch-termination-grace-period=1s',
    ];
  }

  async #ready(child: ChildProcess): Promise<void> {
    const limit = performance.now() + READY_MS;
    for (let last = 'no answer'; ; await sleep(POLL_MS)) {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`it ended with ${child.exitCode ?? child.signalCode}`);
      if (performance.now() > limit) throw new Error(`not ready after ${READY_MS} ms: ${last}`);
      try {
        const response = await this.fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(5_000) });
        last = await response.text();
        if (response.status === 200) return;
      } catch (error) {
        last = String(error); // it has no certificate yet, or has not written all of it, or does not listen
        this.#disconnect();
      }
    }
  }

  /** Ends the process, by default as a crash does, and resolves when it has gone. Its data stays. */
  async kill(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (!child) return;
    this.#child = undefined;
    const gone = child.exitCode !== null || child.signalCode !== null ? undefined : once(child, 'exit');
    child.kill(signal);
    const patience = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await gone;
    clearTimeout(patience);
    this.#disconnect();
  }

  #disconnect(): void {
    this.#fetch?.close();
    this.#fetch = undefined;
  }

  /** Kills the server and starts it again: its watch cache is empty, so every version before now is too old for it. */
  async restart(flags?: readonly string[]): Promise<void> {
    await this.kill();
    await this.start(flags);
  }

  /** Ends it, and copies its data, or with a copy, puts that in their place; then starts it again. Resolves with the copy. */
  async restartWithData(copy?: string): Promise<string> {
    await this.kill();
    const data = join(this.#dir, 'etcd');
    const kept = copy ?? join(this.#dir, 'copy');
    rmSync(copy === undefined ? kept : data, { recursive: true, force: true });
    cpSync(copy ?? data, copy === undefined ? kept : data, { recursive: true });
    await this.start();
    return kept;
  }

  /** Ends it, and removes everything. */
  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  /** Sends a request, and resolves with the answer. A refusal rejects with a {@link RefusedError}. */
  async request(method: string, path: string, body?: unknown, type: string = 'application/json'): Promise<Answer> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    // Without a length, Node sends the body of a DELETE as if it were the next request.
    const headers = { 'content-type': type, 'content-length': `${Buffer.byteLength(text ?? '')}` };
    const response = await this.fetch(`${this.url}${path}`, text === undefined ? { method } : { method, body: text, headers });
    const answer = await response.text();
    if (!response.ok) throw new RefusedError(`${method} ${path}`, response.status, answer);
    return JSON.parse(answer);
  }

  get(path: string): Promise<Answer> {
    return this.request('GET', path);
  }

  /** Creates an object in a collection, such as `/api/v1/namespaces/default/configmaps`. */
  create(collection: string, object: unknown): Promise<Answer> {
    return this.request('POST', collection, object);
  }

  /** Merges a change into an object. */
  patch(path: string, change: unknown): Promise<Answer> {
    return this.request('PATCH', path, change, 'application/merge-patch+json');
  }

  delete(path: string): Promise<Answer> {
    return this.request('DELETE', path);
  }

  /** Creates an object of that name, or changes the one that there is. */
  async put(collection: string, name: string, change: object = { data: { n: randomBytes(4).toString('hex') } }): Promise<Answer> {
    try {
      return await this.create(collection, { metadata: { name }, ...change });
    } catch (error) {
      if (!(error instanceof RefusedError) || error.code !== 409) throw error;
      return this.patch(`${collection}/${name}`, change);
    }
  }

  /** Creates a namespace, and resolves with the path of a collection in it. */
  async collection(namespace: string, plural: string): Promise<string> {
    await this.create('/api/v1/namespaces', { metadata: { name: namespace } });
    return `/api/v1/namespaces/${namespace}/${plural}`;
  }

  /** The newest revision of etcd: every write of the server so far has one up to it. */
  async revision(): Promise<string> {
    const { header } = await this.#etcd('/v3/maintenance/status', {});
    return header.revision;
  }

  /**
   * Makes etcd forget what was before that revision; by default, everything that has happened so far. Then a watch without a
   * watch cache gets a 410, from every version before the last write.
   */
  async compact(revision?: string): Promise<string> {
    // A watch from just before the compacted revision misses nothing and is still served, so there has to be one more.
    const at = revision ?? (await this.#etcd('/v3/kv/put', { key: btoa('watchmux'), value: '' })).header.revision;
    await this.#etcd('/v3/kv/compaction', { revision: at, physical: true });
    return at;
  }

  async #etcd(path: string, body: object): Promise<Answer> {
    const response = await fetch(`${this.etcdUrl}${path}`, { method: 'POST', body: JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new RefusedError(`etcd ${path}`, response.status, text);
    return JSON.parse(text);
  }
}

/** Starts a server, and resolves when it is ready. */
export async function startApiServer({ flags = [] }: ApiServerOptions = {}): Promise<ApiServer> {
  const binary = builtBinary();
  if (binary === undefined) throw new Error(`there is no kube-apiserver: ${HOW}`);
  const [secure, etcd] = await freePorts(2);
  const server = new ApiServer(binary, [secure as number, etcd as number], flags);
  try {
    await server.start();
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}
