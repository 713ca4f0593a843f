// Server-side apply by the scenarios of upstream's own tests (structured-merge-diff's merge, apimachinery's managedfields). Random ones
// are compared with upstream itself in test/peers/apply.test.ts.
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { FieldManager, type FieldManagerOptions, type Json } from '../../src/apply/field-manager.ts';
import { difference, fromFields, isNothing, isSame, NO_FIELDS, setOf, toFields } from '../../src/apply/field-set.ts';
import { ApplyConflict, applyConfiguration, extractManaged } from '../../src/apply/index.ts';
import { StoredParts } from '../../src/apply/quick.ts';
import { checkType, compared, fieldsOf, merged, reconciled, withNamed, without } from '../../src/apply/typed.ts';
import { beginOperation, kindType, MapType } from '../../src/apply/types.ts';
import { atOnce, STRIDE, type Work } from '../../src/watch/fair-queue.ts';
import { runs } from '../runs.ts';

const apiVersion = 'example.com/v1';
const text = { type: 'string' };
const set = { type: 'array', items: text, 'x-kubernetes-list-type': 'set' };
const listOf = (properties: object, ...keys: string[]): object => ({
  ...{ type: 'array', items: { type: 'object', properties } },
  ...{ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys },
});
const schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        name: text,
        count: { type: 'integer' },
        set,
        atomic: { type: 'array', items: text },
        list: listOf({ key: text, value: text, set }, 'key'),
        ports: listOf({ port: { type: 'integer' }, protocol: { ...text, default: 'TCP' }, name: text }, 'port', 'protocol'),
        map: { type: 'object', additionalProperties: text },
        whole: { type: 'object', additionalProperties: text, 'x-kubernetes-map-type': 'atomic' },
      },
    },
    status: { type: 'object', properties: { phase: text } },
  },
};

/** An object with its writes, one second after the other. */
class Scene {
  live: Json | undefined;
  #seconds: number = 0;
  #manager: FieldManager;

  constructor(options: Partial<FieldManagerOptions> = {}) {
    this.#manager = new FieldManager({ schema, apiVersion, ...options });
  }

  become(options: Partial<FieldManagerOptions>): this {
    this.#manager = new FieldManager({ schema, apiVersion, ...options });
    return this;
  }

  apply(manager: string, spec: object | undefined, { force = false, more = {} }: { force?: boolean; more?: Json } = {}): this {
    return this.#stored(this.#manager.applied(this.live, { ...thing(spec), ...more }, { ...this.#by(manager), force }));
  }

  update(manager: string, spec: object, { metadata = {}, more = {} }: { metadata?: Json; more?: Json } = {}): this {
    const uid = this.live ? { uid: '1' } : {};
    const sent = { ...thing(spec), ...more, metadata: { name: 'a', ...uid, ...metadata } };
    return this.#stored(this.#manager.updated(this.live, sent, this.#by(manager)));
  }

  #stored(work: Work<Json>): this {
    const stored = atOnce(work);
    this.live = { ...stored, metadata: { ...(stored.metadata as Json), uid: '1' } };
    return this;
  }

  get metadata(): Json {
    return this.live?.metadata as Json;
  }

  get spec(): unknown {
    return this.live?.spec;
  }

  /** What each owner has of the spec. */
  get owners(): Readonly<Record<string, unknown>> {
    const { managedFields = [] } = this.metadata as { managedFields?: readonly Json[] };
    return Object.fromEntries(
      managedFields.map(({ manager, operation, fieldsV1 }) => [`${manager} ${operation}`, (fieldsV1 as Json)['f:spec']]),
    );
  }

  #by(manager: string): { manager: string; subresource: string; apiVersion: string; time: string } {
    const time = `2026-01-01T00:00:${String(this.#seconds++).padStart(2, '0')}Z`;
    return { manager, subresource: '', apiVersion, time };
  }
}

const thing = (spec: object | undefined): Json => ({ apiVersion, kind: 'Thing', metadata: { name: 'a' }, ...(spec && { spec }) });

/** An error with exactly this message. */
const saying = (message: string): object => expect.objectContaining({ message });

function conflictsOf(act: () => unknown): readonly string[] {
  try {
    act();
  } catch (error) {
    if (error instanceof ApplyConflict) return error.conflicts.map(({ manager, field }) => `${manager} ${field}`);
    throw error;
  }
  return [];
}

describe('several appliers', () => {
  it('share what they agree on, and keep what only one gives up', () => {
    const scene = new Scene().apply('one', { name: 'x', count: 1 }).apply('two', { name: 'x' }).apply('one', { count: 1 });
    expect(scene.spec).toEqual({ name: 'x', count: 1 });
    expect(scene.apply('two', {}).spec).toEqual({ count: 1 });
    expect(scene.owners).toEqual({ 'one Apply': { 'f:count': {} }, 'two Apply': {} });
  });

  it('conflict where they differ, and one takes over by force', () => {
    const scene = new Scene().apply('one', { name: 'x', list: [{ key: 'a', value: '1' }] });
    const other = { name: 'y', list: [{ key: 'a', value: '2' }] };
    expect(conflictsOf(() => scene.apply('two', other))).toEqual(['"one" .spec.name', '"one" .spec.list[key="a"].value']);
    expect(scene.apply('two', other, { force: true }).spec).toEqual(other);
    expect(scene.owners['one Apply']).toEqual({ 'f:list': { 'k:{"key":"a"}': { '.': {}, 'f:key': {} } } });
  });

  it('say who owns a field in words', () => {
    const scene = new Scene().update('ctl', { name: 'x', count: 2 });
    const act = (): unknown => scene.apply('one', { name: 'y', count: 3 });
    const by = '"ctl" using example.com/v1';
    expect(act).toThrow(saying(`Apply failed with 2 conflicts: conflicts with ${by}:\n- .spec.count\n- .spec.name`));
    expect(() => scene.apply('one', { name: 'y' })).toThrow(
      saying(`Apply failed with 1 conflict: conflict with ${by}: .spec.name`),
    );
  });

  it('are told within bounds, however many conflicts there are, and however long their paths', () => {
    const wide = (value: number, from: number, to: number): Json => ({
      ['x'.repeat(100_000)]: Object.fromEntries(Array.from({ length: to - from }, (_, at) => [`f${from + at}`, value])),
    });
    const scene = new Scene({ schema: undefined }).apply('three', wide(1, 60, 199)).apply('one', wide(1, 0, 60));
    try {
      scene.apply('two', wide(2, 0, 199));
      expect.unreachable();
    } catch (error) {
      const { conflicts, more, message } = error as ApplyConflict;
      expect([conflicts.length, more]).toEqual([100, 99]);
      for (const at of [0, 60])
        expect(conflicts[at]).toEqual({ manager: at < 60 ? '"one"' : '"three"', field: `.spec.${'x'.repeat(250)}...` });
      expect(message).toMatch(/^Apply failed with 199 conflicts: conflicts with "one":\n.*\nand 99 more$/s);
      expect(message.length).toBeLessThan(30_000);
    }
  });
});

