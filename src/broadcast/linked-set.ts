/** What can be in one set at a time: it carries the links itself, two fields instead of an entry in a table. */
export interface Linked {
  /** The set that holds it, or a set of nobody's while it moves from one to another; undefined once it has left for good. */
  inSet: object | undefined;
  before: Linked | undefined;
  after: Linked | undefined;
}

/** A set in the order of adding. Whoever walks along it while user code runs must look whether the member is still in it. */
export class LinkedSet<M extends Linked> {
  first: M | undefined;
  private last: M | undefined;

  has(member: M): boolean {
    return member.inSet === this;
  }

  /** Adds a member that is in no set. */
  add(member: M): void {
    member.inSet = this;
    member.before = this.last;
    if (!this.last) this.first = member;
    else this.last.after = member;
    this.last = member;
  }

  /** Takes a member out; `to` is where it says to be from now on. Answers whether it was here. */
  delete(member: M, to?: object): boolean {
    if (member.inSet !== this) return false;
    member.inSet = to;
    const { before, after } = member;
    if (!before) this.first = after as M | undefined;
    else before.after = after;
    if (!after) this.last = before as M | undefined;
    else after.before = before;
    member.before = member.after = undefined;
    return true;
  }
}
