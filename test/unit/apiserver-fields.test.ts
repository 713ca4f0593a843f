// `fieldValidation` of writes, over HTTP and in process. The words are those of a kube-apiserver: test/peers/differential.test.ts compares.
import { afterAll, describe, expect, it } from 'vitest';
import { toWarning } from '../../src/apiserver/http/api.ts';
import { CONFIG_MAPS, NAMESPACES, type ResourceDefinition } from '../../src/apiserver/index.ts';
import type { KubernetesObject } from '../../src/cache/object.ts';
import { type Answered, ORDERS, ORDERS_PATH, rig } from './apiserver-rig.ts';
import { open } from './apiserver-sockets.ts';

const MEALS_PATH = '/apis/example.com/v1/namespaces/default/meals';
const MEALS: ResourceDefinition = {
  group: 'example.com',
  version: 'v1',
  plural: 'meals',
  kind: 'Meal',
  status: true,
  schema: {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          count: { type: 'integer', minimum: 1 },
          items: { type: 'array', items: { type: 'object', properties: { name: { type: 'string' } } } },
          closed: { type: 'object', additionalProperties: false },
        },
      },
      status: { type: 'object', properties: { done: { type: 'boolean' } } },
    },
  },
};

const resources = [MEALS, ORDERS, CONFIG_MAPS, NAMESPACES] as ResourceDefinition[];
const { server, call } = rig({ resources });
afterAll(() => server.shutdown());

const meal = (name: string, spec: object, more: object = {}): object => ({ metadata: { name }, spec, ...more });
const REFUSED = 'Meal in version "v1" cannot be handled as a Meal: strict decoding error: ';
const asked = (path: string, mode?: string): string =>
  `${path}?dryRun=All${mode === undefined ? '' : `&fieldValidation=${mode}`}`;

/** The warnings of an answer, as client-go reads them. */
function warnings({ headers }: Pick<Answered, 'headers'>): string[] {
  const bytes = Uint8Array.from(headers.get('warning') ?? '', (char) => char.charCodeAt(0));
  const each = new TextDecoder('utf-8', { fatal: true }).decode(bytes).matchAll(/299 - "((?:[^"\\]|\\.)*)"(?:, |$)/g);
  return Array.from(each, ([, text = '']) => text.replace(/\\(.)/g, '$1'));
}

