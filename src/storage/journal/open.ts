import type { KubernetesObject } from '../../cache/object.ts';
import { callable, invalid, wholeNumber } from '../../watch/errors.ts';
import { MemoryStorage } from '../memory/memory-storage.ts';
import { type MemoryStorageOptions, settingsOf } from '../memory/options.ts';
import { FileJournal } from './file-journal.ts';
import type { LoadProgress, TornTail } from './load.ts';

/** Options of {@link openMemoryStorage}. */
export interface OpenMemoryStorageOptions<T extends KubernetesObject = KubernetesObject>
  extends Omit<MemoryStorageOptions<T>, 'journal'> {
  /**
   * The path of the file. It is created if it does not exist; its directory must exist. Only one process may have it open;
   * another one is refused.
   */
  readonly file: string;
  /**
   * The file is rewritten with the current state when it is larger than this, and more than twice as large as when it was opened
   * or rewritten. Default 16 MiB.
   */
  readonly minCompactBytes?: number | undefined;
  /** Called if the last write of the previous process was incomplete: it is lost, and was never answered. */
  readonly onTornTail?: ((tail: TornTail) => void) | undefined;
  /** Called while the file is read, about every 32 MiB. Default: nobody is told. */
  readonly onProgress?: ((progress: LoadProgress) => void) | undefined;
  /** The time of day in ms, by which times to live continue across a restart. Default `Date.now`. */
  readonly now?: (() => number) | undefined;
}

/**
 * Opens a {@link MemoryStorage} that keeps its writes in a file. A write is answered, and visible, when it is on the disk;
 * concurrent writes are written together. The process may die at any moment: every answered write is there when the file is
 * opened again. Versions from before can be resumed from, and those that follow are far greater: see `startRevision`.
 *
 * @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option, and if another process has the file open; INVALID_FRAME
 *   if the file is damaged. Errors of the file system are passed on.
 */
export async function openMemoryStorage<T extends KubernetesObject = KubernetesObject>(
  options: OpenMemoryStorageOptions<T>,
): Promise<MemoryStorage<T>> {
  const { file, minCompactBytes = 2 ** 24, onTornTail, onProgress, now = Date.now, ...rest } = options ?? {};
  if ('journal' in rest) throw invalid('journal', rest.journal, 'none: it is made from the file');
  if (typeof file !== 'string' || file === '') throw invalid('file', file, 'a path');
  wholeNumber('minCompactBytes', minCompactBytes);
  callable('onTornTail', onTornTail);
  callable('onProgress', onProgress);
  callable('now', now);
  const { history } = settingsOf(rest); // before a file is made
  const journal = await FileJournal.open({ file, minCompactBytes, onTornTail, onProgress, history, now });
  try {
    return new MemoryStorage<T>({ ...rest, journal });
  } catch (error) {
    await journal.close();
    throw error;
  }
}
