/**
 * Writes TypeScript from schemas.
 *
 *     a kind                ---> an interface with apiVersion, kind and metadata, and a constant that names the kind
 *     an object inside      ---> an interface of its own, named by its path: WebsiteSpec, WebsiteSpecPortsItem
 *     a component           ---> an interface, or a type, named as its schema
 *
 * - A type covers what a server may return and what it accepts. Anything uncertain is optional; anything unknown is `unknown`.
 * - `metadata.name` is required and all other metadata optional, so that one type is enough to read and to create.
 * - Names of globals, such as `Record`, are not used, because a kind may have such a name.
 * - Members are in alphabetical order, so that servers and files may have them in any. Nothing depends on the time or the place.
 *
 * Written by hand: json-schema-to-typescript 16 installs 25 MB in 15 packages, writes nested objects without names, and leaves
 * out defaults and limits; it would replace 200 of these lines, and need half as many to prepare schemas for it.
 */
import type { JsonSchema } from '../../apiserver/definition.ts';
import { OBJECT_META, OPEN, SHARED, text } from '../../apiserver/documents/schemas.ts';
import { apiVersionOf } from '../../cache/resource-client.ts';
import { excerpt } from '../../pages/words.ts';
import { byCodeUnit } from '../../selectors/syntax.ts';
import { harmless, printable } from '../lines.ts';
import { quote } from '../usage.ts';
import { type Components, type DescribedKind, recordOf } from './described.ts';
import { Names, pascal, sortedComponents } from './names.ts';

/** What to write: the kinds, and what they may refer to. */
interface Selection {
  readonly kinds: readonly DescribedKind[];
  /** All kinds that there are: some may be parts of the others. */
  readonly known: readonly DescribedKind[];
  readonly components: Components;
}

const HEADER = '// Written by "watchmux types". Changes are lost when it is written again.\n';
const REFERENCE = '#/components/schemas/';
const MAX_DEPTH = 100;
/** For all types, including names. A kube-apiserver has some 2 million. */
const MAX_CHARS = 67_108_864;
/** Kubernetes' own components. Newer servers know more values of their enumerations. */
const BUILT_IN = /^io\.k8s\.(api|apimachinery|kube-aggregator|apiextensions-apiserver)\./;
const QUANTITY = 'io.k8s.apimachinery.pkg.api.resource.Quantity';
const MANAGED_FIELDS_ENTRY = 'io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry';

/** The metadata of objects is the same wherever a kind was read. */
const COMMON: Components = new Map([
  ...Object.entries(SHARED),
  [
    OBJECT_META,
    {
      ...SHARED[OBJECT_META],
      properties: {
        ...recordOf(SHARED[OBJECT_META]?.properties),
        managedFields: {
          description: 'Who manages which fields.',
          type: 'array',
          items: { $ref: `${REFERENCE}${MANAGED_FIELDS_ENTRY}` },
        },
      },
    },
  ],
  [
    MANAGED_FIELDS_ENTRY,
    {
      description: 'Who manages a set of fields.',
      type: 'object',
      properties: {
        apiVersion: text('The version in which the fields are named.'),
        fieldsType: text('FieldsV1.'),
        fieldsV1: { description: 'The fields, as a tree.', type: 'object' },
        manager: text('The name of the manager.'),
        operation: text('Apply or Update.'),
        subresource: text('Where the fields were written; empty: at the object itself.'),
        time: { ...text('When the manager last wrote the fields.'), format: 'date-time' },
      },
    },
  ],
  // A schema also allows numbers, but servers answer with a text.
  [QUANTITY, { ...text('A number with a unit, such as 500m, 1.5 or 2Gi.') }],
]);

/** Writes the interfaces of these kinds, and of everything they refer to. */
export function writeTypes(selection: Selection): string {
  return new TypeWriter(selection).write();
}

/** Where a schema stands, and what it belongs to. */
interface Place {
  /** What an interface of it is called. */
  readonly name: string;
  readonly depth: number;
  /** Newer servers may know more values of its enumerations. */
  readonly isOpenEnded: boolean;
}

