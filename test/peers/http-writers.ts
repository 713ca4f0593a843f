// Programs that write ConfigMaps through a balancer all the time, and read them, and what they were answered.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { StorageRequest } from '../../src/testing/index.ts';
import { randomOf } from './proxy.ts';

/** A write that was answered: its key and version. */
export interface Written {
  readonly name: string;
  readonly version: string;
}

/** A request as it is checked, with what was said in answer to it. */
export interface RecordedRequest extends StorageRequest {
  /** 0: nothing. */
  readonly code: number;
  readonly version?: string | undefined;
  readonly message?: string | undefined;
}

interface Held {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
  readonly data: { readonly v: string };
}

export interface HttpWritersOptions {
  readonly writers: number;
  readonly keys: number;
  readonly seed: number;
  /** Between two requests of a writer, in milliseconds. */
  readonly pauseMs: number;
}

/** What an answer says. */
interface Said {
  readonly code: number;
  readonly body: unknown;
}

const REQUEST_MS = 4_000;
const REPORTS = fileURLToPath(new URL('../../reports/histories', import.meta.url));

/** Keeps a history that was found to be wrong. Returns where. */
export function keepHistory(name: string, found: unknown, requests: readonly RecordedRequest[]): string {
  mkdirSync(REPORTS, { recursive: true });
  const file = join(REPORTS, `${name}-${Date.now()}.json`);
  writeFileSync(file, JSON.stringify({ found, requests }, null, 1));
  return file;
}

export class HttpWriters {
  readonly history: RecordedRequest[] = [];
  readonly written: Written[] = [];
  /** Requests whose answer did not come, or did not say. */
  unknown: number = 0;
  /** How many answers had each code, and the last text of each; 0 stands for none. */
  readonly answers: Map<number, { count: number; last: string }> = new Map();
  readonly #url: string;
  readonly #options: HttpWritersOptions;
  readonly #random: () => number;
  readonly #loops: Promise<void>[];
  #values: number = 0;
  #stopped: boolean = false;

  /** `url` is that of a collection. */
  constructor(url: string, options: HttpWritersOptions) {
    this.#url = url;
    this.#options = options;
    this.#random = randomOf(options.seed);
    this.#loops = Array.from({ length: options.writers }, (_, at) => this.#loop(`writer ${at}`));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#loops);
  }

  async #loop(client: string): Promise<void> {
    while (!this.#stopped) {
      await this.#step(client);
      await sleep(this.#options.pauseMs * 2 * this.#random());
    }
  }

  async #step(client: string): Promise<void> {
    const name = `k${Math.floor(this.#random() * this.#options.keys)}`;
    const value = `${++this.#values}`;
    const what = this.#random();
    if (what < 0.15) await this.#read(client, name);
    else if (what < 0.17) await this.#list(client);
    else if (what < 0.4)
      await this.#write(client, { name, method: 'POST', value, call: { do: 'write', value, if: { value: undefined } } });
    else if (what < 0.55) await this.#write(client, { name, method: 'DELETE', call: { do: 'delete' } });
    else {
      const seen = await this.#read(client, name);
      if (!seen) return;
      const { resourceVersion } = seen.metadata;
      await this.#write(client, {
        name,
        method: 'PUT',
        value,
        resourceVersion,
        call: { do: 'write', value, if: { value: seen.data.v } },
      });
    }
  }

  /** A read that fails says nothing. */
  async #read(client: string, name: string): Promise<Held | undefined> {
    const from = performance.now();
    const said = await this.#ask('GET', `/${name}`);
    if (said.code !== 200 && said.code !== 404) return undefined;
    const seen = said.code === 200 ? (said.body as Held) : undefined;
    this.#note(said, { key: name, from, call: { do: 'read' }, answer: { is: 'done', value: seen?.data.v }, client });
    return seen;
  }

  /** A list without a version is a read of every key at one moment. */
  async #list(client: string): Promise<void> {
    const from = performance.now();
    const said = await this.#ask('GET', '');
    if (said.code !== 200) return;
    const values = new Map((said.body as { items: Held[] }).items.map(({ metadata, data }) => [metadata.name, data.v]));
    for (let at = 0; at < this.#options.keys; at++) {
      const value = values.get(`k${at}`);
      this.#note(said, { key: `k${at}`, from, call: { do: 'read' }, answer: { is: 'done', value }, client });
    }
  }

  async #write(
    client: string,
    {
      name,
      method,
      value,
      resourceVersion,
      call,
    }: {
      name: string;
      method: 'POST' | 'PUT' | 'DELETE';
      value?: string;
      resourceVersion?: string;
      call: StorageRequest['call'];
    },
  ): Promise<void> {
    const from = performance.now();
    const metadata = { name, ...(resourceVersion !== undefined && { resourceVersion }) };
    const path = method === 'POST' ? '' : `/${name}`;
    const said = await this.#ask(method, path, value === undefined ? undefined : { metadata, data: { v: value } });
    if (said.code === 200 || said.code === 201) {
      if (method !== 'DELETE') this.written.push({ name, version: (said.body as Held).metadata.resourceVersion });
      this.#note(said, { key: name, from, call, answer: { is: 'done' }, client });
    } else if (isRefused(method, said)) this.#note(said, { key: name, from, call, answer: { is: 'refused' }, client });
    // A server that goes away may have done what it no longer answers for.
    else {
      this.unknown++;
      this.#note(said, { key: name, from, call, client });
    }
  }

  #note({ code, body }: Said, request: Omit<StorageRequest, 'to'>): void {
    const { metadata, message } = (body ?? {}) as { metadata?: { resourceVersion?: string }; message?: string };
    const to = request.answer && performance.now();
    this.history.push({ ...request, to, code, version: metadata?.resourceVersion, message });
  }

  /** Code 0: no answer. */
  async #ask(method: string, path: string, body?: object): Promise<Said> {
    try {
      const response = await fetch(`${this.#url}${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(REQUEST_MS),
      });
      const answer = { code: response.status, body: await response.json() };
      this.#count(answer.code, String((answer.body as { message?: string }).message));
      return answer;
    } catch (error) {
      this.#count(0, `${error} ${(error as Error).cause ?? ''}`);
      return { code: 0, body: undefined };
    }
  }

  #count(code: number, last: string): void {
    this.answers.set(code, { count: (this.answers.get(code)?.count ?? 0) + 1, last });
  }
}

/** What is refused because of what is there, by its reason: an answer of the same code may have another one. */
function isRefused(method: 'POST' | 'PUT' | 'DELETE', { code, body }: Said): boolean {
  const { reason } = (body ?? {}) as { reason?: string };
  if (method === 'POST') return code === 409 && reason === 'AlreadyExists';
  return (code === 404 && reason === 'NotFound') || (method === 'PUT' && code === 409 && reason === 'Conflict');
}
