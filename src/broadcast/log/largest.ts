/** The largest of a changing collection of numbers; 0 when empty. Removing the largest scans the distinct numbers. */
export class Largest {
  value: number = 0;
  readonly #counts: Map<number, number> = new Map();

  add(number: number): void {
    this.#counts.set(number, (this.#counts.get(number) ?? 0) + 1);
    if (number > this.value) this.value = number;
  }

  remove(number: number): void {
    const others = (this.#counts.get(number) ?? 0) - 1;
    if (others > 0) {
      this.#counts.set(number, others);
      return;
    }
    this.#counts.delete(number);
    if (number < this.value) return;
    this.value = 0;
    for (const other of this.#counts.keys()) if (other > this.value) this.value = other;
  }
}
