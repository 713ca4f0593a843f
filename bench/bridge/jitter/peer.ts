// A child process that answers requests over IPC, and the code inside it.
import type { ChildProcess } from 'node:child_process';
import { fork } from 'node:child_process';

/** The running processes. */
const running: Set<ChildProcess> = new Set();

/** Ends every process started here. */
export function endAll(): void {
  for (const child of running) child.kill('SIGKILL');
}

interface Pending {
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

/** A process that answers each request with the result of its handler. */
export class Peer {
  /** The exit code, or the signal that ended it. */
  readonly exit: Promise<number | NodeJS.Signals>;
  private readonly child: ChildProcess;
  private readonly pending: Map<number, Pending> = new Map();
  private asked: number = 0;

  constructor(script: string) {
    // Samples are arrays of numbers, which JSON would convert to text.
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

  /** Sends a signal that does not end it. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.child.kill(signal);
  }

  /** Resolves with the exit code, or the signal. */
  kill(signal: NodeJS.Signals): Promise<number | NodeJS.Signals> {
    this.child.kill(signal);
    return this.exit;
  }
}

/** The handlers of a child, by request. */
export type Answers = Readonly<Record<string, (question: never) => unknown>>;

/** The code inside the child. Exits when the parent has gone. Returns a function that only stops listening. */
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