describe('a field that the schema does not name', () => {
  const wrong = meal(
    'a',
    { count: 1, colour: 'red', items: [{}, { nam: 'x' }] },
    { metadata: { name: 'a', lables: {} }, extra: null },
  );
  const unknown = ['metadata.lables', 'extra', 'spec.colour', 'spec.items[1].nam'].map((path) => `unknown field "${path}"`);

  it.each([undefined, '', 'Warn'])('fieldValidation=%s: is warned of, and kept', async (mode) => {
    const answer = await call('POST', asked(MEALS_PATH, mode), wrong);
    expect([answer.code, warnings(answer)]).toEqual([201, unknown]);
    expect(answer.body).toMatchObject({ spec: { colour: 'red', items: [{}, { nam: 'x' }] }, extra: null });
    // Metadata has known members only.
    expect(answer.body.metadata).not.toHaveProperty('lables');
  });

  it('fieldValidation=Ignore: nobody hears of it', async () => {
    const answer = await call('POST', asked(MEALS_PATH, 'Ignore'), wrong);
    expect([answer.code, answer.headers.get('warning')]).toEqual([201, null]);
  });

  it('fieldValidation=Strict: 400, which names it', async () => {
    const answer = await call('POST', asked(MEALS_PATH, 'Strict'), wrong);
    expect(answer.body).toMatchObject({ code: 400, reason: 'BadRequest', message: REFUSED + unknown.join(', ') });
    expect(answer.headers.get('warning')).toBeNull();
    expect((await call('POST', asked(MEALS_PATH, 'Strict'), meal('a', { count: 1, items: [{ name: 'x' }] }))).code).toBe(201);
  });

  it.each(['strict', 'Nonsense\n'])('fieldValidation=%s: 422', async (mode) => {
    const path = (at: string): string => `${at}?fieldValidation=${encodeURIComponent(mode)}`;
    const answers = [
      await call('POST', path(MEALS_PATH), wrong),
      await call('PUT', path(`${MEALS_PATH}/a`), wrong),
      await call('PATCH', path(`${MEALS_PATH}/a`), {}),
    ];
    const kinds = ['CreateOptions', 'UpdateOptions', 'PatchOptions'];
    expect(answers.map(({ code, body }) => [code, body.details.kind])).toEqual(kinds.map((kind) => [422, kind]));
    const supported = 'supported values: "", "Ignore", "Strict", "Warn"';
    expect(answers[0]?.body.message).toBe(
      `CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: ${JSON.stringify(mode.replace('\n', '.'))}: ${supported}`,
    );
    expect(answers[0]?.body.details.causes).toMatchObject([{ field: 'fieldValidation', reason: 'FieldValueNotSupported' }]);
  });

  it('the first of several values counts, and no other verb asks', async () => {
    expect((await call('POST', `${asked(MEALS_PATH, 'Ignore')}&fieldValidation=Strict`, wrong)).code).toBe(201);
    expect((await call('DELETE', asked(`${MEALS_PATH}/missing`, 'Nonsense'))).code).toBe(404);
    expect((await call('GET', `${MEALS_PATH}?fieldValidation=Nonsense`)).code).toBe(200);
  });

  it('is looked for before anything else is; of another kind nothing is said', async () => {
    const strict = async (path: string, body: object): Promise<number> => (await call('POST', asked(path, 'Strict'), body)).code;
    expect(await strict(MEALS_PATH.replace('default', 'nowhere'), wrong)).toBe(400);
    expect(await strict(MEALS_PATH, meal('a', { count: 0, colour: 1 }))).toBe(400);
    const { body } = await call('POST', asked(MEALS_PATH, 'Strict'), { ...wrong, kind: 'Other' });
    expect(body.message).toMatch(/^expected a Meal of example.com\/v1, got a Other/);
    expect((await call('POST', asked(MEALS_PATH, 'Strict'), [])).code).toBe(400);
  });

  it('is warned of in a refusal, too', async () => {
    const refused = await call('POST', asked(MEALS_PATH), meal('a', { count: 0, colour: 1 }));
    expect([refused.code, warnings(refused)]).toEqual([422, ['unknown field "spec.colour"']]);
    const missing = await call('PUT', asked(`${MEALS_PATH}/missing`), meal('missing', { colour: 1 }));
    expect([missing.code, warnings(missing)]).toEqual([404, ['unknown field "spec.colour"']]);
  });

  it('where the schema forbids it: 400 if asked for, otherwise 422 and warned of', async () => {
    const closed = meal('a', { closed: { x: 1 } });
    expect((await call('POST', asked(MEALS_PATH, 'Strict'), closed)).body.message).toBe(
      `${REFUSED}unknown field "spec.closed.x"`,
    );
    const answer = await call('POST', asked(MEALS_PATH), closed);
    expect([answer.code, warnings(answer)]).toEqual([422, ['unknown field "spec.closed.x"']]);
  });

  it('without a schema there is none but in the metadata; Kubernetes’ own kinds have one', async () => {
    const answer = await call('POST', asked(ORDERS_PATH), { metadata: { name: 'a', Labels: {} }, spec: { any: 1 }, more: 1 });
    expect([answer.code, warnings(answer)]).toEqual([201, ['unknown field "metadata.Labels"']]);
    const map = await call('POST', asked('/api/v1/namespaces/default/configmaps', 'Strict'), {
      metadata: { name: 'a' },
      datum: {},
    });
    expect(map.body.message).toBe(
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "datum"',
    );
  });

  it('of a name that is sent twice, both are told', async () => {
    const type = '"apiVersion":"example.com/v1","kind":"Meal"';
    const twice = `{${type},"metadata":{"name":"x","name":"y"},"spec":{"count":1,"count":2,"count":3,"zz":1,"zz":2}}`;
    const told = ['duplicate field "metadata.name"', 'duplicate field "spec.count"', 'duplicate field "spec.zz"'];
    told.push('unknown field "spec.zz"');
    const answer = await call('POST', asked(MEALS_PATH), twice);
    expect([answer.code, warnings(answer)]).toEqual([201, told]);
    expect(answer.body).toMatchObject({ metadata: { name: 'y' }, spec: { count: 3 } });
    expect((await call('POST', asked(MEALS_PATH, 'Strict'), twice)).body).toMatchObject({
      code: 400,
      message: REFUSED + told.join(', '),
    });
    expect(warnings(await call('POST', asked(MEALS_PATH, 'Ignore'), twice))).toEqual([]);
  });
});

