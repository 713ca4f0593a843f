import { Fold, foldKey } from './fold.ts';
import { Policy, type PolicyQueue } from './policy.ts';

/**
 * `coalesce`: the queue is a {@link Fold} with one entry per key, and `capacity` limits the keys.
 *
 *     kept (promised to reads that wait) -> fold, or shared -> links of the chain, while judged -> the log from `position` on
 *
 * A watcher whose unseen changes touch more keys than its capacity is cut. A state with holes would be useless, so its other
 * changes are not delivered either: it gets one ERROR event (410) with the number of all its unseen events, and has to start
 * again.
 */
export class Coalesce extends Policy {
  override readonly folds: boolean = true;

  override offer<E>(queue: PolicyQueue<E>, event: E): void {
    if (queue.extra.cut) {
      queue.lose(1);
    } else if (queue.extra.kept.length < queue.claims) {
      queue.keep(event);
    } else {
      const key = foldKey(event, queue.view.chain.keyOf);
      if (queue.over) {
        queue.lose(1);
        return;
      }
      const fold = foldOf(queue);
      fold.add(event, key, queue.own.place);
      if (fold.size > queue.options.capacity) cut(queue);
    }
  }

  /**
   * Shares folds: otherwise ten thousand watchers that fall behind together would each fold the same stretch, during one publish.
   */
  override settleLaggard<E>(queue: PolicyQueue<E>): void {
    const { position, view } = queue;
    const { chain, log } = view;
    const { head } = log;
    const { unseen } = chain;
    const alone = queue.isIdle && !queue.extra.cut;
    if (alone && unseen?.from === position && unseen.to === head && chain.takes(head)) {
      queue.advance(head - position);
      queue.own.unseen = unseen.fold;
    }
    const { count = 0, added = 0 } = queue.extra.fold ?? {};
    queue.settle();
    const { fold } = queue.extra;
    // Not if there were unseen changes before, or if user code has changed something meanwhile.
    if (!alone || !fold || count > 0 || fold.added - added !== head - position) return;
    chain.unseen = { from: position, to: head, fold: fold.since(added) };
  }

  override mayWithdraw<E>(queue: PolicyQueue<E>): boolean {
    return queue.extra.cut || queue.view.chain.takes(queue.position);
  }

  override withdraw<E>(queue: PolicyQueue<E>): void {
    if (!queue.extra.cut) queue.own.link = queue.view.chain.join(queue.position, queue.options.capacity);
  }

  override catchUp<E>(queue: PolicyQueue<E>): { readonly error?: unknown } | undefined {
    const { link, unseen } = queue.extra;
    if (!link) return super.catchUp(queue);
    const { chain } = queue.view;
    const { capacity } = queue.options;
    const fold = foldOf(queue);
    if (unseen) fold.merge(unseen);
    queue.own.unseen = undefined;
    let failure: { readonly error?: unknown } | undefined;
    for (const later of chain.from(link)) {
      if (queue.extra.cut) {
        queue.lose(later.count);
        continue;
      }
      fold.merge(later.fold);
      if (fold.size <= capacity) {
        if (!later.spoiled) continue;
        if ('error' in later.spoiled) {
          failure = later.spoiled;
          queue.resumeAt(later.spoiled.place as number);
          break;
        }
      }
      queue.lose(later.count - later.fold.added);
      cut(queue);
    }
    queue.position = chain.position;
    return failure;
  }

  override caughtUp<E>(queue: PolicyQueue<E>): void {
    const { link } = queue.extra;
    if (!link) return;
    queue.view.chain.leave(link, queue.options.capacity);
    queue.own.link = undefined;
  }
}

function foldOf<E>(queue: PolicyQueue<E>): Fold<E> {
  const { own } = queue;
  own.fold ??= new Fold(queue.view.chain.forgets);
  return own.fold;
}

function cut<E>(queue: PolicyQueue<E>): void {
  const fold = foldOf(queue);
  queue.own.cut = true;
  queue.resumeAt(fold.place ?? queue.own.place);
  queue.lose(fold.clear());
}
