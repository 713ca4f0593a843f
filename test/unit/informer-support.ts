import { Informer, type InformerOptions, type KubernetesObject } from '../../src/cache/index.ts';
import { FakeClock, FakeListWatcher } from '../../src/testing/index.ts';
import { macrotask } from './support.ts';

/** The objects of the tests of informers. */
export interface Pod extends KubernetesObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly value: number;
}

/** A pod by its key (`a`, or `ns/a`), with a value and, for writes without a server, a version. */
export function pod(key: string, value: number = 0, resourceVersion?: string): Pod {
  const [namespace, name] = key.includes('/') ? (key.split('/') as [string, string]) : [undefined, key];
  return { metadata: { name, ...(namespace && { namespace }), ...(resourceVersion && { resourceVersion }) }, value };
}

export const nameOf = ({ metadata: { name } }: Pod): string => name;
export const shown = (one: Pod): string => `${one.metadata.name}${one.value}`;

/** Keeps what a handler was called with, as text: `+a1`, initially `!a1`, `a1>a2`, `-a2`, and `-a2?` if that is not sure. */
export class Calls {
  readonly all: string[] = [];
  readonly onAdd = (one: Pod, initial: boolean): void => void this.all.push(`${initial ? '!' : '+'}${shown(one)}`);
  readonly onUpdate = (old: Pod, one: Pod): void => void this.all.push(`${shown(old)}>${shown(one)}`);
  readonly onDelete = (one: Pod, unknown: boolean): void => void this.all.push(`-${shown(one)}${unknown ? '?' : ''}`);
  /** Returns what was called since the last time. */
  take(): string[] {
    return this.all.splice(0);
  }
}

/** Runs everything that is due. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await macrotask();
}

export interface Rig<Name extends string = string> {
  readonly source: FakeListWatcher<Pod>;
  readonly clock: FakeClock;
  readonly informer: Informer<Pod, Name>;
  readonly errors: unknown[];
  /** Starts it and waits until it has synced. */
  start(): Promise<void>;
}

/** An informer over a fake collection, under a fake clock. */
export function rig<Name extends string = string>(
  objects: readonly Pod[] = [],
  options: InformerOptions<Pod, Name> = {},
): Rig<Name> {
  const source = new FakeListWatcher<Pod>({ objects });
  const clock = new FakeClock();
  const errors: unknown[] = [];
  const onError = (error: unknown): void => void errors.push(error);
  const informer = new Informer<Pod, Name>(source, { clock, random: () => 0.5, onError, ...options });
  const start = async (): Promise<void> => {
    void informer.run();
    await informer.synced;
    await settle();
  };
  return { source, clock, informer, errors, start };
}