class TypeWriter {
  readonly #selection: Selection;
  readonly #names: Names = new Names();
  /** The names of components. */
  readonly #nameOf: Map<string, string> = new Map();
  readonly #written: string[] = [];
  #charsLeft: number = MAX_CHARS;
  /** What is being written. */
  #now: string = '';

  constructor(selection: Selection) {
    this.#selection = selection;
  }

  write(): string {
    const { known } = this.#selection;
    const chosen = new Set(this.#selection.kinds);
    const reached = this.#reached();
    const isReached = ({ component }: DescribedKind): boolean => component !== undefined && reached.has(component);
    const kinds = this.#names.takeAll(known.filter((kind) => chosen.has(kind) || isReached(kind)));
    for (const [{ component }, { name }] of kinds) if (component !== undefined) this.#nameOf.set(component, name);
    const parts = this.#names.takeAll(sortedComponents([...reached].filter((component) => !this.#nameOf.has(component))));
    for (const [{ component }, { name }] of parts) this.#nameOf.set(component, name);
    for (const [kind, { name, isBest }] of kinds) {
      const constant = chosen.has(kind) ? `\n${this.#constant(kind, { name, isBest })}` : '';
      const at = this.#written.length;
      this.#now = `${kind.kind} of ${kind.source}`;
      this.#kind(kind, { name, depth: 0, isOpenEnded: BUILT_IN.test(kind.component ?? '') });
      this.#written[at] += constant;
    }
    for (const [{ component }, { name }] of parts) {
      this.#now = `the schema ${quote(component)}`;
      this.#named(this.#schemaOf(component), { name, depth: 0, isOpenEnded: BUILT_IN.test(component) });
    }
    const [hasKinds, hasTypes] = [chosen.size > 0, [...chosen].some(({ plural }) => plural !== undefined)];
    const imported = ['type Kind', 'kind', ...(hasTypes ? ['type ResourceType'] : [])].join(', ');
    const imports = hasKinds ? `import { ${imported} } from 'watchmux/operator';\n` : '';
    return [HEADER + imports, ...this.#written].join('\n');
  }

  /** The components that the chosen kinds consist of, directly or not. */
  #reached(): Set<string> {
    const reached = new Set([OBJECT_META]);
    const waiting: unknown[] = [this.#schemaOf(OBJECT_META), ...this.#selection.kinds.map(({ schema }) => schema)];
    const seen = new Set<unknown>();
    for (let each = waiting.pop(); each !== undefined; each = waiting.pop()) {
      if (seen.has(each)) continue;
      seen.add(each);
      const component = referenceOf(each as JsonSchema);
      if (component !== undefined && !reached.has(component)) {
        reached.add(component);
        waiting.push(this.#schemaOf(component));
      }
      for (const value of Object.values(each as object)) if (typeof value === 'object' && value !== null) waiting.push(value);
    }
    return reached;
  }

  /** Counts everything written, even temporarily, so that no schema takes all time and memory. */
  #spend(text: string): string {
    this.#charsLeft -= text.length;
    if (this.#charsLeft < 0)
      throw new Error(`${this.#now}: expected types of at most ${MAX_CHARS} characters, together with all others`);
    return text;
  }

  #schemaOf(component: string): JsonSchema {
    const schema = COMMON.get(component) ?? this.#selection.components.get(component);
    if (schema === undefined) throw new Error(`there is no schema ${quote(component)}, but another one refers to it`);
    return schema;
  }

  #constant(described: DescribedKind, { name, isBest }: { readonly name: string; readonly isBest: boolean }): string {
    const { group, version, kind, plural, namespaced } = described;
    const constant = this.#names.takeConstant(described, isBest);
    if (plural === undefined) {
      const named = `{ apiVersion: ${literal(apiVersionOf(described))}, kind: ${literal(kind)} }`;
      return `export const ${constant}: Kind<${name}> = kind<${name}>(${named});\n`;
    }
    const entries = { ...(group !== '' && { group }), version, plural, kind };
    const members = Object.entries(entries).map(([key, value]) => `${key}: ${literal(value)}`);
    const type = `{\n${[...members, `namespaced: ${namespaced}`].map((each) => `  ${each},\n`).join('')}}`;
    return `export const ${constant}: ResourceType & Kind<${name}> = kind<${name}>(${type});\n`;
  }

  #kind(described: DescribedKind, place: Place): void {
    const { schema, kind, kept, deprecated } = described;
    const { apiVersion: _, kind: __, metadata: ___, ...properties } = recordOf(schema.properties);
    const meta = this.#nameOf.get(OBJECT_META) ?? '';
    const members = [
      `  apiVersion?: ${literal(apiVersionOf(described))};\n`,
      `  kind?: ${literal(kind)};\n`,
      kept ? `  metadata: ${meta} & { name: string };\n` : `  metadata?: ${meta};\n`,
    ];
    const open = schema[OPEN] === true || schema.properties === undefined;
    const tags = deprecated === undefined ? [] : [`@deprecated ${deprecated}`];
    this.#interface({ ...schema, properties, [OPEN]: open }, { place, members, docs: [...descriptionOf(schema), ...tags] });
  }

