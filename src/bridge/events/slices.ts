import type { WatchEvent } from '../../watch/event.ts';
import type { Form, Slice } from './forms.ts';
import { toSlice } from './forms.ts';

/**
 * The slices made in one round of flushes. Clients in step read the same batch, and are sent the same bytes. Batches and their
 * bytes are forgotten at the end of the round.
 */
export class Slices {
  private readonly made: Map<readonly WatchEvent[], Map<Form, Map<number, Slice>>> = new Map();

  private last:
    | { readonly batch: readonly WatchEvent[]; readonly from: number; readonly form: Form; readonly slice: Slice }
    | undefined;

  /** Returns the slice of a batch that starts at `from`. */
  of(batch: readonly WatchEvent[], from: number, form: Form): Slice {
    const { last } = this;
    if (last !== undefined && last.batch === batch && last.from === from && last.form === form) return last.slice;
    const slice = this.find(batch, from, form);
    this.last = { batch, from, form, slice };
    return slice;
  }

  private find(batch: readonly WatchEvent[], from: number, form: Form): Slice {
    let forms = this.made.get(batch);
    if (forms === undefined) {
      forms = new Map();
      this.made.set(batch, forms);
    }
    let slices = forms.get(form);
    if (slices === undefined) {
      slices = new Map();
      forms.set(form, slices);
    }
    let slice = slices.get(from);
    if (slice === undefined) {
      slice = toSlice(batch, from, form);
      slices.set(from, slice);
    }
    return slice;
  }

  clear(): void {
    this.last = undefined;
    if (this.made.size > 0) this.made.clear();
  }
}
