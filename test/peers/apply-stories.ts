// Stories of one object for the test against Kubernetes' own server-side apply: a schema for each version of a kind, and what several
// managers write. Choices are read from numbers that fast-check makes, so that it can make a story that fails smaller: the first choice
// of everything is the simplest, and stands for all that is missing.
import { FieldManager, type Json, type JsonSchema } from '../../src/apply/field-manager.ts';
import { StoredParts } from '../../src/apply/quick.ts';
import { atOnce } from '../../src/watch/fair-queue.ts';

export type Schemas = Readonly<Record<string, JsonSchema | null>>;

export interface Step {
  readonly op: 'apply' | 'update' | 'extract' | 'schemas';
  readonly version: string;
  readonly manager: string;
  readonly subresource: string;
  readonly force: boolean;
  readonly time: string;
  readonly object?: Json;
  readonly schemas?: Schemas;
}

export interface Story {
  readonly schemas: Schemas;
  readonly reset: Readonly<Record<string, readonly string[]>>;
  readonly steps: readonly Step[];
  readonly repeat?: number;
}

/** Numbers from which choices are read. */
export class Choices {
  readonly #numbers: readonly number[];
  #at: number = 0;

  constructor(numbers: readonly number[]) {
    this.#numbers = numbers;
  }

  /** A whole number below `count`. */
  below(count: number): number {
    return (this.#numbers[this.#at++] ?? 0) % count;
  }

  of<T>(...things: readonly T[]): T {
    return things[this.below(things.length)] as T;
  }

  /** True once in so many times. */
  once(times: number): boolean {
    return this.below(times) === times - 1;
  }
}

const NAMES = ['a', 'b', 'c', 'd'];
const KEYS = ['k', 'l'];

/** A random schema of a structural kind. */
function schemaOf(choices: Choices, depth: number): JsonSchema {
  const scalars: readonly JsonSchema[] = [
    { type: 'string' },
    { type: 'integer' },
    { type: 'boolean' },
    { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
    { type: 'string', format: 'date-time' },
    { type: 'number' },
  ];
  if (depth <= 0) return choices.of(...scalars);
  const below = (): JsonSchema => schemaOf(choices, depth - 1);
  switch (choices.below(12)) {
    case 0:
      return choices.of(...scalars);
    case 1:
      return {
        type: 'array',
        items: choices.of<JsonSchema>(scalars[0] as JsonSchema, scalars[1] as JsonSchema),
        'x-kubernetes-list-type': 'set',
      };
    case 2:
    case 3:
      return keyedList(choices, depth);
    case 4:
      return { type: 'array', items: below(), ...(choices.once(2) && { 'x-kubernetes-list-type': 'atomic' }) };
    case 5:
      return { type: 'object', additionalProperties: below(), ...mapKind(choices) };
    case 6:
      return { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, ...mapKind(choices) };
    case 7:
      return { 'x-kubernetes-preserve-unknown-fields': true };
    case 8:
      return { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true };
    case 9:
      return { type: 'object' };
    default:
      return objectSchema(choices, depth);
  }
}

const mapKind = (choices: Choices): JsonSchema =>
  choices.of<JsonSchema>({}, {}, { 'x-kubernetes-map-type': 'atomic' }, { 'x-kubernetes-map-type': 'granular' });

function objectSchema(choices: Choices, depth: number): JsonSchema {
  const properties: Record<string, JsonSchema> = {};
  for (const name of NAMES.slice(0, 1 + choices.below(4))) properties[name] = schemaOf(choices, depth - 1);
  const preserves = choices.once(8) ? { 'x-kubernetes-preserve-unknown-fields': true } : {};
  return { type: 'object', properties, ...preserves, ...mapKind(choices) };
}

function keyedList(choices: Choices, depth: number): JsonSchema {
  const keys = KEYS.slice(0, 1 + choices.below(2));
  const items = objectSchema(choices, depth);
  const properties = { ...(items.properties as JsonSchema) };
  for (const [at, key] of keys.entries()) {
    const schema: JsonSchema = choices.once(2) ? { type: 'integer' } : { type: 'string' };
    const isDefaulted = at > 0 ? choices.once(2) : choices.once(5);
    properties[key] = { ...schema, ...(isDefaulted && { default: schema.type === 'integer' ? 1 : 'x' }) };
  }
  return {
    type: 'array',
    items: { ...items, properties, ...(choices.once(3) ? {} : { 'x-kubernetes-map-type': 'granular' }) },
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': choices.once(2) ? keys : [...keys].reverse(),
  };
}

/** A value of a schema, mostly. */
function ofSchema(choices: Choices, schema: JsonSchema, depth: number): unknown {
  if (choices.once(24)) return null;
  if (choices.once(60)) return choices.of<unknown>('s', 5, true, [], {}, ['x'], { a: 1 });
  if (schema['x-kubernetes-int-or-string']) return choices.of<unknown>('x', 1, 'y');
  switch (schema.type) {
    case 'string':
      return schema.format ? choices.of('2020-01-01T00:00:00Z', 'later') : choices.of('x', 'y', 'z', 'a<b"\\', '');
    case 'integer':
      return choices.of(1, 2, 3);
    case 'number':
      return choices.of(1, 1.5, 1e21, 1e-7);
    case 'boolean':
      return choices.of(true, false);
    case 'array':
      return listValue(choices, schema, depth);
    case 'object':
      return objectValue(choices, schema, depth);
    default:
      return anyValue(choices, depth);
  }
}

function listValue(choices: Choices, schema: JsonSchema, depth: number): unknown {
  const items = schema.items as JsonSchema;
  const list = Array.from({ length: choices.below(5) }, () => ofSchema(choices, items, depth - 1));
  const keys = schema['x-kubernetes-list-map-keys'] as readonly string[] | undefined;
  if (!schema['x-kubernetes-list-type'] || schema['x-kubernetes-list-type'] === 'atomic' || choices.once(8)) return list;
  const seen = new Set<string>();
  return list.filter((item) => {
    const key = JSON.stringify(
      keys ? keys.map((each) => (item as Json | null)?.[each] ?? ((items.properties as Json)[each] as Json).default) : item,
    );
    if (seen.has(key) || item === null) return false;
    seen.add(key);
    return true;
  });
}

function objectValue(choices: Choices, schema: JsonSchema, depth: number): unknown {
  const object: Record<string, unknown> = {};
  const properties = (schema.properties ?? {}) as Readonly<Record<string, JsonSchema>>;
  for (const name of Object.keys(properties)) {
    const isKey = KEYS.includes(name);
    if (isKey ? !choices.once(9) : choices.below(5) < 3)
      object[name] = ofSchema(choices, properties[name] as JsonSchema, depth - 1);
  }
  const rest = schema.additionalProperties as JsonSchema | undefined;
  if (rest) for (const name of NAMES) if (choices.once(2)) object[name] = ofSchema(choices, rest, depth - 1);
  if (schema['x-kubernetes-embedded-resource']) Object.assign(object, embedded(choices));
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] || (!rest && Object.keys(properties).length === 0);
  if (isOpen && choices.once(2)) for (const name of ['u', 'v']) if (choices.once(2)) object[name] = anyValue(choices, 2);
  return object;
}

const embedded = (choices: Choices): Json => ({
  apiVersion: 'v1',
  kind: 'Inner',
  metadata: { name: choices.of('x', 'y'), ...(choices.once(2) && { labels: { a: choices.of('x', 'y') } }) },
});

function anyValue(choices: Choices, depth: number): unknown {
  const kind = choices.below(depth > 0 ? 6 : 3);
  if (kind < 3) return choices.of<unknown>('x', 1, true, 'y', 2);
  if (kind === 3) return Array.from({ length: choices.below(3) }, () => anyValue(choices, depth - 1));
  const object: Record<string, unknown> = {};
  for (const name of NAMES) if (choices.once(2)) object[name] = anyValue(choices, depth - 1);
  return object;
}

function metadataOf(choices: Choices): Record<string, unknown> {
  const pick = (): Json => Object.fromEntries(NAMES.filter(() => choices.once(3)).map((name) => [name, choices.of('x', 'y')]));
  return {
    name: 'thing',
    ...(choices.once(2) && { namespace: 'default' }),
    ...(choices.once(3) && { labels: pick() }),
    ...(choices.once(4) && { annotations: pick() }),
    ...(choices.once(5) && { finalizers: NAMES.filter(() => choices.once(2)) }),
    ...(choices.once(6) && {
      ownerReferences: KEYS.filter(() => choices.once(2)).map((uid) => ({
        apiVersion: 'v1',
        kind: 'A',
        name: choices.of('x', 'y'),
        uid,
      })),
    }),
  };
}

/** What an update may say about owners. */
function entriesOf(choices: Choices, version: string): unknown {
  const apiVersion = `example.com/${version}`;
  const entry = { manager: 'm1', operation: choices.of('Update', 'Apply'), apiVersion, fieldsType: 'FieldsV1' };
  const fields = {
    'f:spec': {
      'f:a': choices.of(
        {},
        { '.': {} },
        { 'k:{"k":"x"}': { '.': {}, 'f:a': {} } },
        { 'v:"x"': {}, 'v:1': {} },
        { 'f:a': {}, 'f:u': { 'f:a': {} } },
      ),
      'f:b': choices.of({}, { 'f:b': {} }, { 'k:{"l":1, "k":"x"}': {} }, { 'x:later': {} }, { 'i:0': {} }),
    },
    'f:metadata': { 'f:labels': { 'f:a': {} } },
  };
  return choices.of<unknown>(
    [],
    [{}],
    [{ ...entry, time: '2019-01-01T00:00:00Z', fieldsV1: fields }],
    [{ ...entry, fieldsV1: fields, subresource: 'status' }],
    [{ ...entry, fieldsV1: { 'k:{': {} } }],
    [{ ...entry, operation: 'Other' }],
    [{ ...entry, manager: 5 }],
    [
      { ...entry, apiVersion: 'example.com/v9', fieldsV1: fields },
      { ...entry, fieldsV1: fields },
    ],
  );
}

/** What client-side apply leaves behind. */
function annotated(choices: Choices, object: Json, other: Json): Json {
  const metadata = object.metadata as Json;
  const text = choices.of(JSON.stringify(other), JSON.stringify(other), '{', '');
  const annotations = { ...(metadata.annotations as Json | undefined), 'kubectl.kubernetes.io/last-applied-configuration': text };
  return { ...object, metadata: { ...metadata, annotations } };
}

function objectOf(choices: Choices, schemas: Schemas, version: string): Json {
  const schema = (schemas[version] as { properties?: Record<string, JsonSchema> } | null)?.properties;
  const object: Record<string, unknown> = { apiVersion: `example.com/${version}`, kind: 'Thing', metadata: metadataOf(choices) };
  for (const name of ['spec', 'status']) {
    if (choices.once(name === 'spec' ? 12 : 2)) continue;
    object[name] = schema ? ofSchema(choices, schema[name] as JsonSchema, 4) : anyValue(choices, 4);
  }
  return object;
}

function rootSchema(choices: Choices, depth: number): JsonSchema {
  const status = choices.once(3) ? schemaOf(choices, 1) : { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  return { type: 'object', properties: { spec: objectSchema(choices, depth), status } };
}

function schemasOf(choices: Choices): Schemas {
  const versions = choices.once(3) ? ['v1', 'v2'] : ['v1'];
  if (choices.once(10)) return Object.fromEntries(versions.map((version) => [version, null]));
  const first = rootSchema(choices, 3);
  return Object.fromEntries(versions.map((version, at) => [version, at > 0 && choices.once(3) ? rootSchema(choices, 3) : first]));
}

/** A story as choices have it. */
export function storyOf(choices: Choices): Story {
  const schemas = schemasOf(choices);
  const steps: Step[] = [];
  let current = schemas;
  const length = 2 + choices.below(choices.once(10) ? 24 : 8);
  for (let at = 0; at < length; at++) {
    const version = choices.of(...Object.keys(current));
    if (choices.once(40)) {
      const next = choices.once(2) ? schemasOf(choices) : { v1: current.v1 ?? null };
      current = next;
      steps.push({ ...toStep(choices, at, version), op: 'schemas', schemas: next });
    } else steps.push(writeOf(choices, { at, version, schemas: current, isFirst: at === 0 }));
  }
  return { schemas, reset: { '': ['status'], status: ['spec', 'metadata.labels'] }, steps };
}

const toStep = (choices: Choices, at: number, version: string): Omit<Step, 'op'> => ({
  version,
  manager: choices.of('m1', 'm2', 'm3', 'kubectl'),
  subresource: choices.once(6) ? 'status' : '',
  force: choices.once(3),
  time: new Date(Date.UTC(2020, 0, 1, 0, 0, at)).toISOString().replace('.000Z', 'Z'),
});

interface Write {
  readonly at: number;
  readonly version: string;
  readonly schemas: Schemas;
  readonly isFirst: boolean;
}

function writeOf(choices: Choices, { at, version, schemas, isFirst }: Write): Step {
  const step = toStep(choices, at, version);
  const object = objectOf(choices, schemas, version);
  if (choices.once(2)) {
    const isUpdate = !choices.once(4);
    const many = choices.once(3) ? { manager: `m${choices.below(16)}` } : {};
    const metadata: Record<string, unknown> = { ...(object.metadata as Json), ...(!isFirst && { uid: '1' }) };
    if (choices.once(8)) metadata.managedFields = entriesOf(choices, version);
    const sent = { ...object, metadata };
    const said = choices.once(6) ? annotated(choices, sent, objectOf(choices, schemas, version)) : sent;
    if (isUpdate || isFirst) return { ...step, ...many, op: 'update', object: said };
    return { ...step, op: 'extract' };
  }
  const metadata = { ...(object.metadata as Json) };
  if (choices.once(60)) metadata.managedFields = [];
  return { ...step, op: 'apply', object: { ...object, metadata } };
}

/** What came of a step. */
export interface Outcome {
  readonly object?: Json;
  readonly conflicts?: readonly { readonly message: string; readonly field: string }[];
  readonly message?: string;
  readonly error?: string;
  readonly code?: number;
  readonly micros?: number;
}

/** What our side makes of a story. */
export function tell(
  story: Story,
  outcomeOf: (manager: FieldManager, live: Json | undefined, step: Step) => Outcome,
): readonly Outcome[] {
  let { schemas } = story;
  let live: Json | undefined;
  let managers = new Map<string, FieldManager>();
  return story.steps.map((step) => {
    if (step.op === 'schemas') {
      schemas = step.schemas as Schemas;
      managers = new Map();
      return {};
    }
    const apiVersion = `example.com/${step.version}`;
    let manager = managers.get(step.version);
    if (!manager) {
      const isDeduced = Object.values(schemas).every((schema) => schema === null);
      const versions = Object.fromEntries(
        Object.entries(schemas).map(([version, schema]) => [
          `example.com/${version}`,
          isDeduced ? undefined : (schema ?? { type: 'object' }),
        ]),
      );
      manager = new FieldManager({
        stored: new StoredParts(),
        schema: versions[apiVersion],
        apiVersion,
        versions,
        reset: (subresource, version) => (version === apiVersion ? (story.reset[subresource] ?? []) : []),
      });
      managers.set(step.version, manager);
    }
    const outcome = outcomeOf(manager, live && { ...live, apiVersion }, step);
    if (step.op !== 'extract' && outcome.object) live = outcome.object;
    return outcome;
  });
}

/** A step as our field manager does it. */
export function ourOutcome(manager: FieldManager, live: Json | undefined, step: Step): Outcome {
  const by = { ...step, apiVersion: `example.com/${step.version}` };
  try {
    if (step.op === 'extract') {
      return { object: (live && atOnce(manager.extracted(live, step.manager, step.subresource))) ?? {} };
    }
    const object = step.object as Json;
    return { object: atOnce(step.op === 'apply' ? manager.applied(live, object, by) : manager.updated(live, object, by)) };
  } catch (error) {
    const { name, conflicts, message, status } = error as Error & {
      conflicts?: readonly { manager: string; field: string }[];
      status?: { code: number; message: string };
    };
    if (name === 'ApplyConflict') {
      return {
        code: 409,
        message,
        conflicts: (conflicts ?? []).map(({ manager: by, field }) => ({ message: `conflict with ${by}`, field })),
      };
    }
    if (name === 'TypedError' && step.op === 'extract') return { code: 400, error: message };
    if (!status) throw error;
    return { code: status.code, error: status.message };
  }
}