describe('lists and maps', () => {
  it('merges sets, and removes the items that an applier gives up', () => {
    const scene = new Scene().apply('one', { set: ['a', 'b'] }).apply('two', { set: ['b', 'c'] });
    expect(scene.spec).toEqual({ set: ['a', 'b', 'c'] });
    expect(scene.apply('one', { set: [] }).spec).toEqual({ set: ['b', 'c'] });
    expect(scene.apply('two', undefined).spec).toBeUndefined();
  });

  it('merges items by their keys, in the order of the applier', () => {
    const [a, b, c] = [{ key: 'a', value: '1' }, { key: 'b', value: '2' }, { key: 'c' }];
    const scene = new Scene().apply('one', { list: [a, b] }).apply('two', { list: [c, { key: 'a' }] });
    expect(scene.spec).toEqual({ list: [c, a, b] });
    expect(scene.apply('one', { list: [b] }).spec).toEqual({ list: [c, { key: 'a' }, b] });
    expect(scene.apply('two', { list: [c, { key: 'a', value: '3' }, b] }).spec).toEqual({
      list: [c, { key: 'a', value: '3' }, b],
    });
  });

  it('gives a key that is missing its default', () => {
    const scene = new Scene().apply('one', { ports: [{ port: 80, name: 'x' }] });
    scene.apply('two', {
      ports: [
        { port: 80, protocol: 'TCP' },
        { port: 80, protocol: 'UDP' },
      ],
    });
    expect(scene.spec).toEqual({
      ports: [
        { port: 80, name: 'x', protocol: 'TCP' },
        { port: 80, protocol: 'UDP' },
      ],
    });
    expect(Object.keys((scene.owners['one Apply'] as Json)['f:ports'] as Json)).toEqual(['k:{"port":80,"protocol":"TCP"}']);
  });

  it('owns atomic lists and maps as a whole', () => {
    const scene = new Scene().apply('one', { atomic: ['a'], whole: { a: 'x' } });
    expect(scene.owners['one Apply']).toEqual({ 'f:atomic': {}, 'f:whole': {} });
    expect(conflictsOf(() => scene.apply('two', { atomic: ['a', 'b'] }))).toEqual(['"one" .spec.atomic']);
    expect(scene.apply('two', { whole: { b: 'y' } }, { force: true }).spec).toEqual({ atomic: ['a'], whole: { b: 'y' } });
  });

  it('refuses items that occur twice, and survives those that are there', () => {
    const scene = new Scene().update('ctl', { set: ['a', 'a'] });
    expect(() => scene.apply('one', { set: ['b', 'b'] })).toThrow('.spec.set: duplicate entries for key [="b"]');
    expect(scene.apply('one', { set: ['b'] }).spec).toEqual({ set: ['a', 'a', 'b'] });
    scene.update('two', { set: ['a', 'b'] }).update('three', { set: ['a', 'a', 'b'] });
    expect(scene.owners['three Update']).toEqual({ 'f:set': { 'v:"a"': {} } });
    expect(() => extractManaged(scene.live as Json, 'one', { schema })).toThrow('duplicate entries for key [="a"]');
  });
});

describe('updates', () => {
  it('take what they change from others, and nothing else', () => {
    const scene = new Scene().apply('one', { name: 'x', count: 1, map: { a: 'x' } });
    scene.update('ctl', { name: 'y', count: 1, map: { b: 'z' } });
    expect(scene.owners).toEqual({ 'one Apply': { 'f:count': {} }, 'ctl Update': { 'f:name': {}, 'f:map': { 'f:b': {} } } });
  });

  it('leave owners alone if nothing changes', () => {
    const scene = new Scene().apply('one', { name: 'x' });
    const before = scene.metadata;
    expect(scene.update('ctl', { name: 'x' }).metadata).toEqual(before);
  });

  it.each([[[]], [[{}]]])('forget all owners with %j', (managedFields) => {
    const scene = new Scene().apply('one', { name: 'x' }).update('ctl', { name: 'y' }, { metadata: { managedFields } });
    expect(scene.owners).toEqual({});
    expect(scene.update('ctl', { name: 'z' }).owners).toEqual({});
    expect(scene.apply('one', { count: 1 }).owners).toEqual({
      'one Apply': { 'f:count': {} },
      'before-first-apply Update': { '.': {}, 'f:name': {} },
    });
  });

  it('have at most ten owners, of which the oldest become one', () => {
    const scene = new Scene();
    const map: Record<string, string> = {};
    for (let at = 0; at < 13; at++) scene.update(`m${at}`, { map: { ...Object.assign(map, { [`k${at}`]: 'x' }) } });
    expect(Object.keys(scene.owners)).toHaveLength(10);
    const ancient = (scene.owners['ancient-changes Update'] as Json)['f:map'] as Json;
    expect(Object.keys(ancient)).toEqual(['.', 'f:k0', 'f:k1', 'f:k2', 'f:k3']);
  });

  it('keep owners of an object that is not of its type', () => {
    const scene = new Scene().apply('one', { name: 'x' });
    expect(scene.update('ctl', { name: 5 }).owners).toEqual({ 'one Apply': { 'f:name': {} } });
  });
});

