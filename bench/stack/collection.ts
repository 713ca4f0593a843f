import { podText, VERSION_MARK } from './pods.ts';

/** The version of the first Pod is the one after this. All versions have the same number of digits. */
const BEFORE = 10_000_000;

const HEAD = '{"kind":"Pod","apiVersion":"v1",';

/** Why a version cannot be watched. */
const EXPIRED = {
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: 'too old resource version',
  reason: 'Expired',
  code: 410,
};

/**
 * The bytes of a collection of Pods, and of its changes.
 *
 * Pod i of n is made at version i + 1. Then update k changes Pod k - 1 modulo n, at version n + k. So any state, and any change,
 * follows from the two numbers, and everybody who has them knows what a contender must hold.
 */
export class PodCollection {
  readonly size: number;
  /** The text of each Pod before and after its version. */
  readonly #parts: readonly (readonly [before: string, after: string])[];
  readonly #names: readonly string[];
  #updates: number = 0;

  constructor(size: number) {
    this.size = size;
    const texts = Array.from({ length: size }, (_, pod) => podText(pod));
    this.#parts = texts.map((text) => text.split(VERSION_MARK) as [string, string]);
    this.#names = texts.map((text) => {
      const { name, namespace } = JSON.parse(text).metadata;
      return `${namespace}/${name}`;
    });
  }

  /** The number of updates so far. */
  get updates(): number {
    return this.#updates;
  }

  /** The version of the last change. */
  get version(): string {
    return String(BEFORE + this.size + this.#updates);
  }

  update(count: number): void {
    this.#updates += count;
  }

  /** The number of updates that a version includes; undefined for a version that is none. */
  updatesAt(version: string): number | undefined {
    const updates = Number(version) - BEFORE - this.size;
    return Number.isInteger(updates) && updates >= 0 && updates <= this.#updates ? updates : undefined;
  }

  /** The newest Pod of this number, as it stands in a list. */
  item(pod: number): string {
    const [before, after] = this.#parts[pod] as [string, string];
    return before + this.#versionOf(pod) + after;
  }

  /** The event that says that a Pod was there at the beginning. */
  added(pod: number): string {
    return `{"type":"ADDED","object":${HEAD}${this.item(pod).slice(1)}}\n`;
  }

  /** The event of an update; the first one has number 1. */
  modified(update: number): string {
    const [before, after] = this.#parts[(update - 1) % this.size] as [string, string];
    return `{"type":"MODIFIED","object":${HEAD}${before.slice(1)}${BEFORE + this.size + update}${after}}\n`;
  }

  /** The event that ends the initial ones. */
  get initialEnd(): string {
    const metadata = { resourceVersion: this.version, annotations: { 'k8s.io/initial-events-end': 'true' } };
    return `${JSON.stringify({ type: 'BOOKMARK', object: { kind: 'Pod', apiVersion: 'v1', metadata } })}\n`;
  }

  /** The event that says that a watch cannot go on. */
  get expired(): string {
    return `${JSON.stringify({ type: 'ERROR', object: EXPIRED })}\n`;
  }

  /** What a store must hold, as {@link sumOf} tells it. */
  get sum(): string {
    return sumOf(this.#names.map((name, pod) => [name, this.#versionOf(pod)]));
  }

  #versionOf(pod: number): string {
    const rounds = Math.floor((this.#updates - 1 - pod) / this.size);
    const last = rounds < 0 ? pod + 1 : this.size + pod + 1 + rounds * this.size;
    return String(BEFORE + last);
  }
}

/** A hash over keys and versions in any order: FNV-1a, as the Go program computes it. */
export function sumOf(entries: Iterable<readonly [key: string, version: string]>): string {
  let hash = 0x811c9dc5;
  for (const line of Array.from(entries, ([key, version]) => `${key} ${version}\n`).sort()) {
    for (let i = 0; i < line.length; i++) hash = Math.imul(hash ^ line.charCodeAt(i), 0x01000193);
  }
  return (hash >>> 0).toString(16).padStart(8, '0');
}
