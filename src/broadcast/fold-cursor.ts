import type { NONE } from '../watch/reader.ts';
import { Fold, foldKey } from './coalesce.ts';
import { Cursor } from './cursor.ts';

/**
 * The cursor of `coalesce`. Its queue is a {@link Fold} with one entry per key, and `capacity` limits the keys.
 *
 *     kept (promised to reads that wait) -> fold, or shared -> links of the chain, while judged -> the log from `position` on
 *
 * A watcher whose unseen changes touch more keys than its capacity is cut. A state with holes would be useless, so its other
 * changes are not delivered either: it gets one ERROR event (410) with the number of all its unseen events, and has to start
 * again.
 */
export class FoldCursor<E> extends Cursor<E> {
  private get fold(): Fold<E> {
    const { own } = this;
    own.fold ??= new Fold();
    return own.fold;
  }

  override get queued(): number {
    return super.queued + (this.aside.fold?.live ?? 0);
  }

  override get dropped(): number {
    return super.dropped + (this.aside.fold?.dropped ?? 0);
  }

  protected override get oneByOne(): boolean {
    return true;
  }

  protected override get abandoned(): boolean {
    return super.abandoned && (this.aside.cut || this.mux.chain.takes(this.position));
  }

  /**
   * Shares folds: otherwise ten thousand watchers that fall behind together would each fold the same stretch, during one publish.
   */
  override lag(): void {
    const { position, mux } = this;
    const { unseen } = mux.chain;
    const { head } = mux.log;
    const alone = super.abandoned && !this.aside.cut;
    if (alone && unseen?.from === position && unseen.to === head && mux.chain.takes(head)) {
      this.advance(head - position);
      this.own.unseen = unseen.fold;
    }
    super.lag();
    const { fold } = this.aside;
    // Not if there were unseen changes before, or if user code has changed something meanwhile.
    if (!alone || fold?.count !== head - position) return;
    const copy = new Fold<E>();
    copy.merge(fold);
    mux.chain.unseen = { from: position, to: head, fold: copy };
  }

  protected override discard(): void {
    super.discard();
    this.own.lost += this.fold.clear();
  }

  protected override offer(event: E): void {
    if (this.aside.cut) {
      this.lose(1);
    } else if (this.aside.kept.length < this.claims) {
      this.keep(event);
    } else {
      const key = foldKey(event, this.mux.chain.keyOf);
      if (this.over) {
        this.lose(1);
        return;
      }
      this.fold.add(event, key);
      if (this.fold.size > this.options.capacity) this.cutOff();
    }
  }

  protected override lastWord(): E | typeof NONE {
    return this.aside.fold?.take() ?? super.lastWord();
  }

  protected override withdraw(): void {
    if (!this.aside.cut) this.own.link = this.mux.chain.join(this.position, this.options.capacity);
    super.withdraw();
  }

  protected override catchUp(): { readonly error?: unknown } | undefined {
    const { link, unseen } = this.aside;
    if (!link) return super.catchUp();
    if (unseen) this.fold.merge(unseen);
    this.own.unseen = undefined;
    let failure: { readonly error?: unknown } | undefined;
    for (const { fold, count, spoiled } of this.mux.chain.from(link)) {
      if (this.aside.cut) {
        this.lose(count);
        continue;
      }
      this.fold.merge(fold);
      if (this.fold.size <= this.options.capacity) {
        if (!spoiled) continue;
        if ('error' in spoiled) {
          failure = spoiled;
          break;
        }
      }
      this.lose(count - fold.count);
      this.cutOff();
    }
    this.position = this.mux.chain.position;
    return failure;
  }

  protected override caughtUp(): void {
    const { link } = this.aside;
    if (!link) return;
    this.mux.chain.leave(link, this.options.capacity);
    this.own.link = undefined;
  }

  private cutOff(): void {
    this.own.cut = true;
    this.lose(this.fold.clear());
  }
}
