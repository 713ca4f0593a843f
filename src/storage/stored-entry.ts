import type { KubernetesObject } from '../cache/object.ts';
import { inPieces } from '../watch/fair-queue.ts';
import type { Entry } from './backend.ts';
import { decoding, LARGE_BYTES, toObject } from './values.ts';

/** The value under a key at a revision: decoded each time that it is read, or once, in advance and in pieces. */
export abstract class StoredEntry<T extends KubernetesObject> implements Entry<T> {
  abstract readonly key: string;
  abstract readonly revision: string;
  protected abstract readonly value: Uint8Array;
  #loading: Promise<void> | undefined;
  #loaded: (() => T) | undefined;

  get object(): T {
    return this.#loaded ? this.#loaded() : toObject<T>(this.value, this);
  }

  load(signal?: AbortSignal): Promise<void> | undefined {
    if (this.#loaded || this.value.byteLength <= LARGE_BYTES) return undefined;
    this.#loading ??= this.#load(signal).finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  async #load(signal: AbortSignal | undefined): Promise<void> {
    try {
      const object = await inPieces(decoding<T>(this.value, this), { signal });
      this.#loaded = () => object;
    } catch (error) {
      signal?.throwIfAborted();
      this.#loaded = () => {
        throw error;
      };
    }
  }
}

/** Resolves when both have. */
export function both(one: Promise<void> | undefined, other: Promise<void> | undefined): Promise<void> | undefined {
  return one && other ? Promise.all([one, other]).then(() => {}) : (one ?? other);
}
