/** What a list or a watch asks for: which keys, and which objects under them. */
import { type KubernetesObject, metadataOf } from '../../cache/object.ts';
import { type FieldRule, type FieldSelector, fitsRule, type LabelSelector, rulesOf } from '../../selectors/index.ts';
import { predicateOf } from '../selection.ts';
import type { FieldFunctions } from '../storage.ts';

/** A field of the objects whose keys begin with a prefix. */
export interface Field {
  readonly prefix: string;
  /** The value of the field, empty if there is none; undefined if it cannot be read: then the object is not selected. */
  read(object: KubernetesObject): string | undefined;
}

/** A field and the value that it must have. */
export interface Pin {
  readonly field: Field;
  readonly value: string;
}

const NAME: Field = { prefix: '', read: (object) => metadataOf(object).name ?? '' };
const NAMESPACE: Field = { prefix: '', read: (object) => metadataOf(object).namespace ?? '' };

let readers = 0;

/**
 * The fields by which objects below a prefix can be selected. If a function of the application throws, that is reported once per
 * object.
 */
export class FieldReader<T extends KubernetesObject> {
  /** Distinguishes readers with different functions. */
  readonly id: number = readers++;
  readonly functions: FieldFunctions<T>;
  readonly #fields: ReadonlyMap<string, Field>;

  constructor(
    functions: FieldFunctions<T>,
    { prefix, onError }: { readonly prefix: string; readonly onError: (error: unknown) => void },
  ) {
    this.functions = functions;
    const own = Object.entries(functions).map(([name, readFrom]) => [name, toField(readFrom, prefix, onError)] as const);
    // Those with the fewest objects per value first, most likely: objects are found by the first field that is pinned.
    this.#fields = new Map([['metadata.name', NAME], ...own, ['metadata.namespace', NAMESPACE]]);
  }

  get(name: string): Field {
    return this.#fields.get(name) as Field;
  }

  get names(): Iterable<string> {
    return this.#fields.keys();
  }
}

function toField<T extends KubernetesObject>(
  readFrom: (object: T) => string | undefined,
  prefix: string,
  onError: (error: unknown) => void,
): Field {
  const told = new WeakSet<object>();
  return {
    prefix,
    read(object) {
      try {
        return readFrom(object as T) ?? '';
      } catch (error) {
        if (!told.has(object)) onError(error);
        told.add(object);
        return undefined;
      }
    },
  };
}

/** What a request asks for. */
export interface SelectionOptions {
  readonly prefix: string;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** A selection of objects. Selections with the same `id` select the same objects. */
export class Selection<T extends KubernetesObject> {
  /** The beginning of all keys. */
  readonly prefix: string;
  readonly id: string;
  /** The field value by which its objects are found; undefined if it pins none. */
  readonly pin: Pin | undefined;
  /** Whether it selects by the prefix alone. */
  readonly isWhole: boolean;
  readonly #labels: LabelSelector;
  readonly #rules: readonly { readonly field: Field; readonly rule: FieldRule }[];

  /** @throws {WatchError} REFUSED with code 400 for an invalid selector, or one that names an unknown field. */
  constructor(reader: FieldReader<T>, { prefix, ...selectors }: SelectionOptions) {
    const { labels, fields } = predicateOf<T>(selectors, reader.functions);
    this.prefix = prefix;
    this.isWhole = labels.isEmpty && fields.isEmpty;
    this.id = this.isWhole ? prefix : JSON.stringify([prefix, labels.canonical, fields.canonical, reader.id]);
    this.pin = pinOf(fields, reader);
    this.#labels = labels;
    this.#rules = rulesOf(fields.terms).map((rule) => ({ field: reader.get(rule.field), rule }));
  }

  matches(key: string, object: T): boolean {
    if (!key.startsWith(this.prefix)) return false;
    if (this.isWhole) return true;
    for (const { field, rule } of this.#rules) {
      const found = field.read(object);
      if (found === undefined || !fitsRule(rule, found)) return false;
    }
    return this.#labels.isEmpty || this.#labels.matches(metadataOf(object).labels);
  }
}

function pinOf<T extends KubernetesObject>(fields: FieldSelector, reader: FieldReader<T>): Pin | undefined {
  if (fields.isEmpty) return undefined;
  for (const name of reader.names) {
    const value = fields.requiresExactMatch(name);
    if (value !== undefined) return { field: reader.get(name), value };
  }
  return undefined;
}
