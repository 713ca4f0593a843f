import { afterEach, describe, expect, it } from 'vitest';
import { createListWatcher, type KubernetesObject, type ListWatcher } from '../../src/cache/index.ts';
import type { ObjectEvent, Watch } from '../../src/index.ts';
import { FakeListWatcher, LIST_WATCHER_CONTRACT, type ListWatcherSubject } from '../../src/testing/index.ts';
import { serveCollection } from '../unit/collection-server.ts';

let close: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const each of close) await each();
  close = [];
});

const subjectOf = (fake: FakeListWatcher, source: ListWatcher<KubernetesObject> = fake): ListWatcherSubject => ({
  source,
  put: (name, labels) => void fake.add({ metadata: { name, ...(labels && { labels }) } }),
  remove: (name) => void fake.delete({ metadata: { name } }),
  expire: () => fake.expire(),
  bookmark: () => fake.bookmark(),
});

const SOURCES: readonly (readonly [string, () => ListWatcherSubject | Promise<ListWatcherSubject>])[] = [
  ['a FakeListWatcher', () => subjectOf(new FakeListWatcher())],
  [
    'a collection over HTTP',
    async () => {
      const fake = new FakeListWatcher();
      const server = await serveCollection(fake);
      close.push(() => server.close());
      return subjectOf(fake, createListWatcher(server.url));
    },
  ],
];

describe.each(SOURCES)('the contract of a list watcher, %s', (_, open) => {
  for (const { name, run } of LIST_WATCHER_CONTRACT) it(name, () => run(open));
});

