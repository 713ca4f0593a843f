/**
 * Kinds that are defined at run time, by CustomResourceDefinitions: what each server does with the stored definitions, no matter
 * who wrote them.
 *
 *     list, watch ---> known, in the order of the storage ---> decide: names, conditions ---> status is written
 *                                                        '---> serve: the catalog is replaced in one step
 *     deleted --> Terminating: creating is 403 --> its objects are deleted --> none left (finalizers!): gone, and its paths are 404
 *
 * Several servers may share a storage, and each may end at any time, so no decision depends on what one of them remembers:
 * - A decision about a definition depends only on the storage's state at the version of that definition, which every server sees
 *   at that point of its watch. It is written only if the definition is still at that version. So all servers decide the same,
 *   and the first one writes it.
 * - Names are taken in two steps. `NamesAccepted` claims them. A server that sees a claim also sees all earlier ones: of two, the
 *   later one yields, and the other becomes `Established`, for good. An Established definition claims other names by its spec. A
 *   definition that gets only some of its names yields them to an Established one.
 * - Objects are deleted before their definition: a server that creates one reads the definition again *afterwards*, and takes the
 *   object back if the definition is Terminating or has been replaced; a server that deletes a definition looks for objects after
 *   it has been marked. One of the two sees the other.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import type { ChangeEvent, Storage } from '../../storage/storage.ts';
import { Latch } from '../../watch/abort.ts';
import { Backoff } from '../../watch/backoff.ts';
import { sleep } from '../../watch/clock.ts';
import { invalid, isWatchError, WatchError } from '../../watch/errors.ts';
import { forbidden, hasCode, noSuchPath } from '../api-status.ts';
import type { Convert, PrinterColumn, ResourceDefinition } from '../definition.ts';
import { AGE } from '../kinds/common.ts';
import { type Catalog, type DefinitionGuard, type ResourceContext, type ResourceInfo, timestamp } from '../resource-info.ts';
import { type BackgroundDeps, Terminating } from '../terminating.ts';
import { ours } from '../validation/causes.ts';
import { withMeta } from '../verbs/metadata.ts';
import { deleteObjects } from '../verbs/remove.ts';
import {
  CLEANUP,
  type Condition,
  type Crd,
  isItself,
  isTrue,
  preparedCrd,
  readCrd,
  revisedCrd,
  shapedCrd,
  toInfos,
  withCondition,
} from './crd.ts';
import { faultsOfCrd } from './crd-faults.ts';
import { claimsOf, decided } from './names.ts';

/** The conversions of a program, by the names of resources, such as `orders.example.com`. */
type Conversions = Readonly<Record<string, Convert>>;

/** `customresourcedefinitions` of `apiextensions.k8s.io/v1`. */
export function toCrdDefinition(convert: Conversions): ResourceDefinition<Crd> {
  const converts = (resourceName: string): boolean => Object.hasOwn(convert, resourceName);
  return {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    plural: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
    shortNames: ['crd', 'crds'],
    categories: ['api-extensions'],
    namespaced: false,
    status: true,
    validate: ours((crd: Crd, old: Crd | undefined, part?: string) =>
      faultsOfCrd(crd, { old: old && readCrd(old), part, converts }),
    ),
    columns: COLUMNS.map((column) => ({ ...column, value: (crd) => column.value(isPlain(crd) ? crd : readCrd(crd)) })),
  };
}

/** Whether a definition has a status, that is, was stored by a server that supports definitions. */
const isPlain = ({ status }: Crd): boolean => Array.isArray(status?.storedVersions);

const versionsOf = ({ spec }: Crd): string =>
  spec.versions
    .filter(({ served }) => served)
    .map(({ name, storage }) => (storage ? `${name}(storage)` : name))
    .sort()
    .join();

const WIDE = { type: 'string', priority: 1 } as const;

/** Upstream: `crdConvertor`, whose times are not ages. */
const COLUMNS: readonly PrinterColumn<Crd>[] = [
  { name: 'Scope', type: 'string', description: 'Cluster/Namespaced', value: ({ spec }) => spec.scope },
  { name: 'Versions', type: 'string', description: 'Served versions', value: versionsOf },
  { ...AGE, name: 'Created At', type: 'string' },
  { ...WIDE, name: 'Group', description: 'API group', value: ({ spec }) => spec.group },
  { ...WIDE, name: 'Kind', description: 'CustomResource kind', value: ({ spec }) => spec.names.kind },
  { ...WIDE, name: 'ShortNames', description: 'Short names', value: ({ spec }) => spec.names.shortNames?.join() ?? '' },
  {
    ...WIDE,
    name: 'Established',
    type: 'boolean',
    description: 'Established status',
    value: (crd) => isTrue(crd, 'Established'),
  },
];