describe('a patch', () => {
  const at = `${MEALS_PATH}/patched`;
  const types = { json: { 'content-type': 'application/json-patch+json' } };
  const patch = (mode: string, body: unknown, headers = {}): Promise<Answered> => call('PATCH', asked(at, mode), body, headers);

  it('is made first', async () => {
    const created = await call('POST', MEALS_PATH, meal('patched', { count: 1, old: 1, items: [{ old: 1 }] }));
    expect([created.code, warnings(created)]).toEqual([201, ['unknown field "spec.items[0].old"', 'unknown field "spec.old"']]);
  });

  it('is told of what it adds, and not of what has been there', async () => {
    const answer = await patch('Warn', { spec: { count: 2, colour: 'red' }, metadata: { lables: {} } });
    expect([answer.code, warnings(answer)]).toEqual([200, ['unknown field "metadata.lables"', 'unknown field "spec.colour"']]);
    expect((await patch('Strict', { spec: { count: 2 } })).code).toBe(200);
    expect((await patch('Strict', { spec: { old: null, colour: null } })).code).toBe(200);
  });

  it('Strict: 422 about the patch, as upstream', async () => {
    const { body } = await patch('Strict', { spec: { colour: 'red' } });
    expect(body).toMatchObject({
      code: 422,
      reason: 'Invalid',
      details: { causes: [{ field: 'patch', reason: 'FieldValueInvalid' }] },
    });
    expect(body.details).not.toHaveProperty('kind');
    expect(body.message).toMatch(
      /^ "" is invalid: patch: Invalid value: "\{.*": strict decoding error: unknown field "spec\.colour"$/,
    );
    expect(body.message.length).toBeLessThan(600);
  });

  it('of a JSON patch the operations have fields, too', async () => {
    const operations = '[{"op":"add","path":"/spec/colour","value":{"x":1,"x":2},"foo":1}]';
    const answer = await patch('Warn', operations, types.json);
    const told = [
      'json patch duplicate field "[0].value.x"',
      'json patch unknown field "[0].foo"',
      'unknown field "spec.colour"',
    ];
    expect([answer.code, warnings(answer)]).toEqual([200, told]);
    expect((await patch('Strict', operations, types.json)).code).toBe(422);
    const { code } = await patch('Strict', [{ op: 'test', path: '/spec/old', value: 1 }], types.json);
    expect(code).toBe(200);
  });

  it('of something that is not there is 404', async () => {
    expect((await call('PATCH', asked(`${MEALS_PATH}/missing`, 'Strict'), { spec: { colour: 1 } })).code).toBe(404);
  });

  it('of the status is one as well, and so is an update', async () => {
    const status = await call('PATCH', asked(`${at}/status`, 'Strict'), { status: { dome: true } });
    expect(status.body.message).toMatch(/unknown field "status\.dome"$/);
    const update = await call('PUT', asked(`${at}/status`, 'Strict'), meal('patched', { colour: 1 }, { status: { dome: true } }));
    expect(update.body.message).toBe(`${REFUSED}unknown field "spec.colour", unknown field "status.dome"`);
  });
});

describe('hostile fields', () => {
  it('cannot make a header: control characters are gone, quotes are escaped, and what is not ASCII is UTF-8', async () => {
    const names = ['a"b', 'a\\b', 'a\r\nSet-Cookie: x=1', '\u0000\u0085\u2028', 'ä日😀', '\ud800', '', 'a, 299 - "b'];
    const answer = await call('POST', asked(MEALS_PATH), meal('a', Object.fromEntries(names.map((name) => [name, 1]))));
    expect(answer.code).toBe(201);
    expect([...answer.headers.keys()]).not.toContain('set-cookie');
    expect(answer.headers.get('warning')).toMatch(/^[\x20-\x7e\x80-\xff]*$/);
    expect(warnings(answer).sort()).toEqual(
      ['a\\"b', 'a\\\\b', 'a..Set-Cookie: x=1', '..\u2028', 'ä日😀', '.', '', 'a, 299 - \\"b']
        .map((path) => `unknown field "spec.${path}"`)
        .sort(),
    );
  });

  it('are UTF-8 in the head of a refusal as well, over a socket', async () => {
    const { url } = await open({ resources });
    const sent = { apiVersion: 'example.com/v1', kind: 'Meal', ...meal('a', { count: 0, 'ä日😀': 1 }) };
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(sent) };
    const response = await fetch(url + MEALS_PATH, init);
    expect([response.status, warnings(response)]).toEqual([422, ['unknown field "spec.ä日😀"']]);
    expect(((await response.json()) as { reason: string }).reason).toBe('Invalid');
  });

  it('are told within bounds, however many and long they are, and the rest is counted', async () => {
    const long = {
      ['x'.repeat(100_000)]: 1,
      ...Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`unknown${at}`, 1])),
    };
    const answer = await call('POST', asked(MEALS_PATH), meal('a', long));
    expect(answer.code).toBe(201);
    expect(answer.headers.get('warning')?.length).toBeLessThan(2_300);
    const told = warnings(answer);
    expect(told.at(-1)).toBe(`and ${5_001 - (told.length - 1)} more warnings`);
    const refused = await call('POST', asked(MEALS_PATH, 'Strict'), meal('a', long));
    expect(refused.body.message.length).toBeLessThan(10_000);
    expect(refused.body.message).toMatch(/, and 4901 more$/);
  });

  it('the header: whole warnings only, in bytes', () => {
    expect(toWarning({ texts: [], more: 0 })).toBeUndefined();
    expect(toWarning({ texts: ['a "b" \\'], more: 0 })).toBe('299 - "a \\"b\\" \\\\"');
    expect(toWarning({ texts: ['ä'], more: 2 })).toBe('299 - "Ã¤", 299 - "and 2 more warnings"');
    const wide = toWarning({ texts: Array.from({ length: 20 }, () => '😀'.repeat(75)), more: 0 }) ?? '';
    expect(wide.split(', ')).toHaveLength(7);
    expect(wide).toContain('and 14 more');
  });
});

