// A large object whose JSON memory has let go: answers and watches write it in pieces, and for all of its watches once.
import { describe, expect, onTestFinished, test } from 'vitest';
import { CONFIG_MAPS, type ResourceDefinition } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { dropEncoded } from '../../src/storage/values.ts';
import { rig } from './apiserver-rig.ts';
import { countingJson, STRETCH } from './large-objects.ts';

const WIDGETS = ['v1', 'v2'].map(
  (version): ResourceDefinition => ({ group: 'example.com', version, plural: 'widgets', kind: 'Widget' }),
);
const PATH = '/apis/example.com/v1/namespaces/default/widgets';
const OTHER_PATH = PATH.replace('v1', 'v2');
const MAPS_PATH = '/api/v1/namespaces/default/configmaps';
const as = (kind: string): string => `application/json;as=${kind};v=v1;g=meta.k8s.io`;
const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const EVENTS = 'text/event-stream';

const record = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`k${n}`, 'x'.repeat(30)]));

/** A server with a large widget, a large ConfigMap, and a small one of each behind it. */
async function open() {
  const { server, storage, call } = rig({ resources: [...WIDGETS, CONFIG_MAPS as ResourceDefinition] });
  onTestFinished(() => server.shutdown());
  const { resourceVersion } = await storage.list();
  for (const [path, content] of [
    [PATH, { spec: record }],
    [MAPS_PATH, { data: record }],
  ] as const) {
    expect((await call('POST', `${path}?fieldManager=me`, { metadata: { name: 'big' }, ...content })).code).toBe(201);
    expect((await call('POST', path, { metadata: { name: 'small' } })).code).toBe(201);
  }
  const stored = async (key: string): Promise<KubernetesObject> => (await storage.get(`${key}/default/big`)) as KubernetesObject;
  const all = [await stored('example.com/widgets'), await stored('core/configmaps')];
  const size = JSON.stringify(all[0]).length;
  for (const each of all) dropEncoded(each);
  const counts = countingJson();
  /** The text of an answer until it has both objects, or ends. */
  const answer = async (path: string, accept: string): Promise<string> => {
    const abort = new AbortController();
    const init = { headers: { accept }, signal: abort.signal };
    const { body } = await server.fetch(new Request(`http://127.0.0.1${path}`, init));
    const utf8 = new TextDecoder();
    let text = '';
    for (const reader = (body as ReadableStream<Uint8Array>).getReader(); ; ) {
      const { done, value } = await reader.read();
      text += utf8.decode(value, { stream: true });
      if (!done && !text.includes('small')) continue;
      if (!done) await reader.cancel();
      return text;
    }
  };
  return { answer, counts, resourceVersion, size };
}

const FORMS: readonly (readonly [string, string, string])[] = [
  ['as it is', PATH, '*/*'],
  ['in another version', OTHER_PATH, '*/*'],
  ['as Server-Sent Events', PATH, EVENTS],
  ['as a table with it', `${PATH}?includeObject=Object`, as('Table')],
  ['as a table', PATH, as('Table')],
  ['without its content', PATH, as('PartialObjectMetadata')],
  ['in protobuf', MAPS_PATH, PROTOBUF],
];

describe.each(FORMS)('%s', (_name, path, accept) => {
  const query = path.includes('?') ? '&' : '?';

  test.each(['from a version on', 'from its state on'])('it is watched in pieces, in its order, %s', async (from) => {
    const { answer, counts, resourceVersion } = await open();
    const text = await answer(
      `${path}${query}watch=1${from.includes('version') ? `&resourceVersion=${resourceVersion}` : ''}`,
      accept,
    );
    expect(counts.longest).toBeLessThan(STRETCH);
    expect(text.indexOf('big')).toBeGreaterThan(0);
    expect(text.indexOf('big')).toBeLessThan(text.lastIndexOf('small'));
    if (accept !== EVENTS && accept !== PROTOBUF) {
      const [first, second] = text.split('\n').map((line) => line && JSON.parse(line));
      expect([first, second].map((event) => event?.type)).toEqual(['ADDED', 'ADDED']);
      const [shown] = first.object.rows?.map(({ object }: { object: object }) => object) ?? [first.object];
      expect(shown.metadata.name).toBe('big');
      if (accept === '*/*' || path.includes('Object')) expect(shown.spec).toEqual(record);
    }
  });
});

test.each([...FORMS.filter(([, , accept]) => accept !== EVENTS), ['in YAML', PATH, 'application/yaml'] as const])(
  '%s, it is read in pieces',
  async (_name, path, accept) => {
    const { answer, counts } = await open();
    expect(await answer(path.replace('?', '/big?').replace(/s$/, 's/big'), accept)).toContain('big');
    expect(await answer(path, accept.replace('PartialObjectMetadata', 'PartialObjectMetadataList'))).toContain('big');
    expect(counts.longest).toBeLessThan(STRETCH);
  },
);

test.each([
  ['as it is', PATH, 1],
  ['in two versions', OTHER_PATH, 2],
])('for fifty watches with selectors of their own, it is written once for each form: %s', async (_name, other, forms) => {
  const { answer, counts, resourceVersion, size } = await open();
  const texts = await Promise.all(
    Array.from({ length: 50 }, (_, at) =>
      answer(`${at % 2 ? PATH : other}?watch=1&resourceVersion=${resourceVersion}&labelSelector=a!=${at % 10}`, '*/*'),
    ),
  );
  expect(counts.total).toBeLessThan((forms + 0.5) * size);
  expect(counts.longest).toBeLessThan(STRETCH);
  expect(new Set(texts).size).toBe(forms);
});