/** What the definitions need from their server. */
interface DefinitionsDeps extends BackgroundDeps {
  readonly catalog: Catalog;
  /** The whole storage, not a scope of it. */
  readonly storage: Storage;
  readonly contextOf: (info: ResourceInfo) => ResourceContext;
  readonly now: () => number;
  readonly convert: Conversions;
  /** Called when these are no longer served as they were. `ends`: their watches end, as upstream. */
  readonly replaced: (infos: readonly ResourceInfo[], ends: boolean) => void;
}

/** The part of a definition that decides how it is served. */
interface Served {
  readonly whole: string;
  readonly ways: string;
}

export class Definitions {
  private readonly deps: DefinitionsDeps;
  /** The kind CustomResourceDefinition; undefined if the server does not serve it. */
  private readonly info: ResourceInfo | undefined;
  private readonly terminating: Terminating;
  private readonly stopping: AbortController = new AbortController();
  /** All definitions, at the last version seen. */
  private readonly known: Map<string, Crd> = new Map();
  private readonly served: Map<string, Served> = new Map();
  private readonly writing: Set<Promise<void>> = new Set();
  /** Pending until the definitions that existed at the start are served. Rejects if they will not be. */
  loading: Promise<void> | undefined;
  private readonly loaded: Latch = new Latch();

  constructor(deps: DefinitionsDeps) {
    this.deps = deps;
    this.info = deps.catalog.find('apiextensions.k8s.io/v1', 'customresourcedefinitions');
    this.terminating = new Terminating({
      ...deps,
      isDue: ({ metadata }) => (metadata?.finalizers ?? []).includes(CLEANUP),
      finish: (name, uid, signal) => this.finish(name, uid, signal),
      observer: { whole: (items) => this.whole(items), changed: (event) => this.changed(event) },
    });
    if (this.info === undefined) return;
    this.loading = this.loaded.promise.then(() => {
      this.loading = undefined;
    });
    this.loading.catch(() => {});
  }

  /** Serves the existing definitions, and begins to follow them. */
  async prepare(): Promise<void> {
    if (this.info === undefined) return;
    await this.terminating.start(this.deps.contextOf(this.info).storage);
    this.loaded.open();
  }

  /** What waits for the definitions is refused, as they may never be served. */
  giveUp(error: unknown): void {
    this.loaded.reject(error);
  }

  /** Resolves once all that was written before this call is served. Rejects if that takes too long. */
  async caughtUp(): Promise<void> {
    if (!(await this.terminating.caughtUp())) throw new WatchError('CLOSED', 'the definitions are listed again');
  }

  /** Resolves when nothing is running any more. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.terminating.stop();
    await Promise.all([...this.writing]);
  }

  /** What checks new objects of a kind that is defined at run time; undefined for other kinds. */
  guardOf(info: ResourceInfo): DefinitionGuard | undefined {
    const { definition } = info;
    if (definition === undefined) return undefined;
    const refuse = (name: string): never => {
      throw forbidden(info, name, 'create not allowed while custom resource definition is terminating');
    };
    return {
      check: (name) => (definition.terminating ? refuse(name) : undefined),
      holds: async ({ metadata }) => {
        const found = await this.deps.contextOf(this.info as ResourceInfo).storage.get(definition.name);
        if (found?.metadata?.uid !== definition.uid) throw noSuchPath();
        if (found.metadata.deletionTimestamp !== undefined) refuse(metadata?.name ?? '');
      },
    };
  }

  /** Called when an object is gone. If it was the last one of a definition that is being deleted, the definition goes, too. */
  removed({ definition }: ResourceInfo): void {
    if (definition) this.terminating.hurry(definition.name);
  }

  /** What the verbs do to definitions themselves. */
  hooksOf(info: ResourceInfo): Pick<ResourceContext, 'prepared' | 'revised' | 'marked'> {
    if (info !== this.info) return {};
    return { prepared: preparedCrd, revised: (crd, { part }) => revisedCrd(crd, part), marked: (object) => this.marked(object) };
  }

  /** The first step of deleting a definition. Upstream: `REST.Delete`. */
  private marked(object: KubernetesObject): KubernetesObject {
    const finalizers = object.metadata?.finalizers ?? [];
    const deletionTimestamp = timestamp(this.deps.now());
    const held = withMeta(readCrd(object), {
      deletionTimestamp: object.metadata?.deletionTimestamp ?? deletionTimestamp,
      finalizers: finalizers.includes(CLEANUP) ? finalizers : [...finalizers, CLEANUP],
    });
    return withCondition(held as Crd, PENDING, this.deps.now());
  }

