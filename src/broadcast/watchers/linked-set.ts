/** A member of at most one set at a time. It carries the links itself: two fields instead of a table entry. */
export interface Linked {
  /** The set that holds it, or a placeholder while it moves between sets; undefined once it has left for good. */
  inSet: object | undefined;
  before: Linked | undefined;
  after: Linked | undefined;
}

/** A set in insertion order. If user code runs during a walk, check that the member is still in the set. */
export class LinkedSet<M extends Linked> {
  first: M | undefined;
  #last: M | undefined;

  *[Symbol.iterator](): IterableIterator<M> {
    for (let member = this.first; member; member = member.after as M | undefined) yield member;
  }

  has(member: M): boolean {
    return member.inSet === this;
  }

  /** Adds a member that is in no set. */
  add(member: M): void {
    member.inSet = this;
    member.before = this.#last;
    if (!this.#last) this.first = member;
    else this.#last.after = member;
    this.#last = member;
  }

  /** Removes a member and sets its `inSet` to `to`. Returns whether the member was in this set. */
  delete(member: M, to?: object): boolean {
    if (member.inSet !== this) return false;
    member.inSet = to;
    const { before, after } = member;
    if (!before) this.first = after as M | undefined;
    else before.after = after;
    if (!after) this.#last = before as M | undefined;
    else after.before = before;
    member.before = member.after = undefined;
    return true;
  }
}
