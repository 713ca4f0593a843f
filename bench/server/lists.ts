/** The lists of the load. The first answer is examined; later ones must be the same, byte by byte. */
import { Agent, get, type IncomingMessage } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { podOf } from './objects.ts';

export interface ListOrder {
  readonly path: string;
  readonly limit: number;
  readonly labelSelector: string;
  /** Numbers of the Pods that must be in it: every one, or every second. */
  readonly pods: number;
  readonly step: number;
}

export interface Listed {
  readonly firstByteMs: number;
  readonly objects: number;
}

export class Lists {
  readonly #agent: Agent = new Agent({ keepAlive: true, maxSockets: 1 });
  /** The chunks of the first answer to each request, joined. */
  readonly #known: Map<string, Buffer> = new Map();
  #slow: IncomingMessage | undefined;

  /** Reads the whole list, page by page if there is a limit. */
  async list(port: number, order: ListOrder): Promise<Listed> {
    const pages: Buffer[] = [];
    let firstByteMs = 0;
    let next = '';
    do {
      const query = new URLSearchParams();
      if (order.labelSelector) query.set('labelSelector', order.labelSelector);
      if (order.limit > 0) query.set('limit', String(order.limit));
      if (next) query.set('continue', next);
      const target = `${order.path}?${query}`;
      const page = await this.#read(port, target);
      firstByteMs = Math.max(firstByteMs, page.firstByteMs);
      pages.push(page.body);
      next = /^[^[]*"continue":"([^"]*)"/.exec(page.body.toString('latin1', 0, 2_000))?.[1] ?? '';
    } while (next);
    const key = JSON.stringify(order);
    if (!this.#known.has(key)) {
      checkPods(pages, order);
      this.#known.set(key, Buffer.alloc(0));
    }
    return { firstByteMs, objects: Math.ceil(order.pods / order.step) };
  }

  /** Asks for a list, and takes next to nothing of it. */
  async begin(port: number, { path }: ListOrder): Promise<void> {
    this.#slow = await this.#ask(port, path);
    this.#slow.pause();
    await setTimeout(100);
  }

  end(): void {
    this.#slow?.destroy();
    this.#agent.destroy();
  }

  #ask(port: number, path: string): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      get({ host: '127.0.0.1', port, path, agent: this.#agent }, (response) => {
        if (response.statusCode === 200) resolve(response);
        else reject(new Error(`a list was answered with ${response.statusCode}`));
      }).on('error', reject);
    });
  }

  async #read(port: number, path: string): Promise<{ firstByteMs: number; body: Buffer }> {
    const began = performance.now();
    const response = await this.#ask(port, path);
    const known = this.#known.get(path);
    const chunks: Buffer[] = [];
    let firstByteMs = 0;
    let at = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      firstByteMs ||= performance.now() - began;
      if (known === undefined) chunks.push(chunk);
      else if (known.compare(chunk, 0, chunk.length, at, at + chunk.length) !== 0)
        throw new Error(`a list differs at byte ${at}`);
      at += chunk.length;
    }
    const body = known ?? Buffer.concat(chunks);
    if (at !== body.length) throw new Error(`a list has ended after ${at} bytes of ${body.length}`);
    this.#known.set(path, body);
    return { firstByteMs, body };
  }
}

/** Throws if these pages are not the list of exactly these Pods, in order. */
export function checkPods(pages: readonly Buffer[], { pods, step }: Pick<ListOrder, 'pods' | 'step'>): void {
  let number = 0;
  for (const page of pages) {
    const { kind, items } = JSON.parse(page.toString());
    if (kind !== 'PodList') throw new Error(`a ${kind} instead of a PodList`);
    for (const { metadata, ...rest } of items) {
      const { metadata: due, ...restDue } = podOf(number);
      const { resourceVersion, ...told } = metadata;
      if (!/^[0-9]+$/.test(resourceVersion)) throw new Error(`Pod ${number} has no version`);
      if (sorted({ ...rest, metadata: told }) !== sorted({ ...restDue, metadata: due }))
        throw new Error(`Pod ${number} is wrong`);
      number += step;
    }
  }
  if (number < pods || number >= pods + step) throw new Error(`the list has ended before Pod ${number}, and there are ${pods}`);
}

/** JSON whatever the order of members at the top and in metadata, which a server may choose. */
function sorted({ metadata, ...rest }: { readonly metadata: object }): string {
  const members = (object: object): [string, unknown][] => Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([members(rest), members(metadata)]);
}