  private whole(stored: readonly KubernetesObject[]): void {
    const items = stored.flatMap((each) => this.read(each) ?? []);
    const names = new Set(items.map(nameOf));
    for (const name of [...this.known.keys()]) if (!names.has(name)) this.forget(name);
    for (const crd of items) this.known.set(nameOf(crd), crd);
    for (const crd of items) this.take(crd);
  }

  /** Undefined if it is not a definition, and so was not stored by this server. All others are served. */
  private read(stored: KubernetesObject): Crd | undefined {
    try {
      const crd = shapedCrd(stored);
      const { group, names } = crd.spec;
      if (nameOf(crd) !== `${names.plural}.${group}`)
        throw invalid('metadata.name', nameOf(crd), 'spec.names.plural "." spec.group');
      return crd;
    } catch (cause) {
      this.deps.onError(new Error(`definition ${stored.metadata?.name}: it cannot be served`, { cause }));
      return undefined;
    }
  }

  private changed({ type, object }: ChangeEvent<KubernetesObject>): void {
    const crd = this.read(object);
    const before = this.known.get(object.metadata?.name ?? '');
    if (type === 'DELETED' || crd === undefined) this.forget(object.metadata?.name ?? '');
    else this.known.set(nameOf(crd), crd);
    if (crd === undefined) return;
    if (type !== 'DELETED') this.take(crd);
    // Others may wait for names that it has given up, or have claimed those that it owns now.
    if (before === undefined || claimed(before) === claimed(type === 'DELETED' ? undefined : crd)) return;
    for (const other of this.known.values()) {
      if (other !== crd && other.spec.group === crd.spec.group && !isTrue(other, 'Established')) this.take(other, true);
    }
  }

  private forget(name: string): void {
    this.known.delete(name);
    this.serve(name, undefined);
  }

  /** Decides about a definition, and serves it. It is served before its status says so. */
  private take(crd: Crd, isAgain: boolean = false): void {
    const { fixed } = this.deps.catalog;
    const next = decided(crd, { known: [...this.known.values()], fixed, nowMs: this.deps.now(), isAgain });
    this.serve(nameOf(crd), next ?? crd);
    if (next) this.write(crd, next);
    if (crd.metadata?.deletionTimestamp !== undefined) this.terminating.hurry(nameOf(crd));
  }

  private serve(name: string, crd: Crd | undefined): void {
    const { catalog, convert, replaced } = this.deps;
    const isServed = crd !== undefined && isTrue(crd, 'Established') && isItself(crd) && !this.isTaken(crd);
    const before = this.served.get(name);
    const now = isServed ? waysOf(crd) : undefined;
    if (before?.whole === now?.whole) return;
    const old = catalog.addedBy(name);
    catalog.replace(name, isServed ? toInfos(crd, convert[name]) : []);
    if (now) this.served.set(name, now);
    else this.served.delete(name);
    replaced(old, before?.ways !== now?.ways);
  }

  /** Whether this server's program already serves something else under these names; other servers may not. */
  private isTaken({ spec: { group, versions }, status: { acceptedNames } }: Crd): boolean {
    return this.deps.catalog.fixed.some(
      ({ group: own, plural, kind, version }) =>
        own === group &&
        (plural === acceptedNames.plural || (kind === acceptedNames.kind && versions.some(({ name }) => name === version))),
    );
  }

  private write(crd: Crd, next: Crd): void {
    const writing = this.writeStatus(crd, next).finally(() => this.writing.delete(writing));
    this.writing.add(writing);
  }

  /** Writes a status, unless the definition has changed: then it is decided about again. */
  private async writeStatus(crd: Crd, { status }: Crd): Promise<void> {
    const { clock, random, onError, contextOf } = this.deps;
    const { signal } = this.stopping;
    const { uid, resourceVersion } = crd.metadata ?? {};
    const backoff = new Backoff({ minMs: 100, maxMs: 30_000, factor: 2, random });
    while (!signal.aborted) {
      try {
        const { storage } = contextOf(this.info as ResourceInfo);
        const change = (current: KubernetesObject): KubernetesObject => ({ ...current, status }) as KubernetesObject;
        await storage.update(nameOf(crd), change, { uid, resourceVersion, signal });
        return;
      } catch (error) {
        if (signal.aborted || hasCode(error, 404) || hasCode(error, 409) || isWatchError(error, 'CLOSED')) return;
        onError(error);
        await sleep(backoff.failed({}), { clock, signal }).catch(() => {});
      }
    }
  }