describe('the schema', () => {
  it('may become atomic, which joins the owners of parts', () => {
    const scene = new Scene().apply('one', { map: { a: 'x' } });
    const { spec } = schema.properties;
    const atomic = { ...spec.properties, map: { ...spec.properties.map, 'x-kubernetes-map-type': 'atomic' } };
    scene.become({ schema: { type: 'object', properties: { spec: { ...spec, properties: atomic } } } });
    expect(conflictsOf(() => scene.apply('two', { map: { b: 'y' } }))).toEqual(['"one" .spec.map']);
  });

  it('refuses what it does not know, with words', () => {
    const message =
      'failed to create typed patch object (/a; example.com/v1, Kind=Thing): .spec.other: field not declared in schema';
    expect(() => new Scene().apply('one', { other: 1 })).toThrow(
      expect.objectContaining({ code: 'REFUSED', status: expect.objectContaining({ code: 400, reason: 'BadRequest', message }) }),
    );
  });

  it('allows sets and maps of so many items only', () => {
    const items = (count: number): readonly string[] => Array.from({ length: count }, (_, at) => `${at}`);
    expect(() => new Scene().apply('one', { set: items(50_001) })).toThrow(
      '.spec.set: Too many: 50001: must have at most 50000 items',
    );
    const scene = new Scene().apply('one', { name: 'x', atomic: items(50_001) });
    expect(scene.update('ctl', { name: 'y', set: items(50_001) }).owners).toEqual({
      'one Apply': { 'f:atomic': {}, 'f:name': {} },
    });
    expect(new Scene().apply('one', { set: items(50_000) }).owners['one Apply']).toBeDefined();
  });

  it('tells mistakes within bounds, however long their paths and values are', () => {
    const name = 'x'.repeat(100_000);
    const wrong = Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`f${at}`, 1]));
    const map = { type: 'object', additionalProperties: text };
    const nested = { type: 'object', properties: { spec: { type: 'object', additionalProperties: map } } };
    const messageOf = (spec: object): string => {
      try {
        new Scene({ schema: nested }).apply('one', spec);
      } catch (error) {
        return (error as Error).message;
      }
      return '';
    };
    expect(messageOf({ [name]: wrong })).toContain(`\n  .spec.${'x'.repeat(250)}...: expected string, got`);
    expect(messageOf({ [name]: wrong }).length).toBeLessThan(50_000);
    expect(messageOf({ [name]: wrong }).match(/\n {2}/g)).toHaveLength(100);
    expect(messageOf({ a: { b: [[name], [name]] } }).length).toBeLessThan(2_000);
  });

  it('is deduced if there is none: lists are owned as a whole', () => {
    const scene = new Scene({ schema: undefined }).apply('one', { list: [{ key: 'a' }], map: { a: 'x' } });
    expect(scene.owners).toEqual({ 'one Apply': { 'f:list': {}, 'f:map': { '.': {}, 'f:a': {} }, '.': {} } });
  });

  it('is that of each version of the kind; owners of versions that are gone are forgotten', () => {
    const scene = new Scene().apply('one', { name: 'x' });
    const v2 = 'example.com/v2';
    scene.live = { ...(scene.live as Json), apiVersion: v2 };
    scene.become({ apiVersion: v2, versions: { [apiVersion]: schema } });
    expect(conflictsOf(() => scene.apply('two', { name: 'y' }, { more: { apiVersion: v2 } }))).toEqual(['"one" .spec.name']);
    expect(scene.become({ apiVersion: v2 }).apply('two', { name: 'y' }, { more: { apiVersion: v2 } }).spec).toEqual({
      name: 'y',
    });
  });
});

describe('a conversion', () => {
  const v2 = 'example.com/v2';
  const entry = { manager: 'other', operation: 'Update', apiVersion: v2, fieldsType: 'FieldsV1' };
  const metadata = { managedFields: [{ ...entry, fieldsV1: { 'f:spec': { 'f:name': {}, 'f:count': {} } } }] };
  const done = function* (object: Json): Work<Json> {
    yield;
    return object;
  };

  it('knows the kind, also of what there was before a create', () => {
    const convert = (object: Json, version: string): Work<Json> => {
      if (object.kind !== 'Thing') throw new Error('no kind');
      return done({ ...object, apiVersion: version });
    };
    const scene = new Scene({ versions: { [v2]: schema }, convert });
    expect(scene.update('ctl', { name: 'x' }, { metadata }).owners).toEqual({
      'other Update': { 'f:count': {} },
      'ctl Update': { '.': {}, 'f:name': {} },
    });
  });

  it('that fails is told by an apply, and leaves the owners of an update', () => {
    const scene = new Scene({ versions: { [v2]: schema } }).update('ctl', { name: 'x' }, { metadata });
    const { owners } = scene;
    const convert = (): never => {
      throw new Error('not today');
    };
    scene.become({ versions: { [v2]: schema }, convert });
    expect(() => scene.apply('one', { name: 'y' })).toThrow(saying('400 BadRequest: failed to convert object: not today'));
    expect(scene.update('ctl', { name: 'y', count: 2 }).owners).toEqual(owners);
  });
});

describe('client-side apply', () => {
  const last = 'kubectl.kubernetes.io/last-applied-configuration';
  const said = (spec: object): Json => ({ metadata: { name: 'a', annotations: { [last]: JSON.stringify(thing(spec)) } } });

  it('becomes server-side apply without a conflict, only for kubectl, and where the object still has what it said', () => {
    const scene = new Scene().update(
      'kubectl-client-side-apply',
      { name: 'x', count: 1 },
      { metadata: said({ name: 'x' }).metadata as Json },
    );
    expect(conflictsOf(() => scene.apply('other', { name: 'y' }))).toHaveLength(1);
    expect(conflictsOf(() => scene.apply('kubectl', { name: 'y', count: 2 }))).toEqual([
      '"kubectl-client-side-apply" using example.com/v1 .spec.count',
    ]);
    scene.apply('kubectl', { name: 'y' });
    const { annotations } = scene.metadata as { annotations: Json };
    expect(JSON.parse(annotations[last] as string)).toEqual(thing({ name: 'y' }));
  });

  it('conflicts with those who own what it did not say, even if it takes the rest', () => {
    const metadata = said({ name: 'x' }).metadata as Json;
    const scene = new Scene().update('before', { name: 'x', count: 1 }, { metadata });
    scene.update('other', { name: 'x', count: 2 }, { metadata });
    expect(conflictsOf(() => scene.apply('kubectl', { name: 'y', count: 3 }))).toEqual([
      '"other" using example.com/v1 .spec.count',
    ]);
  });
});

describe('the annotation of a client-side apply', () => {
  it('is updated while all annotations together have at most 262,144 bytes, and else removed', () => {
    const last = 'kubectl.kubernetes.io/last-applied-configuration';
    const applied = (chars: number): Json => {
      const annotations = { [last]: 'x', '\u00e9': '\u00e9' };
      const scene = new Scene().update('kubectl-client-side-apply', { count: 1 }, { metadata: { annotations } });
      return scene.apply('kubectl', { name: 'x'.repeat(chars) }).metadata.annotations as Json;
    };
    const most = 262_144 - Buffer.byteLength(`${last}${applied(0)[last]}\u00e9\u00e9`);
    expect(applied(most)[last]).toContain('x'.repeat(most));
    expect(applied(most + 1)).toEqual({ '\u00e9': '\u00e9' });
  });

  it.each([100, 50_000])('of %i levels leaves a conflict one', (levels) => {
    const annotation = `{"apiVersion":"${apiVersion}","spec":{"name":"x","deep":${'{"a":'.repeat(levels)}1${'}'.repeat(levels + 2)}`;
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': annotation };
    const scene = new Scene({ schema: undefined }).update('ctl', { name: 'x' }, { metadata: { annotations } });
    const conflicts = levels > 128 ? ['"ctl" using example.com/v1 .spec.name'] : [];
    scene.apply('other', { count: 1 });
    expect(conflictsOf(() => scene.apply('kubectl', { name: 'y' }))).toEqual(conflicts);
  });
});

