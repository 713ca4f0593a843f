import type { Thing } from '../server/objects.ts';

/** A client's copy of the collection: which change of each Thing it has, and when it heard of the one that is waited for. */
export class Copy {
  readonly #turns: Map<string, number> = new Map();
  #awaited: { readonly number: number; readonly told: (atMs: number) => void } | undefined;
  /** The last change that it has heard of, and when. */
  #last: { readonly number: number; readonly atMs: number } = { number: -1, atMs: 0 };
  /** What went wrong first. */
  #wrong: string | undefined;

  set({ metadata: { name }, spec: { turn } }: Thing): void {
    const before = this.#turns.get(name) ?? -1;
    if (turn < before) this.#wrong ??= `${name} goes back from ${before} to ${turn}`;
    this.#turns.set(name, turn);
    this.#hear(turn);
  }

  delete({ metadata: { name } }: Thing): void {
    this.#turns.delete(name);
  }

  replace(things: Iterable<Thing>): void {
    const all = [...things];
    const names = new Set(all.map(({ metadata }) => metadata.name));
    for (const name of this.#turns.keys()) if (!names.has(name)) this.#turns.delete(name);
    for (const thing of all) this.set(thing);
  }

  /** Resolves with the time at which it had this change. */
  heard(number: number): Promise<number> {
    if (this.#last.number >= number) return Promise.resolve(this.#last.atMs);
    return new Promise((told) => {
      this.#awaited = { number, told };
    });
  }

  /** Throws if it is not exactly this, or has gone back. */
  check(turns: Readonly<Record<string, number>>): void {
    if (this.#wrong !== undefined) throw new Error(`wrong answer: ${this.#wrong}`);
    const due = Object.entries(turns);
    const wrong = due.find(([name, turn]) => this.#turns.get(name) !== turn);
    if (wrong) throw new Error(`wrong answer: ${wrong[0]} is at ${this.#turns.get(wrong[0])} instead of ${wrong[1]}`);
    if (this.#turns.size !== due.length) throw new Error(`wrong answer: ${this.#turns.size} Things instead of ${due.length}`);
  }

  #hear(number: number): void {
    if (number <= this.#last.number) return;
    this.#last = { number, atMs: Date.now() };
    if (this.#awaited && number >= this.#awaited.number) {
      this.#awaited.told(this.#last.atMs);
      this.#awaited = undefined;
    }
  }
}
