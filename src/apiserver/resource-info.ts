/** What the server knows about each kind that it serves: the definition with its defaults, and how to find it. */
import type { KubernetesObject } from '../cache/object.ts';
import { apiVersionOf, type GroupVersionKind, type NamespacedName } from '../cache/resource-client.ts';
import type { Storage } from '../storage/storage.ts';
import { checkOptions, invalid } from '../watch/errors.ts';
import type { Soon } from '../watch/fair-queue.ts';
import type { Admission } from './admission.ts';
import {
  type Convert,
  checkDefinition,
  isSchema,
  type JsonSchema,
  type PrinterColumn,
  type ResourceDefinition,
  type SchemaCheck,
  type SchemaDefinition,
  type ValidationResult,
} from './definition.ts';
import { aliasOf } from './kinds/events.ts';
import type { Asker } from './kinds/reviews.ts';
import { type Rows, toRows } from './subresources.ts';

/** A definition with all defaults filled in. */
export interface ResourceInfo<T extends KubernetesObject = KubernetesObject> extends Rows {
  readonly group: string;
  readonly version: string;
  /** `group/version`, or only the version in the group without a name. */
  readonly apiVersion: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly validate: ((object: T, old: T | undefined, part: string) => ValidationResult | Promise<ValidationResult>) | undefined;
  readonly schema: JsonSchema | undefined;
  readonly shape?: object | undefined;
  readonly preserveUnknownFields: boolean;
  readonly columns: readonly PrinterColumn<T>[] | undefined;
  readonly fields: Readonly<Record<string, (object: T) => string | undefined>>;
  /** The prefix of all keys of this resource in the storage. Versions of one resource share it. */
  readonly prefix: string;
  /** Whether other versions of this resource, whose objects have another `apiVersion`, are served as well. */
  readonly shared: boolean;
  /** The `apiVersion` in which objects are stored. Absent: the one in which they were written. */
  readonly storedAs?: string | undefined;
  /** Converts an object to another version of the kind. Absent: only `apiVersion` differs. */
  readonly convert?: Convert | undefined;
  /** All versions of a kind that is defined at run time, by `apiVersion`, served or not. */
  readonly versions?: ReadonlyMap<string, ResourceInfo> | undefined;
  /** The warning for clients of this version, if any. */
  readonly warning?: string | undefined;
  /** Changes whenever anything else that is published about it does. */
  readonly stamp?: string | undefined;
  /** The stored definition that defines it, if it was defined at run time. */
  readonly definition?: { readonly name: string; readonly uid: string; readonly terminating: boolean } | undefined;
  /** As messages name the resource, `orders.example.com`, and the kind, `Order.example.com`. */
  readonly resourceName: string;
  readonly kindName: string;
}

const NAMES = [
  ...(['group', 'version', 'plural', 'kind', 'singular', 'shortNames', 'categories', 'listKind', 'namespaced'] as const),
  ...(['validate', 'schema', 'preserveUnknownFields', 'status', 'scale', 'shape', 'columns', 'fields'] as const),
] as const;

/** Fills in defaults. Throws INVALID_ARGUMENT for a definition that cannot be served. */
export function toInfo<T extends KubernetesObject>(definition: ResourceDefinition<T> | SchemaDefinition): ResourceInfo<T> {
  const { group, version, plural, kind, namespaced = true, ...more } = checkOptions(definition, NAMES);
  checkDefinition(definition as ResourceDefinition);
  const { singular = kind.toLowerCase(), listKind = `${kind}List`, shortNames = [], categories = [], validate, schema } = more;
  const suffix = group && `.${group}`;
  return {
    ...{ group, version, plural, kind, namespaced, singular, listKind, shortNames, categories },
    apiVersion: apiVersionOf({ group, version }),
    validate: isSchema(validate) ? undefined : validate,
    schema: isSchema(validate) ? validate : schema,
    shape: more.shape,
    preserveUnknownFields: more.preserveUnknownFields ?? true,
    columns: more.columns,
    ...toRows(definition),
    fields: more.fields ?? {},
    prefix: `${group || 'core'}/${plural}/`,
    shared: false,
    resourceName: `${plural}${suffix}`,
    kindName: `${kind}${suffix}`,
    ...aliasOf(definition),
  };
}

/** Whether two definitions with the same storage prefix are versions of one resource. */
function isVersionOf(one: ResourceInfo, other: ResourceInfo): boolean {
  const isAlias = one.storedAs !== undefined || other.storedAs !== undefined;
  return (isAlias || one.group === other.group) && one.kind === other.kind && one.namespaced === other.namespaced;
}