describe('sets of fields', () => {
  const read = (fields: unknown): Json => atOnce(toFields(atOnce(fromFields(fields)).set));

  it('are written in one spelling and order, without what nobody knows', () => {
    const fields = {
      'k:{"b":1, "a":"<"}': { 'f:a': {} },
      'v:1.0': {},
      'i:02': {},
      'f:b': {},
      'f:a': { '.': {}, 'f:c': {} },
      'x:later': { 'f:a': {} },
    };
    expect(JSON.stringify(read(fields))).toBe(
      '{"f:a":{".":{},"f:c":{}},"f:b":{},"k:{\\"a\\":\\"\\\\u003c\\",\\"b\\":1}":{"f:a":{}},"v:1":{},"i:2":{}}',
    );
  });

  it('are ordered by their kinds, and within them as upstream orders names and values', () => {
    const elements = [
      ...['f:', 'f:B', 'f:a', 'f:aa', 'f:\uffff', 'f:\u{1f600}', 'f:\u{1f600}a'],
      ...['k:{}', 'k:{"a":2}', 'k:{"a":10}', 'k:{"a":10,"b":1}', 'k:{"a":"1"}', 'k:{"b":1}', 'k:{"b":true}'],
      ...['v:-1', 'v:2', 'v:10', 'v:"10"', 'v:"2"', 'v:false', 'v:true', 'v:[]', 'v:[1]', 'v:[1,"a"]', 'v:[2]'],
      ...['v:{}', 'v:{"a":1}', 'v:{"a":1,"b":0}', 'v:{"a":2}', 'v:{"b":1}', 'v:null', 'i:-1', 'i:2', 'i:10'],
    ];
    for (const order of [elements, [...elements].reverse()])
      expect(Object.keys(read(Object.fromEntries(order.map((each) => [each, {}]))))).toEqual(elements);
  });

  it('are bounded in number', () => {
    const fields = (count: number): Json => Object.fromEntries(Array.from({ length: count }, (_, at) => [`f:${at}`, {}]));
    expect(() => atOnce(fromFields({ 'f:a': fields(250_000) }))).toThrow('fieldsV1: expected at most 250000 fields');
    expect(atOnce(fromFields({ 'f:a': fields(249_999) })).size).toBe(250_000);
  });

  it.each([{ a: {} }, { '': {} }, { f: {} }, { 'k:[]': {} }, { 'v:{': {} }, { 'i:x': {} }, { 'f:a': 5 }, []])(
    'are refused as %j',
    (fields) => {
      expect(() => read(fields)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    },
  );

  it('are bounded in depth', () => {
    let fields: Json = {};
    for (let depth = 0; depth < 600; depth++) fields = { 'f:a': fields };
    expect(() => read(fields)).toThrow('at most 512 levels');
  });

  it('take time in proportion, however many owners there are', () => {
    const managedFields = Array.from({ length: 900 }, (_, owner) => {
      const fields = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`f:m${owner}-${at}`, {}]));
      return {
        ...{ manager: `m${owner}`, operation: 'Update', apiVersion, fieldsType: 'FieldsV1' },
        fieldsV1: { 'f:spec': fields },
      };
    });
    const by = { manager: 'm', subresource: '', apiVersion, time: '2026-01-01T00:00:00Z' };
    const sent = { ...thing({ 'm0-0': 1 }), metadata: { name: 'a', uid: '1', managedFields } };
    let steps = 0;
    const work = new FieldManager({ schema: undefined, apiVersion }).updated(sent, { ...sent, spec: { 'm0-0': 2 } }, by);
    for (let step = work.next(); ; step = work.next()) {
      steps++;
      if (!step.done) continue;
      expect((step.value.metadata as { managedFields: unknown[] }).managedFields).toHaveLength(10);
      break;
    }
    expect(steps * STRIDE).toBeLessThan(12 * 900 * 100);
  });

  it('are those of at most a thousand owners', () => {
    const entry = (manager: string): Json => ({
      manager,
      operation: 'Apply',
      apiVersion,
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:spec': { 'f:name': {} } },
    });
    const live = (count: number): Json => {
      const managedFields = Array.from({ length: count }, (_, at) => entry(`m${at}`));
      return { ...thing({ name: 'x' }), metadata: { name: 'a', uid: '1', managedFields } };
    };
    const apply = (count: number) => (): unknown =>
      applyConfiguration(live(count), thing({ name: 'x' }), { manager: 'one', schema });
    expect(apply(999)).not.toThrow();
    expect(apply(1_000)).toThrow('metadata.managedFields: Too many: 1001: must have at most 1000 items');
    expect(apply(1_001)).toThrow('expected at most 1000 entries');
  });

  it('are bounded in the length of an element, unless it is a field or a text', () => {
    const long = 'x'.repeat(8_192);
    const refused = [`k:{"a":"${long}"}`, `k:{"a":"${'<'.repeat(2_000)}"}`, `v:[${'{},'.repeat(3_000)}{}]`];
    for (const key of refused) expect(() => read({ [key]: {} })).toThrow('at most 8192 characters of an element');
    for (const key of [`f:${long}`, `v:"${long}"`]) expect(read({ [key]: {} })).toEqual({ [key]: {} });
    for (const key of [long, Array.from({ length: 8_192 }, () => ({}))]) {
      expect(() => new Scene().apply('one', { list: [{ key }] })).toThrow('keys are longer than 8192 characters');
    }
  });

  it('cannot reach a prototype', () => {
    const fields = JSON.parse('{"f:__proto__":{"f:polluted":{}}}') as Json;
    const config = JSON.parse(
      `{"apiVersion":"${apiVersion}","kind":"Thing","metadata":{"name":"a"},"__proto__":{"polluted":1}}`,
    ) as Json;
    expect(atOnce(isSame(atOnce(fromFields(fields)).set, atOnce(fromFields(read(fields))).set))).toBe(true);
    const live = applyConfiguration<Json>(undefined, config, { manager: 'one' });
    expect(Object.hasOwn(applyConfiguration(live, config, { manager: 'one' }), '__proto__')).toBe(true);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

describe('the functions', () => {
  it('apply, and give back what was applied', () => {
    const config = { ...thing({ list: [{ key: 'a', value: 'x' }] }) };
    const live = applyConfiguration<Json>(undefined, config, { manager: 'one', schema });
    const both = applyConfiguration(live, thing({ list: [{ key: 'b' }], count: 1 }), { manager: 'two', schema });
    expect(extractManaged(both, 'one', { schema })).toEqual(config);
    expect(extractManaged(both, 'nobody', { schema })).toBeUndefined();
    const status = { ...thing(undefined), status: { phase: 'Done' } };
    const all = applyConfiguration(both, status, { manager: 'one', schema, subresource: 'status' });
    expect(extractManaged(all, 'one', { schema })).toEqual(config);
    expect(extractManaged(all, 'one', { schema, subresource: 'status' })).toEqual(status);
  });

  it('own nothing that is undefined, as it is not in JSON', () => {
    const live = applyConfiguration<Json>(undefined, thing({ name: 'x', count: undefined }), { manager: 'one', schema });
    expect(Object.keys(live.spec as Json)).toEqual(['name']);
    expect(applyConfiguration(live, thing({ count: 5 }), { manager: 'two', schema }).spec).toEqual({ name: 'x', count: 5 });
    expect(extractManaged({ ...live, status: undefined }, 'one', { schema })).toEqual(thing({ name: 'x' }));
  });

  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;

  it.each<[string, () => unknown]>([
    ['config: Converting circular structure', () => applyConfiguration(undefined, thing(cycle), { manager: 'one' })],
    ['config.spec.count: expected a value', () => applyConfiguration(undefined, thing({ count: 1n }), { manager: 'one' })],
    ['live.spec.count: expected', () => applyConfiguration<Json>(thing({ count: 0 / 0 }), thing({}), { manager: 'one' })],
    ['object: Converting circular structure', () => extractManaged(thing(cycle), 'one')],
    ['config: expected an object', () => applyConfiguration(undefined, [], { manager: 'one' })],
    ['config.apiVersion: expected a string', () => applyConfiguration(undefined, {}, { manager: 'one' })],
    ['options.manager: expected a name', () => applyConfiguration(undefined, thing({}), { manager: '' })],
    [
      'options.time: expected a date',
      () => applyConfiguration(undefined, thing({}), { manager: 'a', time: new Date(Number.NaN) }),
    ],
    ['live.apiVersion: expected "example.com/v1"', () => applyConfiguration({ apiVersion: 'v2' }, thing({}), { manager: 'a' })],
    [
      'options.subresource: expected a string',
      () => applyConfiguration(undefined, thing({}), { manager: 'a', subresource: 5 as never }),
    ],
    ['options.schema: expected an object', () => applyConfiguration(undefined, thing({}), { manager: 'a', schema: [] as never })],
    ['unknown option forced', () => applyConfiguration(undefined, thing({}), { manager: 'a', forced: true } as never)],
    ['object: .spec.other: field not declared', () => extractManaged(thing({ other: 1 }), 'one', { schema })],
  ])('refuse %s', (message, act) => {
    expect(act).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) }));
  });
});

