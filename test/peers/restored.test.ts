// A kube-apiserver whose etcd was restored from a copy has older versions than its clients know. It accepts a watch from a version that
// it has not reached, and is silent until it has: client-go's informer keeps what is gone for ever. Ours has to notice.
import { afterEach, describe, expect, it } from 'vitest';
import { createListWatcher, Informer, type KubernetesObject } from '../../src/cache/index.ts';
import { component, isMissing } from '../components.ts';
import { eventually } from '../eventually.ts';
import { startApiServer, WITHOUT_WATCH_LIST, withoutWatchCache } from './apiserver.ts';
import { versionsOf } from './fold.ts';

const PATH = '/api/v1/namespaces/default/configmaps';
/** More than a server writes by itself when it starts. */
const WRITES = 400;

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
}, 60_000);

describe.skipIf(isMissing(component('kube-apiserver')))('an informer of a kube-apiserver that was restored from a copy', () => {
  it.each([
    ['as it is', []],
    ['without streams and a watch cache', [WITHOUT_WATCH_LIST, withoutWatchCache('configmaps')]],
  ])(
    '%s: has what is there, and nothing else',
    async (_, flags) => {
      const server = await startApiServer({ flags });
      closing.push(() => server.stop());
      await server.create(PATH, { metadata: { name: 'kept' } });
      const copy = await server.restartWithData();
      const source = createListWatcher<KubernetesObject>(`${server.url}${PATH}`, {
        fetch: (url, init) => server.fetch(url, init as never),
      });
      const failures: string[] = [];
      const informer = new Informer(source, {
        minMs: 50,
        maxMs: 500,
        onError: (error, { kind }) => failures.push(`${kind} ${error}`),
      });
      closing.push(() => informer.stop());
      void informer.run();
      await server.create(PATH, { metadata: { name: 'lost' } });
      for (let n = 0; n < WRITES; n++) await server.patch(`${PATH}/lost`, { data: { n: String(n) } });
      await eventually(() => expect(informer.store.get('default/lost')).toMatchObject({ data: { n: String(WRITES - 1) } }));
      const { resourceVersion } = informer;
      await server.restartWithData(copy);
      await server.create(PATH, { metadata: { name: 'new' } });
      const { items, metadata } = await server.get(PATH);
      expect(Number(metadata.resourceVersion)).toBeLessThan(Number(resourceVersion));
      await eventually(() => expect(versionsOf(informer.store.list())).toEqual(versionsOf(items)));
      await server.create(PATH, { metadata: { name: 'newer' } });
      await eventually(() => expect(informer.store.get('default/newer')).toBeDefined());
      expect(failures.filter((failure) => failure.startsWith('expired'))).not.toEqual([]);
    },
    180_000,
  );
});