/** What a server serves, by name. What a definition at run time adds is replaced in one step; requests keep what they found. */
export class Catalog {
  /** What the program serves. */
  readonly fixed: readonly ResourceInfo[];
  private readonly byPath: Map<string, ResourceInfo> = new Map();
  /** What definitions at run time add, by their names. */
  private readonly added: Map<string, readonly ResourceInfo[]> = new Map();
  private snapshot: readonly ResourceInfo[] | undefined;

  /** @throws {WatchError} INVALID_ARGUMENT for an invalid definition, and for two of the same name. */
  constructor(definitions: readonly (ResourceDefinition | SchemaDefinition)[], convert: Readonly<Record<string, Convert>> = {}) {
    const infos = definitions.map((each) => toInfo(each));
    this.fixed = infos.map((info) => ({
      ...info,
      shared: info.storedAs !== undefined || infos.filter(({ prefix }) => prefix === info.prefix).length > 1,
      convert: Object.hasOwn(convert, info.resourceName) ? convert[info.resourceName] : info.convert,
    }));
    for (const info of this.fixed) {
      const path = pathOf(info);
      if (this.byPath.has(path)) throw invalid('resources', path, 'each resource once');
      const other = this.fixed.find((each) => each.prefix === info.prefix && !isVersionOf(each, info));
      if (other) throw invalid('resources', path, `the kind, group and scope of ${other.apiVersion}/${other.plural}`);
      const twin = this.fixed.find(
        (each) => each.plural !== info.plural && each.apiVersion === info.apiVersion && each.kind === info.kind,
      );
      if (twin) throw invalid('resources', path, `a kind other than that of ${twin.apiVersion}/${twin.plural}`);
      this.byPath.set(path, info);
    }
  }

  /** All resources. The array is a new one after each change, and only then. */
  get all(): readonly ResourceInfo[] {
    this.snapshot ??= [...this.fixed, ...[...this.added.values()].flat()];
    return this.snapshot;
  }

  find(apiVersion: string, plural: string): ResourceInfo | undefined {
    return this.byPath.get(`${apiVersion}/${plural}`);
  }

  /** What a definition at run time adds at present. */
  addedBy(definition: string): readonly ResourceInfo[] {
    return this.added.get(definition) ?? [];
  }

  /** Replaces what a definition at run time adds. No other definition may have its paths. */
  replace(definition: string, infos: readonly ResourceInfo[]): void {
    for (const info of this.addedBy(definition)) this.byPath.delete(pathOf(info));
    if (infos.length === 0) this.added.delete(definition);
    else this.added.set(definition, infos);
    for (const info of infos) this.byPath.set(pathOf(info), info);
    this.snapshot = undefined;
  }

  /** The current form of a resource that a request has found before. */
  current(info: ResourceInfo): ResourceInfo | undefined {
    return this.byPath.get(pathOf(info));
  }

  /** The resource `namespaces` of `v1`; undefined if it is not served. */
  get namespaces(): ResourceInfo | undefined {
    return this.find('v1', 'namespaces');
  }

  /** By its plural, singular, kind or a short name, in any case, with or without a group and a version: `NAME.GROUP/VERSION`. */
  private called(name: string): ResourceInfo | undefined {
    const [, word = '', inGroup, ofVersion] = /^([^./]+)(?:\.([^/]+))?(?:\/([^/]+))?$/.exec(name) ?? [];
    const wanted = word.toLowerCase();
    // A version alone belongs to the group without a name.
    const asked = inGroup ?? (ofVersion === undefined ? undefined : '');
    return this.all.find(({ group, version, plural, singular, kind, shortNames }) => {
      if ((asked !== undefined && asked !== group) || (ofVersion !== undefined && ofVersion !== version)) return false;
      return [plural, singular, kind.toLowerCase(), ...shortNames].includes(wanted);
    });
  }

  /**
   * Finds a resource by `PLURAL.GROUP/VERSION`, or `PLURAL/VERSION` for the group without a name; or by its objects' kind; or by any name
   * that kubectl takes, as `Cluster.find` does.
   */
  named(name: string | GroupVersionKind): ResourceInfo {
    const isKind = ({ apiVersion, kind }: ResourceInfo): boolean =>
      typeof name !== 'string' && apiVersion === name?.apiVersion && kind === name.kind;
    const found = this.all.find((info) => name === `${info.resourceName}/${info.version}` || isKind(info));
    const first = found ?? this.all.find((info) => name === info.resourceName) ?? (typeof name === 'string' && this.called(name));
    if (!first) {
      const names = this.all.map((info) => `${info.resourceName}/${info.version}`).join(', ');
      const shown = typeof name === 'string' ? name : `${name?.apiVersion} ${name?.kind}`;
      throw invalid('resource', shown, `one of those that are served: ${names}`);
    }
    return first;
  }
}