describe('what is looked at of stored objects at a stretch', () => {
  const many = Object.fromEntries(Array.from({ length: 17_000 }, (_, n) => [`n${n}`, n]));
  const { likened } = new StoredParts();

  it.each<[string, Json, Json]>([
    ['in what is there', { first: {}, ...many }, { first: {}, last: 1 }],
    ['in what is applied', { first: {}, last: 1 }, { first: {}, ...many }],
  ])('is no copy of an object because of a part of it: many members %s', (_, live, config) => {
    expect(likened(live, config)).toBe(config);
  });

  it('is as much of a large object as is looked at', () => {
    const make = (): object[][] => Array.from({ length: 200 }, () => Array.from({ length: 30 }, () => ({ a: 1 })));
    const [live, config] = [{ spec: { ...make() } }, { spec: { ...make() } }];
    const { spec } = likened(live, config) as typeof live;
    expect([spec[0] === live.spec[0], spec[199] === config.spec[199]]).toEqual([true, true]);
  });

  it('is what is the same in an object of few members, whatever their names', () => {
    const [live, config] = ['{"__proto__":{"a":1},"7":{},"b":[{}],"c":1}', '{"c":2,"__proto__":{"a":1},"7":{},"b":[{},1]}'].map(
      (each) => JSON.parse(each) as { b: object[] },
    ) as [{ b: object[] }, { b: object[] }];
    const made = likened(live, config) as { b: object[] };
    expect(JSON.stringify(made)).toBe(JSON.stringify(config));
    expect(Object.getOwnPropertyDescriptor(made, '__proto__')?.value).toBe(
      Object.getOwnPropertyDescriptor(live, '__proto__')?.value,
    );
    expect(made.b[0]).toBe(live.b[0]);
    expect(Object.getPrototypeOf(made)).toBe(Object.prototype);
  });

  it('is not looked at again, as too large, before it is done in pieces', () => {
    let listings = 0;
    const counted = new Proxy(many, {
      ownKeys(target) {
        listings++;
        return Reflect.ownKeys(target);
      },
    });
    atOnce(checkType({ map: new MapType({}, true) }, counted, true, { known: new StoredParts(), notes: true }));
    expect(listings).toBe(2);
  });
});

describe('what is there already is not looked at again, part by part', () => {
  const from = (count: number, make: (at: number) => readonly [string, unknown]): Json =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => make(at)));
  const list = Array.from({ length: 1_200 }, (_, at) => `n${at}`);
  const map = { type: 'object', additionalProperties: text };
  const kinds: readonly [string, object, unknown][] = [
    ['members', { type: 'object', properties: from(1_200, (at) => [`n${at}`, text]) }, from(1_200, (at) => [`n${at}`, 'x'])],
    ['other members', map, from(1_200, (at) => [`n${at}`, 'x'])],
    ['members of any type', { 'x-kubernetes-preserve-unknown-fields': true }, from(400, (at) => [`n${at}`, { a: [1], b: {} }])],
    [
      'members without any',
      { type: 'object', properties: from(1_200, (at) => [`n${at}`, map]) },
      from(1_200, (at) => [`n${at}`, {}]),
    ],
    ['values', set, list],
    ['values owned as a whole', { type: 'object', additionalProperties: { type: 'array', items: text } }, { list: [...list] }],
    [
      'items',
      listOf({ key: text, map, list: { type: 'array' } }, 'key'),
      list.slice(0, 200).map((key) => ({ key, map: { key } })),
    ],
  ];

  it.each(kinds)('%s', (_, part, value) => {
    const properties = {
      spec: { type: 'object', properties: { value: part } },
      status: { type: 'object', properties: { part } },
    };
    const [stored, reset] = [new StoredParts(), () => ['status']];
    const manager = new FieldManager({ schema: { type: 'object', properties }, apiVersion, stored, reset });
    const metadata = { name: 'a', labels: { a: 'b' }, finalizers: ['a/b'], ownerReferences: [{ uid: '1' }] };
    const by = { manager: 'one', subresource: '', apiVersion, force: false };
    let live: Json | undefined;
    const countSteps = (work: Work<Json>): number => {
      for (let steps = 1; ; steps++) {
        const { done, value: next } = work.next();
        if (!done) continue;
        live = next;
        return steps;
      }
    };
    const apply = (time: string): number => {
      const config = { apiVersion, kind: 'Thing', metadata, spec: { value }, status: { part: value } };
      return countSteps(manager.applied(live, structuredClone(config), { ...by, time }));
    };
    const steps = ['2026-01-01T00:00:00Z', '2026-01-01T00:00:01Z', '2026-01-01T00:00:02Z'].map(apply);
    // A pass over all parts is four steps or more; one step more is chance, as steps are counted on from elsewhere.
    expect(steps[2]).toBeLessThanOrEqual(3);
    const sent = { ...live, metadata: { ...metadata, uid: '1', labels: { a: 'b', c: 'd' } } };
    const updated = manager.updated(live, sent, { ...by, manager: 'two', time: '2026-01-01T00:00:03Z' });
    expect(countSteps(updated)).toBeLessThanOrEqual(2);
    expect((live as { metadata: { managedFields: Json[] } }).metadata.managedFields[1]).toMatchObject({ manager: 'two' });
  });
});