  /** Writes a component: an interface if it is an object with members, otherwise a type alias. */
  #named(schema: JsonSchema, place: Place): void {
    if (hasMembers(schema)) {
      this.#interface(schema, { place, docs: descriptionOf(schema) });
      return;
    }
    // Its parts are written after it, like those of interfaces.
    const at = this.#written.push('') - 1;
    const type = this.#type(schema, { ...place, name: `${place.name}Value` });
    this.#written[at] = `${comment([...descriptionOf(schema), ...limitsOf(schema)], '')}export type ${place.name} = ${type};\n`;
  }

  #interface(schema: JsonSchema, { place, members = [], docs = [] }: InterfaceParts): void {
    const at = this.#written.push('') - 1;
    const required = new Set(Array.isArray(schema.required) ? (schema.required as unknown[]) : []);
    const own = Object.entries(recordOf(schema.properties)).sort(([one], [other]) => byCodeUnit(one, other));
    const lines = own.map(([name, value]) => {
      const property = recordOf(value);
      const mark = required.has(name) ? '' : '?';
      const type = this.#type(property, { ...place, name: this.#spend(place.name + pascal(name)), depth: place.depth + 1 });
      const said = [...descriptionOf(property), ...limitsOf(property), ...(mark === '' ? [] : defaultOf(property))];
      const inherited = mark === '?' && INHERITED.has(name) ? ` | {}[${literal(name)}]` : '';
      return this.#spend(`${comment(said, '  ')}  ${keyOf(name)}${mark}: ${type}${inherited};\n`);
    });
    const open = schema[OPEN] === true || isOpen(schema.additionalProperties) ? ['  [key: string]: unknown;\n'] : [];
    this.#written[at] = `${comment(docs, '')}export interface ${place.name} {\n${[...members, ...lines, ...open].join('')}}\n`;
  }

  /** The type of a value. */
  #type(schema: JsonSchema, place: Place): string {
    return this.#spend(this.#alternatives(schema, place).join(' | '));
  }

  /** The types of which a value has one. */
  #alternatives(schema: JsonSchema, place: Place): readonly string[] {
    if (place.depth > MAX_DEPTH) throw new Error(`${excerpt(place.name)}: expected a schema of at most ${MAX_DEPTH} levels`);
    const types = this.#core(schema, place);
    return schema.nullable === true && !types.includes('null') ? [...types, 'null'] : types;
  }

  #core(schema: JsonSchema, place: Place): readonly string[] {
    const component = referenceOf(schema);
    if (component !== undefined) return [this.#nameOf.get(component) ?? 'unknown'];
    if (schema['x-kubernetes-int-or-string'] === true || schema.format === 'int-or-string') return ['number', 'string'];
    const { type, allOf, anyOf, oneOf } = schema;
    const values = valuesOf(schema.enum);
    if (values.length > 0) return [...values, ...(place.isOpenEnded && type === 'string' ? ['(string & {})'] : [])];
    if (Array.isArray(type))
      return this.#union(
        Array.from(new Set<unknown>(type), (each) => ofType(schema, each)),
        place,
      );
    if (schema['x-kubernetes-embedded-resource'] === true) return [this.#embedded(schema, place)];
    if (type === undefined && schema.properties === undefined) {
      if (Array.isArray(allOf)) return [this.#intersection(allOf, place)];
      if (Array.isArray(oneOf ?? anyOf)) return this.#union((oneOf ?? anyOf) as unknown[], place);
    }
    return [this.#plain(schema, place)];
  }

  #union(schemas: readonly unknown[], place: Place): readonly string[] {
    const types = new Set(schemas.flatMap((each, at) => this.#alternatives(recordOf(each), nth(place, at))));
    return types.has('unknown') ? ['unknown'] : [...types];
  }

  #intersection(schemas: readonly unknown[], place: Place): string {
    const types = new Set(schemas.map((each, at) => grouped(this.#type(recordOf(each), nth(place, at)))));
    return types.has('unknown') ? 'unknown' : [...types].join(' & ');
  }

  #plain(schema: JsonSchema, place: Place): string {
    const depth = place.depth + 1;
    switch (schema.type) {
      case 'string':
      case 'boolean':
      case 'null':
        return schema.type;
      case 'integer':
      case 'number':
        return 'number';
      case 'array':
        return `${grouped(this.#type(recordOf(schema.items), { ...place, depth, name: `${place.name}Item` }))}[]`;
    }
    if (hasMembers(schema)) {
      const name = this.#names.take([place.name]);
      this.#interface(schema, { place: { ...place, name } });
      return name;
    }
    const { additionalProperties } = schema;
    if (schema[OPEN] === true && additionalProperties === undefined) {
      return schema.type === 'object' ? '{ [key: string]: unknown }' : 'unknown';
    }
    if (!isOpen(additionalProperties)) return schema.type === 'object' ? 'object' : 'unknown';
    const value = this.#type(recordOf(additionalProperties), { ...place, depth, name: `${place.name}Value` });
    return `{ [key: string]: ${value} }`;
  }

  /** A whole object within another one. */
  #embedded(schema: JsonSchema, place: Place): string {
    const { apiVersion: _, kind: __, metadata: ___, ...properties } = recordOf(schema.properties);
    const name = this.#names.take([place.name]);
    const isNamed = Array.isArray(schema.required) && schema.required.includes('metadata');
    const metadata = `metadata${isNamed ? '' : '?'}: ${this.#nameOf.get(OBJECT_META)}`;
    const members = ['apiVersion: string', 'kind: string', metadata].map((each) => `  ${each};\n`);
    this.#interface({ ...schema, properties }, { place: { ...place, name }, members });
    return name;
  }
}

/** What every object has, so that an optional member of that name is never just absent. */
const INHERITED: ReadonlySet<string> = new Set([
  ...['constructor', 'toString', 'toLocaleString', 'valueOf'],
  ...['hasOwnProperty', 'isPrototypeOf', 'propertyIsEnumerable'],
]);

/** What an interface has in addition to its schema. */
interface InterfaceParts {
  readonly place: Place;
  readonly members?: readonly string[];
  /** Nested objects are described where they are members. */
  readonly docs?: readonly string[];
}

/** The place of one of several schemas of a value. */
const nth = (place: Place, at: number): Place => ({
  ...place,
  depth: place.depth + 1,
  name: at === 0 ? place.name : `${place.name}${at + 1}`,
});

/** What a schema of several types says about one of them: members apply to objects, items to lists. */
function ofType(schema: JsonSchema, type: unknown): JsonSchema {
  if (type === 'object') return { ...schema, type };
  return type === 'array' ? { type, items: schema.items } : { type };
}

/** The component that a schema stands for. Upstream wraps references, so that they may have descriptions. */
function referenceOf({ $ref, allOf, type }: JsonSchema): string | undefined {
  const isWrapped = $ref === undefined && type === undefined && Array.isArray(allOf) && allOf.length === 1;
  const reference = isWrapped ? recordOf(allOf[0]).$ref : $ref;
  return typeof reference === 'string' && reference.startsWith(REFERENCE) ? reference.slice(REFERENCE.length) : undefined;
}

const hasMembers = (schema: JsonSchema): boolean => Object.keys(recordOf(schema.properties)).length > 0;

const isOpen = (additional: unknown): boolean => additional === true || typeof additional === 'object';

/** A type to which something can be appended. */
const grouped = (type: string): string => (/ [|&] /.test(type) ? `(${type})` : type);

/** The literal types of an enumeration; none if one of its values has no literal type. */
function valuesOf(values: unknown): readonly string[] {
  if (!Array.isArray(values)) return [];
  const types = values.map((value: unknown) => {
    if (typeof value === 'string') return literal(value);
    if (value === null || typeof value === 'boolean' || (typeof value === 'number' && Number.isFinite(value)))
      return String(value);
    return undefined;
  });
  const known = types.filter((each) => each !== undefined);
  return known.length === types.length ? [...new Set(known)] : [];
}

/** A text as TypeScript, which has no effect on a terminal or an editor. */
const literal = (value: string): string => (/^[\w ./:-]*$/.test(value) ? `'${value}'` : harmless(JSON.stringify(value)));

const keyOf = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name));

