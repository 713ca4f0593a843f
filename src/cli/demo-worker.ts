import { appendFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '../watch/clock.ts';

const FRUITS = ['apple', 'pear', 'plum', 'fig', 'quince', 'cherry', 'lemon', 'grape'];

/** Somebody who works with files: adds, changes, renames and removes them, some of them not worth anybody's attention. */
export class DemoWorker {
  private readonly directory: string;
  /** Files that are there because of this worker. It touches no other. */
  private readonly mine: Set<string> = new Set();
  private turn: number = 0;

  constructor(directory: string) {
    this.directory = directory;
  }

  /** Works until the signal, one step every `pauseMs`. A file that somebody else has taken away or made is no trouble. */
  async work(options: { pauseMs: number; signal: AbortSignal }): Promise<void> {
    while (!options.signal.aborted) {
      await this.step(this.turn++).catch(() => {});
      await sleep(options.pauseMs, options).catch(() => {});
    }
  }

  /** Removes what is left of its own files. */
  async tidy(): Promise<void> {
    for (const name of this.mine) await rm(join(this.directory, name), { force: true }).catch(() => {});
    this.mine.clear();
  }

  /** A file lives five turns: added, changed twice, renamed every other time, removed. Its neighbours are a turn behind. */
  private async step(turn: number): Promise<void> {
    const fruit = FRUITS[Math.floor(turn / 5) % FRUITS.length] as string;
    const name = `demo-${fruit}.txt`;
    const other = `demo-${fruit}-2.txt`;
    const done: readonly (() => Promise<void>)[] = [
      () => this.add(name, `one ${fruit}\n`),
      () => this.append(name, `and another ${fruit}\n`),
      () => this.add(`demo-${fruit}.log`, 'nobody asked for this one\n'),
      () => (turn % 2 === 0 ? this.move(name, other) : this.append(name, `${fruit}, and that is enough\n`)),
      () => this.remove(this.mine.has(other) ? other : name),
    ];
    await done[turn % done.length]?.();
    if (turn % 5 === 4) await this.remove(`demo-${fruit}.log`);
  }

  private async add(name: string, text: string): Promise<void> {
    // wx: a file of the same name that was there before is not ours to write to.
    await writeFile(join(this.directory, name), text, { flag: 'wx' });
    this.mine.add(name);
  }

  private async append(name: string, text: string): Promise<void> {
    if (this.mine.has(name)) await appendFile(join(this.directory, name), text, { flag: 'a' });
  }

  private async move(from: string, to: string): Promise<void> {
    if (!this.mine.delete(from)) return;
    await rename(join(this.directory, from), join(this.directory, to));
    this.mine.add(to);
  }

  private async remove(name: string): Promise<void> {
    if (this.mine.delete(name)) await rm(join(this.directory, name));
  }
}