test('what a manager knows of stored objects changes nothing: large ones, applied again and again by two', () => {
  const item = fc.record({ name: fc.constantFrom('a', 'b', 'c'), values: fc.array(fc.nat(1), { minLength: 12, maxLength: 13 }) });
  const config = fc.record(
    {
      items: fc.uniqueArray(item, { selector: ({ name }) => name, maxLength: 3 }),
      more: fc.dictionary(fc.constantFrom('x', 'y'), fc.array(fc.nat(1), { minLength: 40, maxLength: 41 }), { maxKeys: 2 }),
    },
    { requiredKeys: [] },
  );
  const numbers = { type: 'object', additionalProperties: { type: 'integer' } };
  const listed = { type: 'object', properties: { name: { type: 'string' }, values: numbers } };
  const spec = {
    ...{
      type: 'object',
      properties: {
        items: { type: 'array', items: listed, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
      },
    },
    additionalProperties: { type: 'object', additionalProperties: numbers },
  };
  const large: Json = { type: 'object', properties: { spec } };
  const steps = fc.array(fc.record({ manager: fc.constantFrom('one', 'two'), config }), { minLength: 2, maxLength: 8 });
  const property = fc.property(steps, fc.boolean(), (all, hasSchema) => {
    const make = (stored?: StoredParts): FieldManager =>
      new FieldManager({ schema: hasSchema ? large : undefined, apiVersion, stored });
    const kept = make(new StoredParts());
    let [live, fresh]: (Json | undefined)[] = [];
    for (const [at, { manager, config: asked }] of all.entries()) {
      const members = (values: readonly number[]): object => Object.fromEntries(values.map((value, n) => [`n${n}`, value]));
      const items = asked.items?.map(({ name, values }) => ({ name, values: members(values) }));
      const more = Object.entries(asked.more ?? {}).map(([name, values]) => [name, { deep: members(values) }]);
      const sent = {
        apiVersion,
        kind: 'Thing',
        metadata: { name: 'a' },
        spec: { ...(items && { items }), ...Object.fromEntries(more) },
      };
      const by = { manager, subresource: '', apiVersion, time: `2026-01-01T00:00:${10 + at}Z`, force: true };
      live = atOnce(kept.applied(live, sent, by));
      fresh = atOnce(make().applied(fresh && structuredClone(fresh), structuredClone(sent), by));
      expect(live).toEqual(fresh);
    }
  });
  fc.assert(property, { numRuns: runs(300) });
});

describe('by type', () => {
  const type = kindType(schema);
  const PASSES = 40;
  const names = Array.from({ length: PASSES * STRIDE }, (_, at) => `n${at}`);
  const spec = (member: string, value: unknown): Json => ({ spec: { [member]: value } });
  const mapOf = (value: unknown): Json => spec('map', Object.fromEntries(names.map((name) => [name, value])));
  const deep = Object.fromEntries(names.map((name) => [`f:${name}`, { 'f:a': {} }]));
  const items = (value: string): Json =>
    spec(
      'list',
      names.map((key) => ({ key, value })),
    );
  const mapFields = atOnce(fieldsOf(type, mapOf('x')));
  const setFields = atOnce(fieldsOf(type, spec('set', names)));
  const deepFields = atOnce(fromFields({ 'f:spec': { 'f:map': deep } })).set;
  const nested = { type: 'object', additionalProperties: { type: 'object', additionalProperties: text } };
  const deepType = kindType({ properties: { spec: { type: 'object', properties: { map: nested } } } });

  it.each<[string, number, () => Work<unknown>]>([
    ['the check of members', 1, () => checkType(type, mapOf('x'), false)],
    ['the check of items', 1, () => checkType(type, spec('set', names), false)],
    ['the check of items owned as a whole', 1, () => checkType(type, spec('atomic', names), false)],
    ['the fields of members', 1, () => fieldsOf(type, mapOf('x'))],
    ['the fields of items', 1, () => fieldsOf(type, spec('set', names))],
    ['a comparison of members that only one has', 1, () => compared(type, mapOf('x'), spec('map', {}))],
    ['a comparison of members that only the other one has', 1, () => compared(type, spec('map', {}), mapOf('x'))],
    ['a comparison of members', 2, () => compared(type, mapOf('x'), mapOf('y'))],
    ['a comparison of items that only one has', 2, () => compared(type, spec('set', names), spec('set', []))],
    ['a comparison of items that only the other one has', 2, () => compared(type, spec('set', []), spec('set', names))],
    ['a comparison of items', 4, () => compared(type, spec('set', names), spec('set', [...names]))],
    ['a merge of members', 1, () => merged(type, mapOf('x'), mapOf('y'))],
    ['a merge of items in the same order', 1, () => merged(type, spec('set', names), spec('set', [...names]))],
    ['a merge of items in another order', 4, () => merged(type, spec('set', names), spec('set', [...names].reverse()))],
    ['a value without members', 1, () => without(type, mapOf('x'), mapFields)],
    ['a value with only some members', 1, () => without(type, mapOf('x'), mapFields, true)],
    ['a value without items', 1, () => without(type, spec('set', names), setFields)],
    ['a set of fields and their owners', 1, () => withNamed(type, mapFields)],
    ['a set of fields for a new schema', 1, () => reconciled(deepType, deepFields)],
  ])('%s is done in pieces, with as many steps as it has parts: %i times', (_, times, make) => {
    beginOperation();
    const work = make();
    let steps = 0;
    while (!work.next().done) steps++;
    // What is above the parts may add one.
    expect([times * PASSES, times * PASSES + 1]).toContain(steps);
  });

  it.each<[unknown, unknown, { added?: string; modified?: string; removed?: string }]>([
    [{ name: 'x' }, { name: 'y' }, { modified: 'f:name' }],
    [{}, { name: 'y' }, { added: 'f:name' }],
    [{ name: 'x' }, {}, { removed: 'f:name' }],
    [{ atomic: ['a'] }, { atomic: ['b'] }, { modified: 'f:atomic' }],
    [{}, { atomic: ['b'] }, { added: 'f:atomic' }],
    [{ whole: { a: 'x' } }, {}, { removed: 'f:whole' }],
  ])('%j and %j differ in one way only: %j', (one, other, wanted) => {
    beginOperation();
    const with_ = (spec: unknown): Json => ({ spec: { count: 1, ...(spec as Json) } });
    const { added, modified, removed } = atOnce(compared(type, with_(one), with_(other)));
    const fields = Object.entries({ added, modified, removed }).map(([name, set]) => [name, atOnce(toFields(set))]);
    const no = { added: {}, modified: {}, removed: {} };
    const expected = Object.entries(wanted).map(([name, element]) => [name, { 'f:spec': { [element]: {} } }]);
    expect(Object.fromEntries(fields)).toEqual({ ...no, ...Object.fromEntries(expected) });
  });

  it('each item of a long list is read once', () => {
    let reads = 0;
    const items = new Proxy(names, {
      get(target, name, receiver) {
        if (/^\d+$/.test(String(name))) reads++;
        return Reflect.get(target, name, receiver);
      },
    });
    atOnce(checkType(type, spec('atomic', items), false));
    expect(reads).toBe(names.length);
  });

  it('whether a list has items is told without listing them', () => {
    const unlisted = (items: readonly number[]): object =>
      new Proxy(items, { ownKeys: () => expect.unreachable('all indices are listed') });
    expect([[], [1]].map((each) => isNothing(unlisted(each)))).toEqual([true, false]);
  });

  it('what is the same stays the same, and a merge copies only what it changes', () => {
    beginOperation();
    const live: Json = { ...items('x'), status: { phase: 'x' } };
    expect(atOnce(merged(type, live, structuredClone(live)))).toBe(live);
    expect(atOnce(merged(type, live, spec('list', [{ key: 'n1', value: 'x' }])))).toBe(live);
    const next = atOnce(merged(type, live, spec('list', [{ key: 'n1', value: 'y' }]))) as {
      spec: { list: object[] };
      status: object;
    };
    expect(next.status).toBe(live.status);
    expect(next.spec.list.map((each, at) => each === (live.spec as { list: object[] }).list[at]).filter((is) => !is)).toEqual([
      false,
    ]);
    const fields = atOnce(fromFields({ 'f:spec': { 'f:name': {}, 'f:map': { '.': {}, 'f:a': {} } } })).set;
    expect(atOnce(reconciled(type, fields))).toBe(fields);
  });

  it('parts of stored values with more than 16 values are known, and not looked at again', () => {
    const stored = (): StoredParts => new StoredParts();
    const part = (count: number, value: unknown = 'x'): Json =>
      Object.fromEntries(names.slice(0, count).map((name) => [name, value]));
    const note = (map: Json, known: StoredParts, notes?: boolean): void =>
      atOnce(checkType(type, spec('map', map), false, { known, ...(notes !== undefined && { notes }) }));
    const mapType = type.map?.field('spec')?.type.map?.field('map')?.type;
    for (const [count, notes, isKnown] of [
      [17, true, true],
      [16, true, false],
      [17, false, false],
      [17, undefined, false],
    ] as const) {
      const [map, known] = [part(count), stored()];
      note(map, known, notes);
      expect([count, notes, known.types.get(map) === mapType]).toEqual([count, notes, isKnown]);
    }
    const [wrong, known] = [part(17, 5), stored()];
    expect(() => note(wrong, known, true)).toThrow(/^errors:\n {2}\.spec\.map\.n0: expected string/);
    expect(known.types.get(wrong)).toBeUndefined();
    known.types.set(wrong, mapType as never);
    expect(() => note(wrong, known)).not.toThrow();
    expect(() => atOnce(checkType(type, spec('map', wrong), false))).toThrow('expected string');
  });

  it('items that occur twice are tolerated in what is stored, but not known', () => {
    const [twice, known] = [Array.from({ length: 20 }, () => 'a'), new StoredParts()];
    atOnce(checkType(type, spec('set', twice), true, { known, notes: true }));
    expect(known.types.get(twice)).toBeUndefined();
    expect(() => atOnce(checkType(type, spec('set', twice), false, { known, notes: true }))).toThrow('duplicate entries');
  });
});

describe('whether a value has just these fields is told quickly', () => {
  const type = kindType({
    properties: { ...schema.properties, any: { 'x-kubernetes-preserve-unknown-fields': true } },
  });
  const values: readonly Json[] = [
    ...[null, {}, { name: 'x' }, { name: null }, { name: 'x', count: 1 }, { map: null }, { map: {} }].map((spec) => ({ spec })),
    ...[{ map: { a: 'x' } }, { map: { a: 'x', b: 'y' } }, { whole: {} }, { whole: { a: 'x' } }].map((spec) => ({ spec })),
    ...[{ atomic: [] }, { atomic: ['a'] }, { set: [] }, { set: ['a'] }, { set: ['a', 'b'] }].map((spec) => ({ spec })),
    ...[[], [{ key: 'a' }], [{ key: 'a', value: 'x' }], [{ key: 'a', set: [] }], [{ key: 'a', set: ['a'] }]].map((list) => ({
      spec: { list },
    })),
    ...[{}, { name: 'a' }, { labels: {} }, { labels: { a: 'b' } }, { name: 'a', labels: { a: 'b' } }].map((metadata) => ({
      metadata,
    })),
    ...[{ status: {} }, { status: { phase: 'x' } }, { spec: { name: 'x' }, status: { phase: 'x' } }, {}],
    ...[
      { name: 'x', set: [] },
      { name: 'x', list: [] },
      { name: 'x', map: {} },
    ].map((spec) => ({ spec })),
    ...[null, 5, {}, [], [{}], { a: {} }, { a: { b: 1 } }, { a: [1] }, { a: null }].map((any) => ({ any })),
  ];
  const terms = [NO_FIELDS, setOf(['f:spec']), setOf(['f:metadata'], ['f:metadata', 'f:name']), setOf(['f:spec', 'f:map'])];
  const aparts = [NO_FIELDS, setOf(['f:status']), setOf(['f:spec'], ['f:status'])];
  const ownedOf = (value: unknown, but: typeof NO_FIELDS, apart: typeof NO_FIELDS): Json =>
    atOnce(toFields(atOnce(difference(atOnce(difference(atOnce(fieldsOf(type, value)), apart, true)), but))));

  it('as they are computed, for each value and the fields of every other one', () => {
    beginOperation();
    const others = [{ 'f:spec': { 'f:map': { '.': {}, 'f:a': {} } } }, { 'f:spec': { 'f:set': { 'v:"a"': {} } } }, { 'f:x': {} }];
    const differing: unknown[] = [];
    for (const but of terms)
      for (const apart of aparts) {
        const owned = values.map((value) => ownedOf(value, but, apart));
        for (const [at, value] of values.entries())
          for (const fields of [...owned, ...others]) {
            // Whether there are none takes the long way.
            const are = Object.keys(fields).length > 0 && JSON.stringify(fields) === JSON.stringify(owned[at]);
            if (new StoredParts().hasFields(type, value, { fields, but, apart }) !== are) differing.push({ value, fields, are });
          }
      }
    expect(differing).toEqual([]);
  });

  it('never where only a part of a part is left out, or for no container', () => {
    const fields = ownedOf({ spec: { name: 'x' } }, NO_FIELDS, NO_FIELDS);
    const ask = (value: unknown, apart: typeof NO_FIELDS): boolean =>
      new StoredParts().hasFields(type, value, { fields, but: NO_FIELDS, apart });
    expect(ask({ spec: { name: 'x' } }, NO_FIELDS)).toBe(true);
    expect(ask({ spec: { name: 'x' } }, setOf(['f:status', 'f:phase']))).toBe(false);
    for (const value of [null, undefined, 5, 'x']) expect(ask(value, NO_FIELDS)).toBe(false);
    for (const wrong of [{ status: [] }, { status: ['x'] }, { any: [], status: [] }])
      expect(ask({ spec: { name: 'x' }, ...wrong }, NO_FIELDS)).toBe(false);
    for (const wrong of [{ name: {} }, { name: [] }, { set: {} }, { set: { a: 1 } }, { map: [] }, { list: {} }])
      expect(ask({ spec: { name: 'x', ...wrong } }, NO_FIELDS)).toBe(false);
  });

  it('for as many values as are looked at', () => {
    const make = (count: number): boolean => {
      const value = { spec: { map: Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, 'x'])) } };
      const fields = ownedOf(value, NO_FIELDS, NO_FIELDS);
      return new StoredParts().hasFields(type, value, { fields, but: NO_FIELDS, apart: NO_FIELDS });
    };
    expect([make(8_190), make(8_191)]).toEqual([true, false]);
  });

  it('and known for the parts of which the type is known', () => {
    beginOperation();
    const map = Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`n${at}`, 'x']));
    const value = { spec: { map } };
    const fields = ownedOf(value, NO_FIELDS, NO_FIELDS) as { 'f:spec': { 'f:map': Json } };
    const own = fields['f:spec']['f:map'];
    const ask = (stored: StoredParts, but = NO_FIELDS): boolean =>
      stored.hasFields(type, value, { fields, but, apart: NO_FIELDS });
    const unknown = new StoredParts();
    expect([ask(unknown), unknown.fields.get(map)]).toEqual([true, undefined]);
    const stored = new StoredParts();
    atOnce(checkType(type, value, false, { known: stored, notes: true }));
    expect([ask(stored, setOf(['f:spec', 'f:map', 'f:other'])), stored.fields.get(map)]).toEqual([true, undefined]);
    expect([ask(stored), stored.fields.get(map) === own]).toEqual([true, true]);
    const other = { 'f:n0': {} };
    const wrong = { 'f:spec': { 'f:map': other } };
    expect(stored.hasFields(type, value, { fields: wrong, but: NO_FIELDS, apart: NO_FIELDS })).toBe(false);
    stored.fields.set(map, other);
    expect(stored.hasFields(type, value, { fields: wrong, but: NO_FIELDS, apart: NO_FIELDS })).toBe(true);
  });
});

