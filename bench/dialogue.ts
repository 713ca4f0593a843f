/** A process of its own that obeys orders one by one: a server, or its clients. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

type Answer = { readonly error: string } | { readonly value: unknown };

/**
 * What a process can be told to do, by name: what it is given, and what it answers.
 *
 *     parent                                     child: bench/.build/.../NAME.js
 *     new Dialogue<Deeds>('NAME')  ----fork---->  obey<Deeds>({ add: ({ a, b }) => a + b })
 *     await it.ask('add', { a: 1, b: 2 })  ---->
 *                                          <----  3
 */
type Deeds = Readonly<Record<string, (order: never) => unknown>>;

type Given<D extends Deeds, Name extends keyof D> = Parameters<D[Name]>[0];
type Answered<D extends Deeds, Name extends keyof D> = Awaited<ReturnType<D[Name]>>;

/** The parent's end. */
export class Dialogue<D extends Deeds> {
  readonly #child: ChildProcess;

  /** Starts the program of this name, which `start.mjs` has bundled. */
  constructor(program: string) {
    this.#child = fork(fileURLToPath(new URL(`./${program}.js`, import.meta.url)), { execArgv: ['--expose-gc'] });
  }

  async ask<Name extends keyof D & string>(name: Name, order: Given<D, Name>): Promise<Answered<D, Name>> {
    const child = this.#child;
    const answer = await new Promise<Answer>((resolve, reject) => {
      const ended = (): void => reject(new Error(`the process that was asked for "${name}" has ended`));
      if (!child.connected) return ended();
      child.once('exit', ended);
      child.once('message', (said: Answer) => {
        child.off('exit', ended);
        resolve(said);
      });
      child.send({ name, order });
    });
    if ('error' in answer) throw new Error(answer.error);
    return answer.value as Answered<D, Name>;
  }

  /** Ends it as a crash does. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }
}

/** The child's end. It exits with its parent, so that an aborted run leaves nothing behind. */
export function obey<D extends Deeds>(deeds: D): void {
  process.on('disconnect', () => process.exit());
  process.on('message', async ({ name, order }: { readonly name: string; readonly order: never }) => {
    let answer: Answer;
    try {
      answer = { value: await deeds[name]?.(order) };
    } catch (error) {
      answer = { error: String((error as Error | undefined)?.stack ?? error) };
    }
    process.send?.(answer);
  });
}

/** Processor time of this process since the last call, in ms. */
export function processorMs(): () => number {
  let before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    before = process.cpuUsage();
    return (user + system) / 1_000;
  };
}