const pathOf = ({ apiVersion, plural }: ResourceInfo): string => `${apiVersion}/${plural}`;

/** Terms of deleting what an object contains. */
export interface EmptyTerms {
  /** Check everything, but change nothing. */
  readonly dryRun: boolean;
  readonly signal: AbortSignal | undefined;
  /** Throws if the object must not go as it is now. */
  readonly check: (current: KubernetesObject) => void;
}

/** Keeps objects from being created while the definition of their kind is being deleted, as namespaces do with their content. */
export interface DefinitionGuard {
  /** Throws the error for the client if no object of this name may be created. */
  readonly check: (name: string) => void;
  /** Rejects if the definition of a new object is Terminating, or has gone. */
  readonly holds: (created: KubernetesObject) => Promise<void>;
}

/** What the verbs of one resource need. */
export interface ResourceContext {
  readonly info: ResourceInfo;
  /** The part of the storage for this resource, in all namespaces. */
  readonly storage: Storage<KubernetesObject>;
  /** The time of day, in milliseconds since 1970. */
  readonly now: () => number;
  readonly random: () => number;
  readonly uid: () => string;
  readonly maxSelectorLength: number;
  /** How long objects are kept after each write, in seconds; undefined: forever. */
  readonly ttlSeconds?: number | undefined;
  /** Whether the managers of all new objects are tracked, even if they are not named. */
  readonly tracksAll?: boolean | undefined;
  /** The other versions of the kind: those that are served, and those that were, if it is defined at run time. */
  readonly versions?: (() => readonly ResourceInfo[]) | undefined;
  /** Called with unexpected errors. */
  readonly onError: (error: unknown) => void;
  /** Who sends a review in the same process. */
  readonly asker: () => Asker;
  /** Keeps the storage open for a request in process. */
  readonly during: <R>(verb: Promise<R>) => Promise<R>;
  /** Aborts when the server shuts down. Absent if the storage's watches then end by themselves. */
  readonly closing?: AbortSignal | undefined;
  /**
   * Rejects with the error for the client if an object of this name may not be created in a namespace. Otherwise resolves with the
   * `uid` to pass to `namespaceHolds` once the object has been created; undefined if that check is not needed.
   */
  readonly namespaceExists: (namespace: string, name: string) => Promise<string | undefined>;
  /** Rejects if the namespace of a new object is Terminating, or has gone. */
  readonly namespaceHolds: (namespace: string, checked: { uid: string; created: KubernetesObject }) => Promise<void>;
  /** The same of another resource, if it is served. */
  readonly related: (apiVersion: string, plural: string) => ResourceContext | undefined;
  /** Whether the garbage collector takes care of dependents, so that its finalizers are set. */
  readonly collected: boolean;
  /** Called when an object is gone for good. */
  readonly removed: (namespace: string | undefined) => void;
  /** Checks new objects of a kind that is defined at run time. */
  readonly definition?: DefinitionGuard | undefined;
  /** Deletes what an object contains, as for namespaces. Resolves to whether nothing is left; rejects to refuse. */
  readonly empty?: ((object: KubernetesObject, terms: EmptyTerms) => Promise<boolean>) | undefined;
  /** Such an object as its deletion leaves it at first, for those who only try. */
  readonly tried?: ((object: KubernetesObject) => KubernetesObject) | undefined;
  /** Adds the server's own members to a new object, as for namespaces. */
  readonly prepared?: (<T extends KubernetesObject>(object: T) => T) | undefined;
  /** The program's hooks. */
  readonly admission?: Admission | undefined;
  /** The same for an object that is updated. */
  readonly revised?:
    | (<T extends KubernetesObject>(object: T, update: { readonly old: T; readonly part: string }) => T)
    | undefined;
  /** The first step of deleting an object that a finalizer of the server itself will hold. */
  readonly marked?: ((object: KubernetesObject) => KubernetesObject) | undefined;
  /** The check by the resource's schema, once it is compiled. */
  readonly bySchema?: (() => Soon<SchemaCheck>) | undefined;
}

/** The key of an object in the storage of its resource. */
export function storageKey({ namespace, name }: NamespacedName): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** The time as Kubernetes writes it, in whole seconds. */
export function timestamp(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, -5)}Z`;
}
