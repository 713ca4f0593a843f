// The tables of fields: what they make of JSON, and that what is written in protobuf is read again, whatever it is.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { base64Bytes, fromBase64, toBase64 } from '../../src/apiserver/kinds/base64.ts';
import { kubernetesKinds } from '../../src/apiserver/kinds/kubernetes.ts';
import { type Field, type Shape, shape, timeOf, typing } from '../../src/apiserver/kinds/shape.ts';
import { builtInSchema, shapeOf, typed } from '../../src/apiserver/kinds/tables.ts';
import { envelopeOf, readProtobuf, writingMessage } from '../../src/apiserver/request/protobuf.ts';
import { apiVersionOf } from '../../src/cache/resource-client.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';
import { runs } from '../runs.ts';

const KINDS = [
  ...['ConfigMap', 'Event', 'Namespace', 'Secret', 'ServiceAccount'].map((kind) => ['', 'v1', kind]),
  ...[
    ['coordination.k8s.io', 'v1', 'Lease'],
    ['events.k8s.io', 'v1', 'Event'],
  ],
].map(([group = '', version = '', kind = '']) => ({ group, version, kind, apiVersion: group ? `${group}/${version}` : version }));

/** Of the kinds that are not built in, those with the forms and values of all others, without the many fields of a Pod. */
const MORE = await kubernetesKinds(
  ...(['services/v1', 'limitranges/v1', 'persistentvolumes/v1', 'controllerrevisions.apps/v1'] as const),
  ...(['networkpolicies.networking.k8s.io/v1', 'ingresses.networking.k8s.io/v1', 'poddisruptionbudgets.policy/v1'] as const),
);

const text = fc.oneof(fc.string({ unit: 'grapheme', maxLength: 8 }), fc.constant('x'.repeat(300)));
const year = { min: new Date('1971-01-01T00:00:00Z'), max: new Date('2200-01-01T00:00:00Z'), noInvalidDate: true } as const;
const SCALARS: Readonly<Record<Exclude<Field['type'], Shape>, fc.Arbitrary<unknown>>> = {
  string: text,
  bytes: fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes).toString('base64')),
  int32: fc.integer(),
  int64: fc.maxSafeInteger(),
  double: fc.double({ noNaN: true, noDefaultInfinity: true }),
  bool: fc.boolean(),
  time: fc.date(year).map((date) => date.toISOString().replace(/\.\d+Z/, 'Z')),
  microTime: fc.date(year).map((date) => date.toISOString().replace('Z', '123Z')),
  json: fc.dictionary(text, fc.constant({})),
  intOrString: fc.oneof(text, fc.integer()),
  quantity: fc.tuple(fc.integer(), fc.constantFrom('', 'm', 'Ki', 'G', 'e3')).map((parts) => parts.join('')),
};

/** Objects of a shape. An empty list of managers is kept, as it resets them, and protobuf has none. */
function objectsOf({ fields }: Shape): fc.Arbitrary<Record<string, unknown>> {
  const entries = fields.map(({ name, type, form }) => {
    const one = typeof type === 'string' ? SCALARS[type] : objectsOf(type);
    if (form === '^') return [name, one] as const;
    const value =
      form === '[]'
        ? fc.array(one, { minLength: Number(name === 'managedFields'), maxLength: 3 })
        : form === '{}'
          ? fc.dictionary(text, one, { maxKeys: 3 })
          : one;
    return [name, fc.option(value, { nil: undefined })] as const;
  });
  const inner = fields.flatMap(({ form, name }) => (form === '^' ? [name] : []));
  // The members of an inner message are those of the object.
  return fc.record(Object.fromEntries(entries)).map((made: Record<string, unknown>) => {
    for (const name of inner) Object.assign(made, made[name]);
    return Object.fromEntries(Object.entries(made).filter(([name]) => !inner.includes(name)));
  });
}

