// Programs in Node that write ConfigMaps all the time: by plain requests, and by client-node.
import { setTimeout as sleep } from 'node:timers/promises';
import { CoreV1Api, type KubeConfig, type V1ConfigMap } from '@kubernetes/client-node';
import { randomOf } from './proxy.ts';

/** Creates, replaces and deletes. Each rejects with an error that has the code of the refusal. */
export interface MapWriter {
  create(object: V1ConfigMap): Promise<unknown>;
  replace(name: string, object: V1ConfigMap): Promise<unknown>;
  remove(name: string): Promise<unknown>;
}

const NAMES = 24;
/** To write all the time, not to keep a machine busy. */
const PAUSE_MS = 10;
/** There is one already; there is none. */
const USUAL = [404, 409];

/** Writes by `fetch`, at a namespace of a server. */
export function plainWriter(url: string, namespace: string): MapWriter {
  const path = `${url}/api/v1/namespaces/${namespace}/configmaps`;
  const send = async (method: string, to: string, object?: V1ConfigMap): Promise<void> => {
    const body = object && { body: JSON.stringify(object), headers: { 'content-type': 'application/json' } };
    const response = await fetch(to, { method, ...body });
    const text = await response.text();
    if (!response.ok) throw Object.assign(new Error(text), { code: response.status });
  };
  return {
    create: (object) => send('POST', path, object),
    replace: (name, object) => send('PUT', `${path}/${name}`, object),
    remove: (name) => send('DELETE', `${path}/${name}`),
  };
}

/** Writes by client-node. */
export function clientNodeWriter(config: KubeConfig, namespace: string): MapWriter {
  const core = config.makeApiClient(CoreV1Api);
  return {
    create: (body) => core.createNamespacedConfigMap({ namespace, body }),
    replace: (name, body) => core.replaceNamespacedConfigMap({ namespace, name, body }),
    remove: (name) => core.deleteNamespacedConfigMap({ namespace, name }),
  };
}

export class MapWriters {
  /** Number of writes that were answered. */
  written: number = 0;
  /** Answers that nobody expects. */
  readonly faults: string[] = [];
  readonly #random: () => number;
  readonly #loops: Promise<void>[];
  #stopped: boolean = false;

  constructor(writers: readonly MapWriter[], seed: number) {
    this.#random = randomOf(seed);
    this.#loops = writers.map((writer) => this.#loop(writer));
  }

  /** Resolves when no write is in progress. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#loops);
  }

  async #loop(writer: MapWriter): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#write(writer);
        this.written++;
      } catch (error) {
        if (!USUAL.includes((error as { code?: number }).code ?? 0)) this.faults.push(String(error));
      }
      await sleep(PAUSE_MS);
    }
  }

  /** One of a few objects, so that all of it happens to each of them often. */
  #write(writer: MapWriter): Promise<unknown> {
    const name = `n${Math.floor(this.#random() * NAMES)}`;
    const object = { metadata: { name }, data: { text: 'x'.repeat(Math.floor(this.#random() * 200)) } };
    const what = this.#random();
    if (what < 0.35) return writer.create(object);
    return what < 0.8 ? writer.replace(name, object) : writer.remove(name);
  }
}