describe('in process', () => {
  const meals = server.resource<KubernetesObject & { spec?: object }>('meals.example.com/v1').in('default');
  const wrong = { metadata: { name: 'own' }, spec: { colour: 'red' } };
  const told = { status: { code: 400, message: `${REFUSED}unknown field "spec.colour"` } };

  it('Strict refuses, and nothing else does', async () => {
    const fieldValidation = 'Strict';
    await expect(meals.create(wrong, { fieldValidation })).rejects.toMatchObject(told);
    expect(await meals.create(wrong)).toMatchObject({ spec: { colour: 'red' } });
    await expect(meals.update(wrong, { fieldValidation })).rejects.toMatchObject(told);
    await meals.update(wrong, { fieldValidation: 'Warn' });
    const patch = { spec: { color: 'red' } };
    const unlike = { status: { code: 422, message: expect.stringMatching(/unknown field "spec\.color"$/) } };
    await expect(meals.patch('own', patch, { fieldValidation })).rejects.toMatchObject(unlike);
    await meals.patch('own', patch, { fieldValidation: 'Ignore' });
    await meals.patch('own', { spec: { count: 1 } }, { fieldValidation });
  });

  it('a value that is none is refused', async () => {
    const options = { fieldValidation: 'strict' as 'Strict' };
    for (const write of [
      () => meals.create(wrong, options),
      () => meals.update(wrong, options),
      () => meals.patch('own', {}, options),
    ]) {
      await expect(write()).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining('fieldValidation'),
      });
    }
  });
});

describe('owners that are there twice', () => {
  it('are kept once, and warned of, whatever their uids are', async () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid: 'x\r\ny: "1"\u2028' };
    const many = Array.from({ length: 10_000 }, (_, at) => ({ ...owner, uid: `${at}` }));
    for (const [name, twins] of [
      ['few-owners', [owner]],
      ['many-owners', [owner, ...many]],
    ] as const) {
      const ownerReferences = [...twins, ...twins];
      const answer = await call('POST', MEALS_PATH, { ...meal(name, {}), metadata: { name, ownerReferences } });
      expect([answer.code, answer.body.metadata.ownerReferences]).toEqual([201, twins]);
      expect(answer.headers.get('warning')).toMatch(/^[\x20-\x7e\x80-\xff]{200,2300}$/);
      expect(warnings(answer)).toEqual([expect.stringContaining('duplicate UID(s) observed: x..y: "1"')]);
      expect([...answer.headers.keys()]).not.toContain('y');
    }
  });

  it('are kept once in process, too', async () => {
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid: 'u' };
    const meals = server.resource('meals.example.com/v1').in('default');
    const { metadata } = await meals.create({ metadata: { name: 'twins', ownerReferences: [owner, owner] } });
    expect(metadata?.ownerReferences).toEqual([owner]);
    const patched = await meals.patch('twins', { metadata: { ownerReferences: [owner, { ...owner, kind: 'B' }, owner] } });
    expect(patched.metadata?.ownerReferences).toEqual([owner, { ...owner, kind: 'B' }]);
  });
});

describe('new finalizers', () => {
  it('are warned of, each once', async () => {
    const path = `${MEALS_PATH}/held`;
    const finalizers = ['mine', 'x.y', 'a.b/c'];
    const created = await call('POST', MEALS_PATH, { ...meal('held', {}), metadata: { name: 'held', finalizers } });
    const why = 'to avoid accidental conflicts with other finalizer writers';
    expect(warnings(created)).toEqual([
      `metadata.finalizers: "mine": prefer a domain-qualified finalizer name ${why}`,
      `metadata.finalizers: "x.y": prefer a domain-qualified finalizer name including a path (/) ${why}`,
    ]);
    expect(warnings(await call('PATCH', path, { metadata: { finalizers: ['x.y', 'mine'] } }))).toEqual([]);
  });

  it('are warned of within bounds, however many they are', async () => {
    const finalizers = Array.from({ length: 50_000 }, (_, at) => `f${at}`);
    const created = await call('POST', MEALS_PATH, { ...meal('held', {}), metadata: { name: 'many', finalizers } });
    expect(created.code).toBe(201);
    expect(created.headers.get('warning')?.length).toBeLessThan(2_300);
    expect(warnings(created).at(-1)).toMatch(/^and \d+ more warnings$/);
  });
});
