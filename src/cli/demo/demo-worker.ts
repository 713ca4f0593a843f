import { appendFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '../../watch/clock.ts';

const FRUITS = ['apple', 'pear', 'plum', 'fig', 'quince', 'cherry', 'lemon', 'grape'];

/** Simulates a user who adds, changes, renames and removes files, some of them irrelevant. */
export class DemoWorker {
  private readonly directory: string;
  /** The files this worker created. It touches no others. */
  private readonly mine: Set<string> = new Set();
  private turn: number = 0;

  constructor(directory: string) {
    this.directory = directory;
  }

  /** Performs one step every `pauseMs` until the signal aborts. Ignores files that others have removed or created. */
  async work({ pauseMs, signal }: { pauseMs: number; signal: AbortSignal }): Promise<void> {
    while (!signal.aborted) {
      await this.step(this.turn++).catch(() => {});
      await sleep(pauseMs, { signal }).catch(() => {});
    }
  }

  /** Removes its remaining files. */
  async tidy(): Promise<void> {
    for (const name of this.mine) await rm(join(this.directory, name), { force: true }).catch(() => {});
    this.mine.clear();
  }

  /**
   * Each fruit takes five turns: its file is added and changed, a .log file is added, the file is renamed or changed again (by
   * turns), and both are removed.
   */
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
    // wx: do not overwrite an existing file of this name, which is not ours.
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