const descriptionOf = ({ description }: JsonSchema): readonly string[] => (typeof description === 'string' ? [description] : []);

/** What is said about values beyond their type. */
const LIMITS = [
  ...['format', 'minimum', 'maximum', 'multipleOf', 'minLength', 'maxLength', 'pattern', 'minItems', 'maxItems'],
  ...['minProperties', 'maxProperties'],
];

function limitsOf(schema: JsonSchema): readonly string[] {
  const limits = LIMITS.flatMap((name) => {
    const value = schema[name];
    if (typeof value !== 'string' && typeof value !== 'number') return [];
    const isExclusive = schema[`exclusive${name.charAt(0).toUpperCase()}${name.slice(1)}`] === true;
    return [`${name} ${name === 'pattern' ? `\`${value}\`` : value}${isExclusive ? ' (exclusive)' : ''}`];
  });
  const keys = schema['x-kubernetes-list-map-keys'];
  if (schema['x-kubernetes-list-type'] === 'set') limits.push('no item twice');
  if (Array.isArray(keys)) limits.push(`no two items with the same ${keys.join(', ')}`);
  if (limits.length === 0) return [];
  return ['', limits.join(', ')];
}

/** The default; except `{}`, which only leads to further defaults. */
function defaultOf(schema: JsonSchema): readonly string[] {
  const shown = schema.default === undefined ? '{}' : harmless(JSON.stringify(schema.default));
  return shown === '{}' ? [] : ['', `@defaultValue \`${shown}\``];
}

/** A comment with these texts, which cannot end it. */
function comment(texts: readonly string[], indent: string): string {
  const all = texts.flatMap((each) => each.split(/\r\n|[\n\r\u2028\u2029]/));
  const lines = all.map((line) => printable(line.replaceAll('\t', '  ')).replaceAll('*/', '*\\/').trimEnd());
  const isText = (line: string): boolean => line !== '';
  const safe = lines.slice(Math.max(lines.findIndex(isText), 0), lines.findLastIndex(isText) + 1);
  if (safe.length === 0) return '';
  if (safe.length === 1) return `${indent}/** ${safe[0]} */\n`;
  return `${indent}/**\n${safe.map((line) => `${indent} *${line === '' ? '' : ` ${line}`}\n`).join('')}${indent} */\n`;
}
