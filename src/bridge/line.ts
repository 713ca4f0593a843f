/**
 * So many at the same time, the others in line. Who stands in it is served first come, first served, but behind those who have
 * begun already and only made room for a while: what is half done holds more than what is not begun.
 */
export class Line {
  private free: number;
  private readonly begun: Set<() => void> = new Set();
  private readonly fresh: Set<() => void> = new Set();

  constructor(places: number) {
    this.free = places;
  }

  /** Resolves when there is a place; false if the one who wants it has gone before. */
  enter(gone: AbortSignal, hasBegun: boolean = false): Promise<boolean> {
    if (gone.aborted) return Promise.resolve(false);
    if (this.free > 0) {
      this.free--;
      return Promise.resolve(true);
    }
    const line = hasBegun ? this.begun : this.fresh;
    return new Promise((resolve) => {
      const leave = (): void => {
        line.delete(go);
        resolve(false);
      };
      const go = (): void => {
        line.delete(go);
        gone.removeEventListener('abort', leave);
        resolve(true);
      };
      gone.addEventListener('abort', leave, { once: true });
      line.add(go);
    });
  }

  /** Gives a place back: it goes to whoever is first. */
  leave(): void {
    const [go] = this.begun.size > 0 ? this.begun : this.fresh;
    if (go === undefined) this.free++;
    else go();
  }
}