  /** Continues the deletion of a definition. Resolves to whether it is gone, or no longer ours to delete. */
  private async finish(name: string, uid: string | undefined, signal: AbortSignal): Promise<boolean> {
    const context = this.deps.contextOf(this.info as ResourceInfo);
    const { storage } = context;
    const read = async (): Promise<Crd | undefined> => {
      const stored = await storage.get(name, { signal });
      const found = stored && readCrd(stored);
      const isOurs = found?.metadata?.uid === uid && found?.metadata?.finalizers?.includes(CLEANUP);
      return isOurs && found?.metadata?.deletionTimestamp !== undefined ? found : undefined;
    };
    const crd = await read();
    if (crd === undefined) return true;
    if (isTrue(crd, 'Established')) {
      await this.update(name, { uid, signal }, (current) => withCondition(current, IN_PROGRESS, this.deps.now()));
    }
    // Once its names were accepted, a server may have served it, and not have come to write that it is Established.
    const mayHaveSome = isTrue(crd, 'Established') || isTrue(crd, 'NamesAccepted');
    if (mayHaveSome && !(await this.clear(context, crd, { read, signal }))) return false;
    try {
      const validate = (current: KubernetesObject): void => {
        if (current.metadata?.finalizers?.some((each) => each !== CLEANUP)) throw new Held();
      };
      await storage.delete(name, { uid, validate, signal });
    } catch (error) {
      if (hasCode(error, 404) || hasCode(error, 409)) return true;
      if (!(error instanceof Held)) throw error;
      const done = isTrue(crd, 'Established') ? COMPLETED : NEVER;
      await this.update(name, { uid, signal }, (current) => {
        const finalizers = (current.metadata?.finalizers ?? []).filter((each) => each !== CLEANUP);
        return withMeta(withCondition(current, done, this.deps.now()), { finalizers });
      });
    }
    return true;
  }

  private async update(
    name: string,
    { uid, signal }: { readonly uid: string | undefined; readonly signal: AbortSignal },
    change: (current: Crd) => Crd,
  ): Promise<void> {
    const { storage } = this.deps.contextOf(this.info as ResourceInfo);
    await storage
      .update(name, (current) => change(readCrd(current)), { uid, signal })
      .catch((error: unknown) => {
        if (!hasCode(error, 404) && !hasCode(error, 409)) throw error;
      });
  }

  /** Deletes the objects of a definition. Resolves to whether none is left. */
  private async clear(
    context: ResourceContext,
    crd: Crd,
    { read, signal }: { readonly read: () => Promise<Crd | undefined>; readonly signal: AbortSignal },
  ): Promise<boolean> {
    const every = { ...crd, spec: { ...crd.spec, versions: crd.spec.versions.map((each) => ({ ...each, served: true })) } };
    const [info] = toInfos(every, undefined);
    // Only by its name: its status may name another definition's objects.
    if (info === undefined || this.deps.catalog.fixed.some(({ resourceName }) => resourceName === nameOf(crd))) return true;
    const scope = this.deps.storage.scope(info.prefix);
    const none = {
      admission: undefined,
      empty: undefined,
      prepared: undefined,
      revised: undefined,
      marked: undefined,
      definition: undefined,
    };
    const own: ResourceContext = { ...context, ...none, info, storage: scope, removed: () => {} };
    const list = async (page: { limit: number; continue: string }): ReturnType<typeof scope.list> => {
      const listed = await scope.list({ limit: page.limit, continue: page.continue || undefined, signal });
      // Read after the list, so that the listed objects belong to this definition, not to a later one with the same name.
      return (await read()) === undefined ? { ...listed, items: [], continue: undefined } : listed;
    };
    await deleteObjects(own, undefined, { dryRun: false, list, signal });
    return (await scope.list({ limit: 1, signal })).items.length === 0;
  }
}

const terminating = (status: string, reason: string, message: string): Omit<Condition, 'lastTransitionTime'> => ({
  ...{ type: 'Terminating', status, reason, message },
});
const PENDING = terminating(
  ...(['True', 'InstanceDeletionPending'] as const),
  'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
);
const IN_PROGRESS = terminating('True', 'InstanceDeletionInProgress', 'CustomResource deletion is in progress');
const COMPLETED = terminating('False', 'InstanceDeletionCompleted', 'removed all instances');
const NEVER = terminating('False', 'NeverEstablished', 'resource was never established');

/** The definition has other finalizers. */
class Held extends Error {}

const nameOf = ({ metadata }: Crd): string => metadata?.name ?? '';

/** The names it claims, for comparison. */
const claimed = (crd?: Crd): string => (crd ? JSON.stringify([claimsOf(crd), isTrue(crd, 'Established')]) : '');

function waysOf({ metadata, status }: Crd): Served {
  const { uid, generation, deletionTimestamp } = metadata ?? {};
  const ways = JSON.stringify([uid, generation, status.acceptedNames]);
  return { ways, whole: `${ways} ${deletionTimestamp !== undefined}` };
}
