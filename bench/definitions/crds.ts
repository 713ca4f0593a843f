// 60 definitions as clusters have them, by scenario and size. None of them is copied: fields are made up.
import type { KubernetesObject } from '../../src/cache/object.ts';

type Schema = Readonly<Record<string, unknown>>;

/** What makes the definitions of a project different from those of others. */
interface Project {
  readonly group: string;
  readonly versions: number;
  /** Kilobytes of each definition, as JSON. */
  readonly kilobytes: readonly number[];
  /** Whether fields have rules in CEL, defaults, lists that are maps. */
  readonly has?: readonly ('rules' | 'defaults' | 'maps')[];
}

/** Of the forms of Gateway API, Cluster API, cert-manager, Argo and the Prometheus operator. */
const PROJECTS: readonly Project[] = [
  {
    group: 'gateway.example.com',
    versions: 2,
    kilobytes: [12, 9, 45, 90, 220, 140, 25, 60, 70, 40],
    has: ['rules', 'defaults', 'maps'],
  },
  {
    ...{ group: 'cluster.example.com', versions: 3, has: ['maps'] },
    kilobytes: [55, 80, 35, 40, 45, 30, 12, 100, 90, 60, 50, 40, 20, 15, 25, 60, 70, 30, 35, 20],
  },
  { group: 'certs.example.com', versions: 1, kilobytes: [30, 20, 25, 15, 200, 200] },
  { group: 'flows.example.com', versions: 1, kilobytes: [8, 8, 8, 9, 10, 8, 20, 18, 60, 210, 15, 120, 60, 12] },
  {
    group: 'monitoring.example.com',
    versions: 1,
    kilobytes: [35, 260, 300, 45, 12, 40, 250, 55, 160, 30],
    has: ['defaults', 'maps'],
  },
];

const WORDS =
  'the name of a field that says when an object is ready and which of its parts are used by those who wait for it'.split(' ');
const NAMES =
  'image selector policy target timeout retries labels match host port weight secret template rules mode source'.split(' ');

/** Makes the fields of one definition. It makes the same ones each time. */
class Fields {
  readonly #has: ReadonlySet<string>;
  #seed: number;

  constructor({ has = [] }: Project, seed: number) {
    this.#has = new Set(has);
    this.#seed = seed;
  }

  /** A whole number below another one. */
  #below(limit: number): number {
    this.#seed = (Math.imul(this.#seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#seed / 2 ** 32) * limit);
  }

  #described(schema: Schema): Schema {
    const words = Array.from({ length: 5 + this.#below(45) }, () => WORDS[this.#below(WORDS.length)]);
    return { description: words.join(' '), ...schema };
  }

  #leaf(): Schema {
    switch (this.#below(9)) {
      case 0:
        return { type: 'boolean', ...(this.#has.has('defaults') && { default: true }) };
      case 1:
        return { type: 'integer', format: 'int32', minimum: 1, maximum: 65_535 };
      case 2:
        return { anyOf: [{ type: 'integer' }, { type: 'string' }], 'x-kubernetes-int-or-string': true };
      case 3:
        return {
          type: 'string',
          enum: ['Always', 'IfNotPresent', 'Never'],
          ...(this.#has.has('defaults') && { default: 'Always' }),
        };
      case 4:
        return { type: 'string', maxLength: 253, minLength: 1, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]+)*$' };
      case 5:
        return { type: 'array', items: { type: 'string' }, maxItems: 64, 'x-kubernetes-list-type': 'set' };
      case 6:
        return { type: 'object', additionalProperties: { type: 'string' } };
      case 7:
        return { type: 'string', format: 'date-time' };
      default:
        return { type: 'string' };
    }
  }

  /** An object, of about so many characters. */
  object(chars: number, depth: number = 0): Schema {
    const properties: Record<string, Schema> = {};
    for (let left = chars, at = 0; left > 0; at++) {
      const name = `${NAMES[this.#below(NAMES.length)]}${at}`;
      const inner = Math.min(left - 200, 600 + this.#below(chars / 2));
      const isLeaf = depth > 8 || inner < 600 || this.#below(3) > 0;
      const field = this.#described(isLeaf ? this.#leaf() : this.#inner(inner, depth));
      properties[name] = field;
      left -= JSON.stringify(field).length + name.length;
    }
    const [first] = Object.keys(properties);
    const rules = [{ message: 'is wrong', rule: `!has(self.${first}) || self.${first} == self.${first}` }];
    const isRuled = this.#has.has('rules') && depth > 0 && this.#below(4) === 0;
    return { type: 'object', properties, ...(isRuled && { 'x-kubernetes-validations': rules }) };
  }

  #inner(chars: number, depth: number): Schema {
    if (this.#below(2) === 0) return this.object(chars, depth + 1);
    const items = this.object(chars, depth + 1);
    if (!this.#has.has('maps')) return { type: 'array', items };
    const properties = { ...(items.properties as Schema), name: { type: 'string' } };
    const keyed = { ...items, properties, required: ['name'] };
    const keys = { 'x-kubernetes-list-map-keys': ['name'], 'x-kubernetes-list-type': 'map' };
    return { type: 'array', items: keyed, maxItems: 16, ...keys };
  }
}

function crdOf(project: Project, at: number): KubernetesObject {
  const { group, versions, kilobytes } = project;
  const kind = `${group.slice(0, 1).toUpperCase()}${group.slice(1, group.indexOf('.'))}Kind${at}`;
  const plural = `${kind.toLowerCase()}s`;
  const chars = ((kilobytes[at] ?? 0) * 1_000) / versions;
  const head = { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: { type: 'object' } };
  const versionOf = (number: number): object => {
    const fields = new Fields(project, at * 8 + number + group.length);
    const properties = { ...head, spec: fields.object(chars * 0.8), status: fields.object(chars * 0.2) };
    return {
      ...{ name: `v${number}`, served: true, storage: number === 1, subresources: { status: {} } },
      schema: { openAPIV3Schema: { description: `A ${kind}.`, type: 'object', properties } },
      additionalPrinterColumns: [{ name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' }],
    };
  };
  return {
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: `${plural}.${group}` } },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural, kind },
      versions: Array.from({ length: versions }, (_, i) => versionOf(i + 1)),
    },
  } as KubernetesObject;
}

/** All of them, made anew. */
export const crds = (): readonly KubernetesObject[] =>
  PROJECTS.flatMap((project) => project.kilobytes.map((_, at) => crdOf(project, at)));
