import { keyOf } from '../../cache/object.ts';
import { byId } from '../elements.ts';
import type { DetailRef } from './detail/index.ts';
import { type Content, OpenObject } from './detail/open-object.ts';
import type { RowFollower } from './follower.ts';
import type { ObjectTable } from './objects.ts';

/** The object that is open, below the table. */
export class ShownObject {
  private readonly means: {
    readonly follower: RowFollower;
    readonly table: ObjectTable;
    readonly read: (ref: DetailRef, signal: AbortSignal) => Promise<Content>;
  };
  private open: OpenObject | undefined = undefined;

  constructor(means: ShownObject['means']) {
    this.means = means;
  }

  /** Shows an object, or hides it if it is shown. */
  toggle(ref: DetailRef): void {
    const { follower, table, read } = this.means;
    const row = follower.get(keyOf({ metadata: { namespace: ref.namespace, name: ref.name } }));
    const wasOpen = row !== undefined && this.open?.key === keyOf(row);
    this.close();
    if (row === undefined || wasOpen) return;
    this.open = new OpenObject({ row, columns: 1, read: (signal) => read(ref, signal) });
    byId('detail-rows').append(this.open.element);
    byId('detail').hidden = false;
    table.showOpen(ref);
  }

  /** The object may have changed, or be gone. */
  follow(): void {
    const { open } = this;
    const { follower } = this.means;
    if (open === undefined || !follower.hasSynced) return;
    const row = follower.get(open.key);
    if (row === undefined) open.gone();
    else open.show(row);
  }

  close(): void {
    this.open?.close();
    this.open = undefined;
    byId('detail').hidden = true;
    this.means.table.showOpen(undefined);
  }
}
