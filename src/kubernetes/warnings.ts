/**
 * What a server says beside its answer, in a `Warning` header: that a field is unknown, and was dropped; that a version will be
 * removed. kubectl and client-go print it, and so does this: each text once.
 */
import { oneLine } from './one-line.ts';

const MAX_TEXTS = 1_000;

export class Warnings {
  readonly #onWarning: (text: string) => void;
  readonly #said: Set<string> = new Set();

  constructor(onWarning: ((text: string) => void) | undefined) {
    this.#onWarning = onWarning ?? ((text) => console.warn(`watchmux: the cluster warns: ${text}`));
  }

  read(headers: Headers): void {
    const header = headers.get('warning');
    if (header === null) return;
    for (const [, quoted = ''] of header.matchAll(/\b299 \S+ "((?:[^"\\]|\\.)*)"/g)) {
      const text = oneLine(quoted.replace(/\\(.)/g, '$1'));
      if (this.#said.has(text)) continue;
      if (this.#said.size >= MAX_TEXTS) this.#said.clear();
      this.#said.add(text);
      this.#onWarning(text);
    }
  }
}
