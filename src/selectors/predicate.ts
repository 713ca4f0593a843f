import { callable, checkOptions, wholeNumber } from '../watch/errors.ts';
import { FieldSelector, type Fields } from './field-selector.ts';
import { LabelSelector } from './label-selector.ts';
import type { Labels } from './syntax.ts';

/** The parts of an object that selectors use. */
export interface Attributes {
  readonly labels?: Labels | null | undefined;
  readonly fields?: Fields | null | undefined;
}

/** Options of a {@link SelectionPredicate}. */
export interface SelectionPredicateOptions<T> {
  /** Default: everything. */
  readonly labels?: LabelSelector | undefined;
  /** Default: everything. */
  readonly fields?: FieldSelector | undefined;
  /** The labels and fields of an object; default `attributesOfMeta`. If it throws, so does `matches`. */
  readonly attributesOf?: ((object: T) => Attributes) | undefined;
  /** The labels that a storage has an index for; default none. */
  readonly indexLabels?: readonly string[] | undefined;
  /** The fields that a storage has an index for; default none. */
  readonly indexFields?: readonly string[] | undefined;
  /** The number of objects in a page; default 0, which means all. */
  readonly limit?: number | undefined;
  /** Where the page begins: the `continue` of the previous page. Default: at the beginning. */
  readonly continue?: string | undefined;
  /** Whether a watch may contain BOOKMARKs; default false. */
  readonly allowWatchBookmarks?: boolean | undefined;
}

/** A part of an index that contains all objects that a predicate selects: `{ index: 'f:spec.nodeName', value: 'node-1' }`. */
interface IndexHint {
  /** `f:` or `l:`, and the name of the field or label. */
  readonly index: string;
  readonly value: string;
}

/** The part of an object that `attributesOfMeta` reads. */
interface WithMeta {
  readonly metadata?: { readonly name?: string; readonly namespace?: string; readonly labels?: Labels };
}

/** The attributes that every Kubernetes object has: its labels, `metadata.name` and `metadata.namespace`. */
export function attributesOfMeta(object: unknown): Attributes {
  const { name = '', namespace = '', labels } = (object as WithMeta | null | undefined)?.metadata ?? {};
  return { labels, fields: { 'metadata.name': name, 'metadata.namespace': namespace } };
}

/**
 * What a list or a watch asks for: which objects, and how many at a time. A storage matches objects with it, and uses it for
 * shortcuts: a single name, a single namespace, an index. Upstream: `storage.SelectionPredicate`.
 */
export class SelectionPredicate<T = unknown> {
  readonly labels: LabelSelector;
  readonly fields: FieldSelector;
  readonly indexLabels: readonly string[];
  readonly indexFields: readonly string[];
  readonly limit: number;
  readonly continue: string;
  readonly allowWatchBookmarks: boolean;
  private readonly attributesOf: (object: T) => Attributes;

  /** @throws {WatchError} INVALID_ARGUMENT for an option of the wrong kind. */
  constructor(options: SelectionPredicateOptions<T> = {}) {
    const { labels, fields, attributesOf, indexLabels, indexFields, limit, allowWatchBookmarks } = checkOptions(options, OPTIONS);
    this.labels = labels ?? LabelSelector.everything();
    this.fields = fields ?? FieldSelector.everything();
    this.attributesOf = callable('attributesOf', attributesOf) ?? attributesOfMeta;
    this.indexLabels = indexLabels ?? [];
    this.indexFields = indexFields ?? [];
    this.limit = wholeNumber('limit', limit ?? 0);
    this.continue = options.continue ?? '';
    this.allowWatchBookmarks = allowWatchBookmarks ?? false;
  }

  /** Whether both selectors are empty, so that every object matches. */
  get isEmpty(): boolean {
    return this.labels.isEmpty && this.fields.isEmpty;
  }

  /** Whether an object is selected. If everything is selected, `attributesOf` is not called. */
  matches(object: T): boolean {
    return this.isEmpty || this.matchesAttributes(this.attributesOf(object));
  }

  /** The same for known attributes, for example those of an object's previous state. */
  matchesAttributes({ labels, fields }: Attributes): boolean {
    return this.labels.matches(labels) && this.fields.matches(fields);
  }

  /** The name of the only object that can be selected, if the fields say so, and this is not a further page. */
  get singleName(): string | undefined {
    return this.continue === '' ? this.fields.requiresExactMatch('metadata.name') : undefined;
  }

  /** The only namespace from which objects can be selected, if the fields say so, and this is not a further page. */
  get singleNamespace(): string | undefined {
    return this.continue === '' ? this.fields.requiresExactMatch('metadata.namespace') : undefined;
  }

  /**
   * The index values under which all selectable objects are found: one for each indexed field and label for which the selectors
   * require one value. A request for one `namespace` also requires that value of the field.
   */
  indexHints(namespace: string = ''): IndexHint[] {
    const ofFields = this.indexFields.map((name): [string, string | undefined] => {
      const pinned = this.fields.requiresExactMatch(name);
      return [`f:${name}`, pinned ?? (name === 'metadata.namespace' && namespace !== '' ? namespace : undefined)];
    });
    const ofLabels = this.indexLabels.map((name): [string, string | undefined] => [
      `l:${name}`,
      this.labels.requiresExactMatch(name),
    ]);
    return [...ofFields, ...ofLabels].flatMap(([index, value]) => (value === undefined ? [] : [{ index, value }]));
  }
}

const OPTIONS = [
  'labels',
  'fields',
  'attributesOf',
  'indexLabels',
  'indexFields',
  'limit',
  'continue',
  'allowWatchBookmarks',
] as const;