describe('shapes', () => {
  it.each([...KINDS, ...MORE.map((kind) => ({ ...kind, apiVersion: apiVersionOf(kind) }))])(
    'what is written of a $kind of $apiVersion is read again',
    (kind) => {
      const of = shapeOf(kind) as Shape;
      fc.assert(
        fc.property(objectsOf(of), (made) => {
          const { apiVersion, kind: name } = kind;
          const object = atOnce(
            typed(kind, { ...(JSON.parse(JSON.stringify(made)) as object), apiVersion, kind: name }),
          ) as object;
          const bytes = atOnce(writingMessage(object, of));
          const { head, tail } = envelopeOf({ apiVersion, kind: name }, bytes.length);
          const read = atOnce(readProtobuf(Buffer.concat([head, bytes, tail]), kind));
          expect(atOnce(typed(kind, read))).toEqual(object);
          // Once more changes nothing.
          expect(atOnce(typed(kind, object))).toEqual(object);
        }),
        { numRuns: runs(100) },
      );
    },
  );

  it('JSON becomes what Go makes of it', () => {
    const some = shape('', {
      ...{
        text: [1, 'string', '', ''],
        always: [2, 'string', '!', ''],
        perhaps: [3, 'int32', '?', ''],
        when: [4, 'time', '!', ''],
      },
      ...{
        list: [5, 'string', '[]', ''],
        map: [6, 'string', '{}', ''],
        below: [7, shape('', { flag: [1, 'bool', '', ''] }), '', ''],
      },
    });
    const read = (object: object): unknown => atOnce(readShape(some, object));
    const nothing = { always: '', when: null, below: {} };
    expect(read({})).toEqual(nothing);
    expect(read({ text: null, always: null, list: null, map: null, below: null, when: null })).toEqual(nothing);
    expect(read({ text: '', list: [], map: {}, below: { flag: false, other: 1 }, other: 1 })).toEqual(nothing);
    expect(read({ perhaps: 0, list: [null], map: { a: null, __proto: 'x' }, when: '2026-01-02T03:04:05.9+01:00' })).toEqual({
      ...{ always: '', when: '2026-01-02T02:04:05Z', perhaps: 0, list: [''], map: { a: '', __proto: 'x' }, below: {} },
    });
    expect(read(JSON.parse('{"map":{"__proto__":"x"}}'))).toEqual({ ...nothing, map: JSON.parse('{"__proto__":"x"}') });
    for (const [object, why] of [
      [{ text: 1 }, 'text: expected a text'],
      [{ perhaps: 1.5 }, 'perhaps: expected a whole number'],
      [{ perhaps: 2 ** 31 }, 'perhaps: expected a whole number'],
      [{ below: [] }, 'below: expected an object'],
      [{ below: { flag: 1 } }, 'below.flag: expected true or false'],
      [{ list: {} }, 'list: expected a list'],
      [{ list: ['', 1] }, 'list[1]: expected a text'],
      [{ map: { a: 1 } }, 'map: expected an object of strings'],
      [{ when: 'x' }, 'when: expected a time'],
      [{ when: '2026-13-02T03:04:05Z' }, 'when: expected a time'],
      [{ when: '2026-02-30T03:04:05Z' }, 'when: expected a time'],
      [{ when: '2026-01-02T24:00:00+01:00' }, 'when: expected a time'],
    ] as const) {
      expect(() => read(object)).toThrow(why);
    }
  });

  it('schemas say how lists are merged and what is required', () => {
    const schema = builtInSchema({ group: '', version: 'v1', kind: 'ServiceAccount' }) as { properties: Record<string, object> };
    expect(schema.properties.secrets).toMatchObject({ type: 'array', 'x-kubernetes-patch-merge-key': 'name' });
    expect(builtInSchema({ group: '', version: 'v1', kind: 'Event' })).toMatchObject({ required: ['involvedObject'] });
    expect(JSON.stringify(schema)).not.toContain('"required":true');
    expect(builtInSchema({ group: 'x.io', version: 'v1', kind: 'Event' })).toBeUndefined();
  });

  it('long base64 is read in pieces, as if it were one', () => {
    const some = shape('', { data: [1, 'bytes', '{}', ''], one: [2, 'bytes', '', ''], list: [3, 'bytes', '[]', ''] });
    const text = Buffer.alloc(300_001, 7).toString('base64');
    const lines = text.replace(/.{76}/g, '$&\r\n');
    const work = readShape(some, { data: { a: lines }, one: text, list: [lines] });
    let steps = 0;
    for (let step = work.next(); ; step = work.next()) {
      if (step.done) {
        expect(step.value).toEqual({ data: { a: text }, one: text, list: [text] });
        break;
      }
      steps++;
    }
    expect(steps).toBeGreaterThan(30);
    for (const wrong of [
      `${text}A`,
      `AA==${text}`,
      `${'A'.repeat(65_534)}==${text}`,
      `${text.slice(0, 70_000)}!${text.slice(70_001)}`,
    ]) {
      expect(() => atOnce(readShape(some, { one: wrong }))).toThrow('expected base64');
      expect(() => atOnce(readShape(some, { data: { a: wrong } }))).toThrow('expected base64');
    }
  });

  it('base64 in parts is that of the whole', () => {
    for (const length of [0, 1, 2, 3, 8_189, 8_190, 8_191, 30_000]) {
      const bytes = Uint8Array.from({ length }, (_, at) => at % 251);
      const base64 = Buffer.from(bytes).toString('base64');
      expect(atOnce(toBase64(bytes))).toBe(base64);
      expect(atOnce(fromBase64(base64))).toEqual(bytes);
      expect(base64Bytes(base64)).toBe(length);
    }
  });
});

function readShape(of: Shape, object: object): ReturnType<typeof typing> {
  return typing(['Some', 'v1'], of, object);
}

it('a time is a day, an hour, a minute and a second that exist, however it is written', () => {
  const pad = (number: number, size = 2): string => String(number).padStart(size, '0');
  const isLeap = (year: number): boolean => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const daysIn = (year: number, month: number): number =>
    [0, 31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 0][month] as number;
  const clocks = ['00:00:00', '23:59:59', '19:09:09', '24:00:00', '12:60:00', '12:00:60'];
  for (const year of [0, 1900, 1970, 2000, 2023, 2024, 9999]) {
    for (let month = 0; month <= 13; month++) {
      for (let day = 0; day <= 32; day++) {
        const at = (month + day) % clocks.length;
        const local = `${pad(year, 4)}-${pad(month)}-${pad(day)}T${clocks[at]}`;
        const isTime = day >= 1 && day <= daysIn(year, month) && at < 3;
        const expected = isTime ? `${local}Z` : undefined;
        const read = ['Z', '+00:00', '.5Z'].map((end) => timeOf(`${local}${end}`, 0));
        expect([local, ...read]).toEqual([local, expected, expected, expected]);
      }
    }
  }
});
