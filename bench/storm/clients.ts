// The clients of the workload `storm`, in a process of their own: each has a live copy of the collection.
import { setMaxListeners } from 'node:events';
import { createListWatcher } from '../../src/cache/http/http-list-watcher.ts';
import type { ReflectorStore } from '../../src/cache/list-watcher.ts';
import { Reflector } from '../../src/cache/reflector/reflector.ts';
import { obey } from '../dialogue.ts';
import { THINGS_PATH } from '../server/contenders.ts';
import type { Thing } from '../server/objects.ts';
import { Copy } from './copy.ts';

setMaxListeners(0);

/** Starts a client with a copy. */
type Start = (url: string, copy: Copy) => void;

/** Storms are seconds apart here. Failures of the last one are to count no more than if it was minutes ago. */
const RESET_MS = 1_000;

const watchmux: Start = (url, copy) => {
  const store: ReflectorStore<Thing> = {
    add: (thing) => copy.set(thing),
    update: (thing) => copy.set(thing),
    delete: (thing) => copy.delete(thing),
    replace: (things) => copy.replace(things),
  };
  const source = createListWatcher<Thing>(url + THINGS_PATH);
  void new Reflector<Thing>(source, store, { resetMs: RESET_MS }).run(new AbortController().signal);
};

/** The parts of `@kubernetes/client-node` that are used. It is installed in bench/ only, and the project type-checks without it. */
interface ClientNode {
  readonly KubeConfig: new () => { loadFromOptions(options: object): void };
  makeInformer(config: unknown, path: string, list: () => Promise<unknown>): PeerInformer;
}

interface PeerInformer {
  on(name: 'add' | 'update' | 'delete', callback: (thing: Thing) => void): void;
  on(name: 'error', callback: (error: unknown) => void): void;
  start(): Promise<void>;
}

const PACKAGE: string = '@kubernetes/client-node';
/** As its documentation has it. */
const RESTART_MS = 5_000;

async function clientNode(): Promise<Start> {
  const peer = (await import(PACKAGE)) as ClientNode;
  return (url, copy) => {
    const config = new peer.KubeConfig();
    config.loadFromOptions({
      clusters: [{ name: 'bench', server: url, skipTLSVerify: true }],
      users: [{ name: 'bench' }],
      contexts: [{ name: 'bench', cluster: 'bench', user: 'bench' }],
      currentContext: 'bench',
    });
    const list = async (): Promise<unknown> => (await fetch(url + THINGS_PATH)).json();
    const informer = peer.makeInformer(config, THINGS_PATH, list);
    informer.on('add', (thing) => copy.set(thing));
    informer.on('update', (thing) => copy.set(thing));
    informer.on('delete', (thing) => copy.delete(thing));
    const start = (): void => void informer.start().catch(again);
    const again = (): void => void setTimeout(start, RESTART_MS);
    informer.on('error', again);
    start();
  };
}

const STARTS: Readonly<Record<string, () => Promise<Start> | Start>> = {
  watchmux: () => watchmux,
  'client-node': clientNode,
};

const copies: Copy[] = [];

const deeds = {
  async join({ contender, url, clients }: { contender: string; url: string; clients: number }): Promise<void> {
    const start = await STARTS[contender]?.();
    if (start === undefined) throw new Error(`there is no contender "${contender}"`);
    for (let i = 0; i < clients; i++) {
      const copy = new Copy();
      copies.push(copy);
      start(url, copy);
    }
  },
  /** Waits until every copy has the change of this number, and checks that all are what `turns` says. Says when each had it. */
  async heard({ number, turns }: { number: number; turns: Readonly<Record<string, number>> }): Promise<readonly number[]> {
    const times = await Promise.all(copies.map((copy) => copy.heard(number)));
    for (const copy of copies) copy.check(turns);
    return times;
  },
};

export type ClientDeeds = typeof deeds;

obey(deeds);
