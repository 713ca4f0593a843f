// `watchmux check`: whether a file of `serve --data`, or a copy of one, is whole, and what is in it. It changes nothing, and
// the server may be running.
import { type FileHandle, open, stat } from 'node:fs/promises';
import { type LoadTarget, type Scanned, scan } from '../storage/journal/load.ts';
import type { JournalRecord } from '../storage/journal/records.ts';
import { isWatchError } from '../watch/errors.ts';
import type { CheckCommand } from './args.ts';
import { type Output, plural } from './output.ts';
import { quote, UsageError } from './usage.ts';

/** Says what a file is. Returns the exit code. */
export async function check({ file }: CheckCommand, output: Output): Promise<number> {
  const handle = await opened(file);
  const counts = new Counts();
  try {
    const scanned = await scan(handle, { file, now: Date.now() }, counts);
    await output.write(`${describe(file, counts, scanned)}\n`);
    return 0;
  } catch (error) {
    if (!isWatchError(error, 'INVALID_FRAME'))
      throw new UsageError(`cannot read ${quote(file)}: ${(error as Error).message}`, 'check');
    await output.write(`damaged: ${error.message}\n`);
    return 1;
  } finally {
    await handle.close();
  }
}

async function opened(file: string): Promise<FileHandle> {
  try {
    // Checked before opening, because opening a pipe without a writer would block forever.
    if ((await stat(file)).isFile()) return await open(file, 'r');
  } catch (error) {
    throw new UsageError(`cannot read ${quote(file)}: ${(error as Error).message}`, 'check');
  }
  throw new UsageError(`${quote(file)} is not a file`, 'check');
}

function describe(file: string, { objects, changes }: Counts, { revision, torn, size }: Scanned): string {
  const sum = `whole: ${file} has ${plural(objects.size, 'object')} at version ${revision}, and ${plural(changes, 'change')} before that, in ${size} bytes`;
  if (!torn) return sum;
  return `${sum}\nIts end, ${torn.bytes} bytes, is a write that was cut short before it was answered. It is removed when the file is opened.`;
}

/** Counts what is in a file, and checks each object. */
class Counts implements LoadTarget {
  readonly objects: Set<string> = new Set();
  changes: number = 0;

  title(): void {}

  state(record: JournalRecord): void {
    examine(record);
    this.objects.add(record.key);
  }

  write(record: JournalRecord): void {
    if (record.key === '') return;
    this.changes++;
    if (record.json === undefined) this.objects.delete(record.key);
    else {
      examine(record);
      this.objects.add(record.key);
    }
  }
}

const decoder = new TextDecoder('utf-8', { fatal: true });

function examine({ key, json, revision }: JournalRecord): void {
  const object: unknown = JSON.parse(decoder.decode(json));
  const version = (object as { metadata?: { resourceVersion?: unknown } } | null)?.metadata?.resourceVersion;
  if (version !== `${revision}`)
    throw new Error(`the object under ${quote(key)} has version ${String(version)} instead of ${revision}`);
}
