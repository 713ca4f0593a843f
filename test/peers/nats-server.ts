// A real nats-server with JetStream in a process of its own.
//
//   const nats = await startNats();
//   await nats.kill();                   // SIGKILL, as a crash
//   await nats.start();                  // the same data and port
//   nats.pause(); nats.resume();         // SIGSTOP and SIGCONT
//   await nats.stop();                   // nothing is left of it
//
// It listens on 127.0.0.1 only, and ends when this process does.
import { once } from 'node:events';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from './ports.ts';
import { ServerProcess } from './server-process.ts';

/** Where Debian puts it. */
export const NATS_SERVER = '/usr/sbin/nats-server';
const READY_MS = 30_000;
const POLL_MS = 20;

/** A running nats-server. See the top of this file. */
export class NatsServer extends ServerProcess {
  readonly port: number;
  readonly #end: () => void = () => void this.child?.kill('SIGKILL');

  readonly #config: string;

  /** `config`: what its configuration file says. */
  constructor(port: number, config: string = '') {
    super('nats');
    this.port = port;
    this.#config = config;
    process.on('exit', this.#end);
  }

  /** Such as `127.0.0.1:20123`. */
  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    writeFileSync(join(this.dir, 'config'), this.#config);
    const args = ['-c', join(this.dir, 'config'), '-js', '-sd', join(this.dir, 'data'), '-a', '127.0.0.1', '-p', `${this.port}`];
    const child = this.spawn(NATS_SERVER, args, { stdin: 'ignore' });
    const until = performance.now() + READY_MS;
    while (!(await greets(this.port))) {
      if (child.exitCode !== null || performance.now() > until) throw new Error(`nats-server does not answer: ${this.log}`);
      await sleep(POLL_MS);
    }
  }

  /** Crashes it, and remembers its data. */
  async save(): Promise<void> {
    await this.kill();
    cpSync(join(this.dir, 'data'), join(this.dir, 'saved'), { recursive: true });
    await this.start();
  }

  /** Crashes it, and starts it with the data that were saved: what came later is lost, as with a disk that had not written it. */
  async loseSinceSaved(): Promise<void> {
    await this.kill();
    rmSync(join(this.dir, 'data'), { recursive: true, force: true });
    cpSync(join(this.dir, 'saved'), join(this.dir, 'data'), { recursive: true });
    await this.start();
  }

  override async stop(): Promise<void> {
    process.off('exit', this.#end);
    await super.stop();
  }
}

/** Starts a nats-server at a port that nobody uses. */
export async function startNats(config?: string): Promise<NatsServer> {
  const [port] = await freePorts(1);
  const server = new NatsServer(port as number, config);
  await server.start();
  return server;
}

/** Whether it sends the line with which it begins every connection. */
async function greets(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    const [hello] = (await once(socket, 'data', { signal: AbortSignal.timeout(1_000) })) as [Buffer];
    return hello.toString().startsWith('INFO');
  } catch {
    return false;
  } finally {
    socket.on('error', () => {});
    socket.destroy();
  }
}
