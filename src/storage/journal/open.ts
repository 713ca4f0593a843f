import type { KubernetesObject } from '../../cache/object.ts';
import { callable, invalid, wholeNumber } from '../../watch/errors.ts';
import { MemoryStorage } from '../memory/memory-storage.ts';
import type { MemoryStorageOptions } from '../memory/options.ts';
import { FileJournal } from './file-journal.ts';
import type { TornTail } from './load.ts';

/** Options of {@link openMemoryStorage}. */
export interface OpenMemoryStorageOptions<T extends KubernetesObject = KubernetesObject>
  extends Omit<MemoryStorageOptions<T>, 'journal'> {
  /** The path of the file. It is made if it is not there; its directory must be. One process may have it open, and another is refused. */
  readonly file: string;
  /** The file begins anew with what there is when it is larger than this, and than twice what it began with. Default 16 MiB. */
  readonly minCompactBytes?: number | undefined;
  /** Called if the last write of the process before was cut short: it is not there, and was not answered. */
  readonly onTornTail?: ((tail: TornTail) => void) | undefined;
  /** The time of the day in ms, by which times to live go on over a restart. Default `Date.now`. */
  readonly now?: (() => number) | undefined;
}

/**
 * Opens a {@link MemoryStorage} that keeps its writes in a file. A write is answered, and visible, when it is on the disk; many at
 * once share the way there. It survives the death of the process at any moment: what was answered is there, and the revision goes on.
 *
 * @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option, INVALID_FRAME if the file is damaged. What the file system
 *   throws is passed on.
 */
export async function openMemoryStorage<T extends KubernetesObject = KubernetesObject>(
  options: OpenMemoryStorageOptions<T>,
): Promise<MemoryStorage<T>> {
  const { file, minCompactBytes = 2 ** 24, onTornTail, now = Date.now, ...rest } = options ?? {};
  if ('journal' in rest) throw invalid('journal', rest.journal, 'none: it is made from the file');
  if (typeof file !== 'string' || file === '') throw invalid('file', file, 'a path');
  wholeNumber('minCompactBytes', minCompactBytes);
  callable('onTornTail', onTornTail);
  callable('now', now);
  const checked = new MemoryStorage<T>(rest); // before a file is made
  await checked.close();
  const journal = await FileJournal.open({ file, minCompactBytes, onTornTail, now });
  try {
    return new MemoryStorage<T>({ ...rest, journal });
  } catch (error) {
    await journal.close();
    throw error;
  }
}
