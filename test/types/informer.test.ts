// The types of informers, as their users see them.
import { test } from 'vitest';
import {
  createListWatcher,
  type HandlerRegistration,
  Informer,
  InformerFactory,
  type InformerStore,
  type KubernetesObject,
  Lister,
  type ListWatcher,
} from '../../src/cache/index.ts';
import { FakeListWatcher } from '../../src/testing/index.ts';
import type { ObjectEvent } from '../../src/watch/event.ts';
import type { Watch } from '../../src/watch/watch.ts';
import { claim, type Equal } from './assert.ts';

interface Pod extends KubernetesObject {
  readonly spec: { readonly nodeName: string };
}
const source: ListWatcher<Pod> = new FakeListWatcher<Pod>();

test('the names of indexes are part of the type', () => {
  const informer = new Informer(source, { indexers: { node: (pod) => [pod.spec.nodeName] } });
  claim<Equal<typeof informer, Informer<Pod, 'node'>>>();
  claim<Equal<typeof informer.store, InformerStore<Pod, 'node'>>>();
  informer.store.byIndex('node', 'n1');
  // @ts-expect-error: there is no such index
  if (!informer) informer.store.byIndex('nodes', 'n1');
  const more = informer.store.addIndexers({ phase: () => ['Running'] });
  claim<Equal<typeof more, InformerStore<Pod, 'node' | 'phase'>>>();
  more.indexKeys('phase', 'Running');
  const plain: Informer<Pod> = new Informer(source);
  plain.store.list({ namespace: 'x', labelSelector: 'a=b', filter: (pod) => pod.spec.nodeName === 'n1' });
});

test('the store is there to be read', () => {
  const { store } = new Informer(source);
  const never = (run: () => unknown): void => void run;
  // @ts-expect-error: only the informer writes
  never(() => store.add);
  // @ts-expect-error: only the informer writes
  never(() => store.update);
  // @ts-expect-error: only the informer writes
  never(() => store.delete);
  // @ts-expect-error: only the informer writes
  never(() => store.replace);
  // @ts-expect-error: only the informer writes
  never(() => store.transaction);
  claim<Equal<ReturnType<typeof store.get>, Pod | undefined>>();
});

test('handlers and watches have the type of the objects', () => {
  const informer = new Informer(source);
  const registration = informer.addHandler(
    {
      onAdd: async (pod, initial) => claim<Equal<[typeof pod, typeof initial], [Pod, boolean]>>(),
      onUpdate: (old, pod) => claim<Equal<[typeof old, typeof pod], [Pod, Pod]>>(),
      onDelete: (pod, finalStateUnknown) => claim<Equal<[typeof pod, typeof finalStateUnknown], [Pod, boolean]>>(),
    },
    { filter: (pod) => pod.spec.nodeName !== '', overflow: 'disconnect', capacity: 5, resyncMs: 0 },
  );
  claim<Equal<typeof registration, HandlerRegistration>>();
  // @ts-expect-error: a handler must not hold back others
  const wait = { overflow: 'wait' } satisfies Parameters<typeof informer.addHandler>[1];
  const watch = informer.watch();
  claim<Equal<typeof watch, Watch<ObjectEvent<Pod>>>>();
  void wait;
});

test('a factory and a lister keep the type', () => {
  const factory = new InformerFactory((_path: string, { namespace }) => createListWatcher<Pod>(`http://127.0.0.1/${namespace}`));
  claim<Equal<typeof factory, InformerFactory<string, Pod>>>();
  const pods = factory.informer('pods');
  claim<Equal<typeof pods, Informer<Pod>>>();
  const lister = new Lister(pods.store);
  claim<Equal<typeof lister, Lister<Pod>>>();
  claim<Equal<ReturnType<typeof lister.get>, Pod | undefined>>();
  interface Node extends Pod {
    readonly status: string;
  }
  const nodes = factory.informer<Node>('nodes');
  claim<Equal<typeof nodes, Informer<Node>>>();
});
