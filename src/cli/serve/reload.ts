/**
 * What a server has read from files, and reads again when they change: tokens, certificates, the password for etcd.
 *
 *     timer, SIGHUP ---> read ---> as before: nothing
 *                             ---> valid: it replaces what was there, and is logged
 *                             ---> broken, or gone: what was there remains in use, and the log says why, once
 *
 * Files are read, not watched: in a Kubernetes secret they are links to links, of which only the first is replaced, and not every
 * file system reports changes. What belongs together is replaced together: a new certificate without its key is broken until the key
 * has come.
 */
import { readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import type { Clock } from '../../watch/clock.ts';
import { UsageError } from '../usage.ts';
import { type Log, messageOf } from './log.ts';

/** How often files are read. */
const EVERY_MS = 5_000;

/** A file, and the option that names it. */
export interface NamedFile {
  readonly option: string;
  readonly file: string;
}

/** Options of {@link FromFiles}. */
export interface FromFilesOptions<T> {
  /** If there are none, the value is always the same. */
  readonly files: readonly NamedFile[];
  /** Makes the value of the content of the files, in their order. Throws {@link UsageError}, which says what is wrong. */
  readonly make: (contents: readonly Buffer[]) => T;
}

/** A value that is made of files. */
export class FromFiles<T> {
  /** Called with each new value, and the one before. */
  onChange: (value: T, before: T) => void = () => {};
  readonly files: readonly NamedFile[];
  private readonly make: (contents: readonly Buffer[]) => T;
  private current: T;
  /** What was read last, whether valid or not. */
  private contents: readonly Buffer[];
  /** Why the last attempt failed. */
  private failure: string | undefined = undefined;

  /** Reads the files. Throws {@link UsageError} if they cannot be read, or are invalid. */
  constructor({ files, make }: FromFilesOptions<T>) {
    this.files = files;
    this.make = make;
    this.contents = files.map(firstContent);
    this.current = make(this.contents);
  }

  get value(): T {
    return this.current;
  }

  /** Reads the files again. Resolves with what is news: that the value has changed, or an error. With `again`, everything is. */
  async refresh(again: boolean): Promise<'changed' | Error | undefined> {
    try {
      const contents = await Promise.all(this.files.map((file, at) => contentOf(file, this.contents[at] as Buffer)));
      const same = contents.every((each, at) => each.equals(this.contents[at] as Buffer));
      if (same && this.failure === undefined && !again) return undefined;
      // Not tried again before it has changed again.
      this.contents = contents;
      const before = this.current;
      this.current = this.make(contents);
      this.failure = undefined;
      this.onChange(this.current, before);
      return 'changed';
    } catch (error) {
      const failure = messageOf(error);
      if (failure === this.failure && !again) return undefined;
      this.failure = failure;
      return error as Error;
    }
  }
}

function firstContent({ option, file }: NamedFile): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UsageError(`--${option}: ${(error as Error).message}`, 'serve');
  }
}

/** A pipe can be read only once, and reading it again might wait for ever. */
async function contentOf({ option, file }: NamedFile, before: Buffer): Promise<Buffer> {
  try {
    return (await stat(file)).isFile() ? await readFile(file) : before;
  } catch (error) {
    throw new UsageError(`--${option}: ${(error as Error).message}`, 'serve');
  }
}

/** A value of any type. */
export type Reloadable = Pick<FromFiles<unknown>, 'files' | 'refresh'>;

/** Options of {@link Reloads}. */
export interface ReloadsOptions {
  /** Those that the command line does not name are undefined. */
  readonly values: readonly (Reloadable | undefined)[];
  readonly log: Pick<Log, 'info' | 'error'>;
  readonly clock: Clock;
}

/** Reads files again from time to time, and on SIGHUP, which does not end the process. */
export class Reloads {
  private readonly options: ReloadsOptions;
  private readonly values: readonly Reloadable[];
  private cancel: () => void = () => {};
  private running: Promise<void> = Promise.resolve();
  private isDue: boolean = false;
  private ended: boolean = false;
  private readonly onHangUp = (): void => this.hangUp();

  constructor(options: ReloadsOptions) {
    this.options = options;
    this.values = options.values.filter((each) => each !== undefined && each.files.length > 0) as Reloadable[];
    process.on('SIGHUP', this.onHangUp);
    if (this.values.length > 0) this.wait();
  }

  /** Stops reading. */
  end(): void {
    this.ended = true;
    this.cancel();
    process.off('SIGHUP', this.onHangUp);
  }

  private wait(): void {
    if (this.ended) return;
    this.cancel = this.options.clock.schedule(EVERY_MS, () => {
      this.running = this.running.then(() => this.look(false)).then(() => this.wait());
    });
  }

  private hangUp(): void {
    if (this.isDue || this.ended) return;
    this.isDue = true;
    this.options.log.info('reload', { reason: 'SIGHUP' });
    this.running = this.running.then(() => {
      this.isDue = false;
      return this.look(true);
    });
  }

  private async look(again: boolean): Promise<void> {
    const { log } = this.options;
    for (const each of this.values) {
      const news = await each.refresh(again);
      if (this.ended) return;
      const files = each.files.map(({ file }) => file).join(',');
      if (news === 'changed') log.info('reloaded', { files });
      else if (news !== undefined) log.error('reload-failed', { files, error: messageOf(news).replace(/^watchmux serve: /, '') });
    }
  }
}
