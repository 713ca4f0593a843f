/** Progress on stderr: one line that is rewritten on a terminal, else one line per table. */
export class Progress {
  private readonly began: number = performance.now();
  private total: number;
  private at: number = 0;
  private title: string = '';

  constructor(total: number) {
    this.total = total;
  }

  next(title: string): void {
    this.at++;
    this.title = title;
    if (!process.stderr.isTTY) process.stderr.write(`${this.where()}\n`);
  }

  /** Adds one more table than planned. */
  again(title: string): void {
    this.total++;
    this.next(`${title}, once more`);
  }

  step(what: string): void {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${this.where()}: ${what}`);
  }

  clear(): void {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  }

  private where(): string {
    const seconds = Math.round((performance.now() - this.began) / 1000);
    return `[${this.at}/${this.total}, ${seconds} s] ${this.title}`;
  }
}
