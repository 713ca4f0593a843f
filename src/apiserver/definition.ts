/** A program's definition of each kind of object that its API server serves. Upstream: `CustomResourceDefinitionSpec`. */
import type { KubernetesObject } from '../cache/object.ts';

/** One kind of object that an API server serves. */
export interface ResourceDefinition<T extends KubernetesObject = KubernetesObject> {
  /** The API group, such as `orders.example.com`. Empty for the core group, as in `v1`. */
  readonly group: string;
  /** Such as `v1` or `v1beta2`. */
  readonly version: string;
  /** The name in URLs, such as `orders`. */
  readonly plural: string;
  /** Such as `Order`. */
  readonly kind: string;
  /** Default: the kind in lower case. */
  readonly singular?: string | undefined;
  /** What people type instead of the plural, such as `ord`. */
  readonly shortNames?: readonly string[] | undefined;
  /** Groups of resources that people ask for at once, such as `all`. */
  readonly categories?: readonly string[] | undefined;
  /** Default: the kind followed by `List`. */
  readonly listKind?: string | undefined;
  /** Whether objects are in namespaces. Default true. */
  readonly namespaced?: boolean | undefined;
  /**
   * Returns what is wrong with an object; a write with any causes is refused with 422. `old` is undefined for a new object. If it
   * throws, or returns anything else, the write fails with 500, and only `onError` gets the error.
   */
  readonly validate?: Of<T, [old: T | undefined], ValidationResult | Promise<ValidationResult>> | undefined;
  /**
   * An OpenAPI v3 schema of the object, checked on every write and served to `kubectl explain`. Members that it allows but does
   * not name are kept; the `fieldValidation` of a write decides whether they are reported.
   */
  readonly schema?: JsonSchema | undefined;
  /** Whether `status` is a subresource: written only at its own path, and ignored elsewhere. Default false. */
  readonly status?: boolean | undefined;
  /** How many instances an object stands for: makes `scale` a subresource, as `kubectl scale` and autoscalers use it. Default: none. */
  readonly scale?: ScaleDefinition | undefined;
  /** The columns of tables after the name; `kubectl get` prints them. Default: the age, which they replace. */
  readonly columns?: readonly PrinterColumn<T>[] | undefined;
  /** Fields that field selectors may use in addition to `metadata.name` and `metadata.namespace`; the cache indexes each of them. */
  readonly fields?: Readonly<Record<string, Of<T, [], string | undefined>>> | undefined;
}

/** Where in an object the numbers of its `scale` are. Upstream: `CustomResourceSubresourceScale`. */
export interface ScaleDefinition {
  /** The path of the number that is wanted, below `.spec`: such as `.spec.replicas`. */
  readonly specReplicasPath: string;
  /** The path of the number that there is, below `.status`: such as `.status.replicas`. While there is none, it is 0. */
  readonly statusReplicasPath: string;
  /** The path of the label selector of the instances, as a string, below `.spec` or `.status`. Default: none, as for no autoscaler. */
  readonly labelSelectorPath?: string | undefined;
}

/**
 * A function of an object of the kind. A method's type, whose parameters are compared both ways: a server keeps definitions of several
 * kinds in one array, and calls each only with objects of its own.
 */
type Of<T, More extends unknown[], Result> = { of(object: T, ...more: More): Result }['of'];

/** A definition with a JSON schema instead of the function `validate`: the same as `schema`. */
export interface SchemaDefinition extends Omit<ResourceDefinition, 'validate' | 'schema'> {
  /** Not a function, although a function is an object as well. */
  readonly validate: JsonSchema & { readonly call?: never };
  readonly schema?: undefined;
}

/** What is wrong with an object: undefined for nothing, or a cause for each field. */
export type ValidationResult = readonly FieldCause[] | undefined;

/** What is wrong with one field. Upstream: `metav1.StatusCause`. */
export interface FieldCause {
  /** The path, such as `spec.items[0].count`. */
  readonly field: string;
  readonly message: string;
  /** In one word. Default `FieldValueInvalid`. */
  readonly reason?: string | undefined;
}

/** A JSON schema, as in OpenAPI v3. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** The types of columns: the one list of them. */
export const COLUMN_TYPES = ['string', 'integer', 'number', 'boolean', 'date'] as const;

/** A column of a table. Upstream: `CustomResourceColumnDefinition`. */
export interface PrinterColumn<T extends KubernetesObject = KubernetesObject> {
  readonly name: string;
  readonly type: (typeof COLUMN_TYPES)[number];
  /**
   * What the cell shows. In a column of type `date`, the time since then. If it throws an error, the cell is empty, and `onError`
   * is called with the error, once for each column.
   */
  readonly value: Of<T, [], string | number | bigint | boolean | Date | null | undefined>;
  readonly description?: string | undefined;
  /** Columns above 0 are shown only with `-o wide`. Default 0. */
  readonly priority?: number | undefined;
}
