import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { PodCollection } from './collection.ts';
import { ContenderProcess, type Truth } from './contender-process.ts';
import type { Step } from './measure.ts';
import type { ServerOrder, ServerReply } from './server.ts';

/** A server in a process of its own, and what whoever copies its collection must come to. */
export class Stage {
  readonly #server: ChildProcess;
  readonly #truth: PodCollection;
  #url: string = '';

  private constructor(objects: number) {
    this.#server = fork(fileURLToPath(new URL('./server.js', import.meta.url)), { execArgv: [] });
    this.#truth = new PodCollection(objects);
  }

  static async open(objects: number): Promise<Stage> {
    const stage = new Stage(objects);
    const { port } = await stage.#ask({ do: 'start', objects });
    stage.#url = `http://127.0.0.1:${port}`;
    return stage;
  }

  get url(): string {
    return this.#url;
  }

  /** A contender that starts now must have come to this. */
  get truth(): Truth {
    const { size, sum } = this.#truth;
    return { objects: size, updates: 0, sum };
  }

  /** Starts a contender in a process of its own, and waits until it is synced. */
  async sync(contender: string): Promise<{ readonly client: ContenderProcess; readonly step: Step }> {
    const client = new ContenderProcess(contender, { url: this.#url, objects: this.#truth.size });
    try {
      return { client, step: await client.synced(this.truth) };
    } catch (error) {
      await client.end();
      throw error;
    }
  }

  /** Changes Pods, and waits until this contender, which has been there from the first update on, has handled all of it. */
  async update(client: ContenderProcess, count: number): Promise<Step> {
    this.#truth.update(count);
    const { version, updates } = this.#truth;
    return client.updated(version, { ...this.truth, updates }, () => this.#ask({ do: 'update', count }));
  }

  /** Ends all watches with 410, so that a live copy has to start over. */
  async expire(): Promise<void> {
    await this.#ask({ do: 'expire' });
  }

  end(): void {
    this.#server.kill('SIGKILL');
  }

  #ask(order: ServerOrder): Promise<ServerReply> {
    return new Promise((resolve, reject) => {
      const ended = (): void => reject(new Error('the server has ended'));
      this.#server.once('exit', ended);
      this.#server.once('message', (reply: ServerReply) => {
        this.#server.off('exit', ended);
        resolve(reply);
      });
      this.#server.send(order);
    });
  }
}