describe('a value like another one', () => {
  const { likened } = new StoredParts();
  const numbers = (count: number): Json => Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, at]));

  it.each<[unknown, unknown]>([
    [{}, {}],
    [[], []],
    [{ a: [1, { b: null }] }, { a: [1, { b: null }] }],
    [
      [{}, []],
      [{}, []],
    ],
  ])('is it: %j', (one, other) => {
    expect(likened(one, other)).toBe(one);
  });

  it.each<[unknown, unknown]>([
    [[1], [2]],
    [[1], [1, 2]],
    [[1, 2], [1]],
    [[], {}],
    [{}, []],
    [{ 0: 1 }, [1]],
    [[1], { 0: 1 }],
    [{ length: 1, 0: 1 }, [1]],
    [{ a: 1 }, { b: 1 }],
    [{ a: 1 }, { a: 1, b: 2 }],
    [{ a: 1, b: 2 }, { a: 1 }],
    [
      { a: 1, b: 2 },
      { b: 2, a: 1 },
    ],
    [{ a: 1 }, { a: null }],
    [{ a: {} }, { a: null }],
    [null, {}],
    [5, [1]],
    [{ constructor: 1 }, {}],
    [{}, JSON.parse('{"toString":1}')],
  ])('is the other one itself, where nothing is: %j, %j', (one, other) => {
    expect(likened(one, other)).toBe(other);
  });

  it('has its parts where these are the same', () => {
    const one = { a: { x: 1 }, b: [{ y: 1 }, { z: 1 }], c: 1 };
    const other = structuredClone({ ...one, b: [...one.b, { w: 1 }], c: 2 });
    const made = likened(one, other) as typeof one;
    expect(made).toEqual(other);
    expect([made.a === one.a, made.b[0] === one.b[0], made.b[1] === one.b[1], made.b[2] === other.b[2]]).toEqual(
      Array.from({ length: 4 }, () => true),
    );
  });

  it('is told from so many values', () => {
    for (const wrap of [(value: Json): unknown => [value], (value: Json): unknown => ({ a: [value] })]) {
      const few = wrap(numbers(4_000));
      expect(likened(few, structuredClone(few))).toBe(few);
    }
    const is = (one: unknown): boolean => likened(one, structuredClone(one)) === one;
    expect([is([numbers(4_095)]), is([numbers(4_096)])]).toEqual([true, false]);
    const empty = (count: number): object[] => Array.from({ length: count }, () => ({}));
    expect([is(empty(8_191)), is(empty(8_192))]).toEqual([true, false]);
  });
});