describe('the contract of a list watcher', () => {
  type Source = ListWatcher<KubernetesObject>;
  /** A source whose events are changed on their way. */
  const altered = (source: Source, alter: (event: ObjectEvent<KubernetesObject>) => ObjectEvent<KubernetesObject>): Source => ({
    list: (options) => source.list(options),
    watch: async (options) => {
      const watch = await source.watch(options);
      const changed = Object.create(watch) as Watch<ObjectEvent<KubernetesObject>>;
      const next = async (): Promise<IteratorResult<ObjectEvent<KubernetesObject>, undefined>> => {
        const result = await watch.next();
        return result.done ? result : { done: false, value: alter(result.value) };
      };
      return Object.assign(changed, { next, return: () => watch.return(), stop: () => watch.stop() });
    },
  });
  const BROKEN: readonly (readonly [string, string, (source: Source, fake: FakeListWatcher) => Source])[] = [
    ['lists nothing', 'a list has', (source) => ({ ...bound(source), list: async () => ({ items: [], resourceVersion: '1' }) })],
    [
      'tells no version',
      'a list has',
      (source) => ({ ...bound(source), list: async (options) => ({ ...(await source.list(options)), resourceVersion: '' }) }),
    ],
    [
      'ignores the version of a watch',
      'a watch from the version of a list',
      (source) => ({ ...bound(source), watch: ({ resourceVersion: _, ...rest } = {}) => source.watch(rest) }),
    ],
    [
      'calls every change MODIFIED',
      'a watch from the version of a list',
      (source) => altered(source, (event) => ({ ...event, type: 'MODIFIED' }) as typeof event),
    ],
    [
      'leaves the version of a deletion out',
      'a DELETED has',
      (source) =>
        altered(source, (event) =>
          event.type === 'DELETED' ? { type: 'DELETED', object: { metadata: { name: 'a', resourceVersion: '2' } } } : event,
        ),
    ],
    [
      'starts every watch at the same version',
      'a watch from the version of any',
      (source) => ({ ...bound(source), watch: (options) => source.watch({ ...options, resourceVersion: '2' }) }),
    ],
    [
      'shares one watch among all',
      'watches do not know',
      (source) => {
        let shared: Promise<Watch<ObjectEvent<KubernetesObject>>> | undefined;
        return { ...bound(source), watch: (options) => (shared ??= source.watch(options)) };
      },
    ],
    [
      'does not hear signals',
      'an aborted signal',
      (source) => ({
        list: ({ signal: _, ...rest } = {}) => source.list(rest),
        watch: ({ signal: _, ...rest } = {}) => source.watch(rest),
      }),
    ],
    [
      'lists what is new on its later pages',
      'the pages of a list',
      (source) => ({ ...bound(source), list: (options = {}) => source.list(options.continue ? {} : options) }),
    ],
    [
      'never ends its initial events',
      'initial events',
      (source) =>
        altered(source, (event) =>
          event.type === 'BOOKMARK'
            ? {
                type: 'BOOKMARK',
                object: { metadata: { resourceVersion: '3', annotations: { 'k8s.io/initial-events-end': 'false' } } },
              }
            : event,
        ),
    ],
    [
      'begins now when its version is too old',
      'a watch from a version that is too old',
      (source, fake) => ({
        ...bound(source),
        watch: () => source.watch({ resourceVersion: `${Number(fake.resourceVersion) - 1}` }),
      }),
    ],
    [
      'sends BOOKMARKs of the past',
      'a watch that is cut at any event or BOOKMARK',
      (source) =>
        altered(source, (event) =>
          event.type === 'BOOKMARK' ? { type: 'BOOKMARK', object: { metadata: { resourceVersion: '1' } } } : event,
        ),
    ],
    ['gives every change the same version', 'the versions of a watch', (source) => altered(source, (event) => at('2', event))],
    [
      'goes back in version',
      'the versions of a watch',
      (source) => altered(source, (event) => (event.type === 'DELETED' ? at('1', event) : event)),
    ],
    [
      'lists at an old version',
      'the versions of a watch',
      (source) => ({ ...bound(source), list: async (options) => ({ ...(await source.list(options)), resourceVersion: '1' }) }),
    ],
    [
      'calls every change ADDED',
      'an object is ADDED where there is none',
      (source) => altered(source, (event) => ({ ...event, type: 'ADDED' }) as typeof event),
    ],
    [
      'deletes only by name',
      'a DELETED has the last content',
      (source) =>
        altered(source, (event) =>
          event.type === 'DELETED' ? { type: 'DELETED', object: { metadata: { name: 'a', resourceVersion: '4' } } } : event,
        ),
    ],
    [
      'loses its last pages',
      'a watch from the version of a list with pages',
      (source) => ({
        ...bound(source),
        list: async (options = {}) => ({ ...(await source.list(options)), ...(options.continue && { items: [] }) }),
      }),
    ],
    [
      'begins with other objects',
      'initial events and what follows',
      (source) => {
        let first = true;
        return altered(source, (event) => {
          const wrong = first;
          first = false;
          return wrong ? { type: 'ADDED', object: { metadata: { name: 'other', resourceVersion: '2' } } } : event;
        });
      },
    ],
    [
      'never says that a watch has stopped',
      'a watch can be stopped at any time',
      (source) => ({
        ...bound(source),
        watch: async (options) => Object.defineProperty(await source.watch(options), 'stopped', { value: false }),
      }),
    ],
    [
      'delivers after the end',
      'a watch can be stopped at any time',
      (source) => ({
        ...bound(source),
        watch: async (options) => {
          const watch = await source.watch(options);
          const event: ObjectEvent<KubernetesObject> = { type: 'ADDED', object: { metadata: { name: 'ghost' } } };
          let reads = 0;
          const next = async (): Promise<IteratorResult<ObjectEvent<KubernetesObject>, undefined>> =>
            ++reads % 2 === 0 ? { done: false, value: event } : watch.next();
          return Object.assign(watch, { next: next.bind(watch) });
        },
      }),
    ],
    [
      'forgets a listener',
      'after an answer, a refusal',
      (source) => ({
        ...bound(source),
        list: (options) => {
          options?.signal?.addEventListener('abort', () => {});
          return source.list(options);
        },
      }),
    ],
    [
      'does not select',
      'a selector',
      (source) => ({ ...bound(source), list: ({ labelSelector: _, ...rest } = {}) => source.list(rest) }),
    ],
    [
      'does not select what it watches',
      'a selector',
      (source) => ({ ...bound(source), watch: ({ labelSelector: _, ...rest } = {}) => source.watch(rest) }),
    ],
  ];
  const at = (resourceVersion: string, event: ObjectEvent<KubernetesObject>): ObjectEvent<KubernetesObject> => {
    if (event.type === 'ERROR' || event.type === 'BOOKMARK') return event;
    return { type: event.type, object: { ...event.object, metadata: { ...event.object.metadata, resourceVersion } } };
  };
  const bound = (source: Source): Source => ({
    list: (options) => source.list(options),
    watch: (options) => source.watch(options),
  });

  it.each(BROKEN)('rejects a source that %s', async (_, title, wrong) => {
    const rule = LIST_WATCHER_CONTRACT.find(({ name }) => name.startsWith(title));
    const open = (): ListWatcherSubject => {
      const fake = new FakeListWatcher();
      // A case that waits for what never comes would hang: its watches end when there is nothing left to read.
      const ending: Source = {
        list: (options) => fake.list(options),
        watch: async (options) => {
          const watch = await fake.watch(options);
          setImmediate(() => setImmediate(() => fake.cut()));
          return watch;
        },
      };
      return subjectOf(fake, wrong(ending, fake));
    };
    await expect(rule?.run(open)).rejects.toThrow(/^list watcher contract: expected/);
  });
});
