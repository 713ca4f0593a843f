// A child process that is asked over IPC, and the other half of it.
import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';

/** The processes that run now. */
const running: Set<ChildProcess> = new Set();

/** Ends every process that was started here and still runs. */
export function endAll(): void {
  for (const child of running) child.kill('SIGKILL');
}

interface Pending {
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

/** A process that answers each question with what its handler resolves with. */
export class Peer {
  /** The exit code, or the signal that ended it. */
  readonly exit: Promise<number | NodeJS.Signals>;
  private readonly child: ChildProcess;
  private readonly pending: Map<number, Pending> = new Map();
  private asked: number = 0;

  constructor(script: string) {
    // Samples are arrays of numbers: JSON would make text of them.
    this.child = fork(script, [], { execArgv: ['--expose-gc'], serialization: 'advanced' });
    running.add(this.child);
    this.child.on('message', (said: { id: number; answer?: unknown; error?: string }) => {
      const { resolve, reject } = this.pending.get(said.id) ?? {};
      this.pending.delete(said.id);
      if (said.error === undefined) resolve?.(said.answer);
      else reject?.(new Error(said.error));
    });
    this.exit = new Promise((resolve) => {
      this.child.once('exit', (code, signal) => {
        running.delete(this.child);
        for (const { reject } of this.pending.values()) reject(new Error(`its process has ended: ${signal ?? `code ${code}`}`));
        resolve(signal ?? (code as number));
      });
    });
  }

  ask<T>(what: string, more: object = {}): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const id = ++this.asked;
      this.pending.set(id, { resolve: resolve as Pending['resolve'], reject });
      this.child.send({ ...more, what, id }, (error) => {
        if (error !== null && this.pending.delete(id)) reject(error);
      });
    });
  }

  /** Resolves with how it went: the exit code, or the signal. */
  kill(signal: NodeJS.Signals): Promise<number | NodeJS.Signals> {
    this.child.kill(signal);
    return this.exit;
  }
}

/** What a child can be asked. */
export type Answers = Readonly<Record<string, (question: never) => unknown>>;

/** The other half. Ends the process when whoever asks has gone; the function that comes back only stops listening. */
export function answer(answers: Answers): () => void {
  const onMessage = ({ id, what, ...question }: { id: number; what: string }): void => {
    Promise.resolve()
      .then(() => answers[what]?.(question as never))
      .then(
        (answer) => process.send?.({ id, answer }),
        (error: Error) => process.send?.({ id, error: String(error.stack) }),
      );
  };
  const onDisconnect = (): void => process.exit(3);
  process.on('message', onMessage).on('disconnect', onDisconnect);
  return () => {
    process.off('message', onMessage).off('disconnect', onDisconnect);
    if (process.connected) process.disconnect();
  };
}
