// One of several API servers on an etcd, as a process: the built `watchmux serve`, behind proxies to each member of the etcd.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { CLI } from '../e2e/cli.ts';
import { startTcpProxy, type TcpProxy } from '../tcp-proxy.ts';
import { freePorts } from './ports.ts';
import { pauseProcess } from './server-process.ts';

const READY_MS = 30_000;

export class Replica {
  readonly port: number;
  readonly #proxies: readonly TcpProxy[];
  #child: ChildProcess | undefined;
  /** What it has written on stderr. */
  errors: string = '';

  constructor(port: number, proxies: readonly TcpProxy[]) {
    this.port = port;
    this.#proxies = proxies;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Starts it. It ends at once if it cannot reach the etcd; then it is started again, as its supervisor would do. */
  async start(): Promise<void> {
    for (const limit = performance.now() + READY_MS; ; ) {
      const etcd = this.#proxies.flatMap(({ url }) => ['--etcd', url]);
      const child = spawn(process.execPath, [CLI, 'serve', '--port', String(this.port), ...etcd], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      this.#child = child;
      child.stderr?.setEncoding('utf8').on('data', (text: string) => {
        this.errors += text;
      });
      const said = await Promise.race([
        once(child.stdout as NodeJS.ReadableStream, 'data'),
        once(child, 'exit').then(() => undefined),
      ]);
      if (said !== undefined) return;
      if (performance.now() > limit) throw new Error(`a replica did not start:\n${this.errors.slice(-2_000)}`);
    }
  }

  /** Resolves with the exit code, or the signal, once it has gone. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | string | null> {
    const child = this.#child;
    if (!child) return null;
    this.#child = undefined;
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit');
      child.kill(signal);
      await gone;
    }
    return child.exitCode ?? child.signalCode;
  }

  pause(): void {
    pauseProcess(this.#child);
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  /** Cuts it off from the etcd, or no longer. Silently: nothing passes, and nothing says so. */
  partition(isCut: boolean, silently: boolean = false): void {
    for (const proxy of this.#proxies) {
      proxy.refuse(isCut);
      if (isCut && silently) proxy.freeze();
      else proxy.cutAll();
    }
  }

  async isReady(): Promise<boolean> {
    try {
      return (await fetch(`${this.url}/readyz`, { signal: AbortSignal.timeout(2_000) })).status === 200;
    } catch {
      return false;
    }
  }

  /** What can be said of it, for messages. */
  async describe(): Promise<string> {
    const ready = await this.isReady();
    const metrics = await fetch(`${this.url}/metrics`, { signal: AbortSignal.timeout(2_000) }).then(
      (response) => response.text(),
      (error: unknown) => `${error}`,
    );
    const lines = metrics.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return `${this.url} ready ${ready}, ${this.#child?.exitCode} ${this.#child?.signalCode}\n${lines.join('\n')}\n${this.errors.slice(-1_500)}`;
  }

  async stop(): Promise<void> {
    await this.end('SIGKILL');
    await Promise.all(this.#proxies.map((proxy) => proxy.close()));
  }
}

/** Starts so many replicas on an etcd of these ports, each behind proxies of its own. */
export async function startReplicas(count: number, etcdPorts: readonly number[]): Promise<Replica[]> {
  const ports = await freePorts(count);
  const replicas = await Promise.all(
    ports.map(async (port) => new Replica(port, await Promise.all(etcdPorts.map((each) => startTcpProxy(each))))),
  );
  await Promise.all(replicas.map((replica) => replica.start()));
  return replicas;
}
