/**
 * The webhooks that clients have registered: which of them are asked about a write, in which order, and what their answers mean.
 *
 *     MutatingWebhookConfigurations ---.                                    matches: rules, namespace, labels
 *     ValidatingWebhookConfigurations -+-> by name, in the order of each --.
 *                                                                          v
 *     mutate:    one after the other; each gets what the one before has made; once more those that want it, if another has
 *                changed the object after them
 *     validate:  all at once; the first refusal counts
 *
 * A webhook that cannot be asked fails the write with 500, or is skipped and reported, as its `failurePolicy` says. A webhook
 * registered for another version of the kind gets the object in that version, unless its `matchPolicy` is Exact.
 *
 * Registrations are followed in the storage, so they have an effect a moment after they were written, in every server that shares
 * it. Nothing is written before those that existed at the start are known. Upstream: `admission/plugin/webhook`.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { LabelSelector } from '../../selectors/label-selector.ts';
import { comparing } from '../../storage/json.ts';
import { refused } from '../../storage/statuses.ts';
import type { ChangeEvent } from '../../storage/storage.ts';
import { Latch, untilAborted } from '../../watch/abort.ts';
import { getOrMake, isRecord, type WatchError, whyOf } from '../../watch/errors.ts';
import { inPieces } from '../../watch/fair-queue.ts';
import { type AdmittedWriter, type Asked, type OfClients, SERVER } from '../admission.ts';
import { asDenial, forbidden, internalFault, notFound } from '../api-status.ts';
import { Follower } from '../follower.ts';
import { userOf } from '../kinds/reviews.ts';
import { NAME_LABEL, typed } from '../kinds/tables.ts';
import type { ServiceAddress } from '../options.ts';
import { toPatch } from '../patch/patch.ts';
import type { Catalog, ResourceContext, ResourceInfo } from '../resource-info.ts';
import { rowOf, type Subresource } from '../subresources.ts';
import type { BackgroundDeps } from '../terminating.ts';
import { quoted } from '../validation/causes.ts';
import { presenting } from '../verbs/read.ts';
import { CallFailed, Calls, type WebhookAnswer } from './calls.ts';
import { doHold } from './conditions.ts';
import {
  ADMISSION_GROUP,
  isRegistration,
  type WebhookConfiguration,
  type WebhookDefinition,
  type WebhookRule,
} from './configurations.ts';

/** A write that webhooks may be asked about. */
interface Write extends Pick<Asked, 'operation' | 'place' | 'oldObject' | 'dryRun' | 'signal'> {
  readonly info: ResourceInfo;
  /** As webhooks hear it: empty if the server will make it, or if a collection is deleted. */
  readonly name: string;
  /** What is written: the object itself, or a subresource. */
  readonly row: Subresource;
  /** Upstream: `UserInfo`. */
  readonly userInfo: object;
  /** Such as `CreateOptions`. */
  readonly options: object;
  readonly warn: (text: string) => void;
  /** The labels of its namespace, once a webhook has asked for them. */
  labels?: Labels | undefined;
  /** Its objects, as conditions see them. */
  readonly converted: WeakMap<object, unknown>;
}

type Labels = Readonly<Record<string, string>>;

interface WebhooksDeps extends BackgroundDeps {
  readonly catalog: Catalog;
  readonly contextOf: (info: ResourceInfo) => ResourceContext;
  readonly uid: () => string;
  readonly serviceAddress: ServiceAddress | undefined;
}

/** A webhook that is asked about a write. */
interface Invocation {
  readonly webhook: WebhookDefinition;
  /** The version of the kind in which it gets the object. */
  readonly as: ResourceInfo;
}

/** The two kinds of registrations: their plurals, and the registrations by name. */
type Known = Record<'mutating' | 'validating', Map<string, readonly WebhookDefinition[]>>;

/** How many webhooks are asked about one write at once. */
const MAX_AT_ONCE = 32;

export class RegisteredWebhooks {
  private readonly deps: WebhooksDeps;
  private readonly calls: Calls;
  private readonly known: Known = { mutating: new Map(), validating: new Map() };
  /** In the order in which they are asked; absent: they have changed since. */
  private readonly inOrder: Partial<Record<keyof Known, readonly WebhookDefinition[]>> = {};
  private readonly loaded: Latch = new Latch();
  private readonly stopping: AbortController = new AbortController();
  private readonly following: Promise<void>[] = [];
  private readonly selectors: WeakMap<object, LabelSelector> = new WeakMap();

  constructor(deps: WebhooksDeps) {
    this.deps = deps;
    this.calls = new Calls(deps);
  }

  /** Resolves when the existing registrations are known. From then on it follows them. */
  async prepare(): Promise<void> {
    const { catalog, contextOf, clock, random, onError } = this.deps;
    const { signal } = this.stopping;
    for (const which of ['mutating', 'validating'] as const) {
      const info = catalog.find(`${ADMISSION_GROUP}/v1`, `${which}webhookconfigurations`);
      if (info === undefined || !isRegistration(info)) continue;
      const follower = new Follower({
        ...{ storage: contextOf(info).storage, signal, clock, random, onError },
        whole: (items) => this.whole(which, items),
        changed: (event) => this.changed(which, event),
      });
      this.following.push(follower.follow(await follower.list()));
    }
    this.loaded.open();
  }

  /** Writes that wait for the registrations are refused, as these will not be known. */
  giveUp(error: unknown): void {
    this.loaded.reject(error);
  }

  /** Resolves when nothing is running any more. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await Promise.all(this.following);
    this.calls.stop();
  }

  /** Those that are asked about objects of a kind. Registrations are put to nobody, or a wrong one could not be mended. */
  of(info: ResourceInfo): OfClients | undefined {
    if (info.group === ADMISSION_GROUP) return undefined;
    return {
      mutate: (object, asked, writer) => this.mutate(object, writeOf(info, asked, writer)),
      validate: (object, asked, writer) => this.validate(object, writeOf(info, asked, writer)),
    };
  }

  /** Resolves with what is written instead of an object. Of a deletion, nothing can be changed. */
  private async mutate<T extends KubernetesObject | undefined>(object: T, write: Write): Promise<T> {
    await this.ready(write);
    const { signal } = write;
    /** Those that want to be asked again if others have changed the object after them, and those that are. */
    const [asked, again] = [new Set<WebhookDefinition>(), new Set<WebhookDefinition>()];
    let current = object;
    const ask = async (webhook: WebhookDefinition): Promise<void> => {
      const invocation = await this.match(webhook, current, write);
      if (invocation === undefined) return;
      const next = (await this.changedBy(invocation, current, write)) as T;
      if (next !== undefined && !(await inPieces(comparing(next, current), { signal }))) {
        for (const each of asked) again.add(each);
        asked.clear();
        current = next;
      }
      if (webhook.reinvocationPolicy === 'IfNeeded') asked.add(webhook);
    };
    for (const webhook of this.list('mutating')) await ask(webhook);
    const second = this.list('mutating').filter((each) => again.has(each));
    for (const webhook of second) await ask(webhook);
    return current;
  }

  /** Rejects if an object may not be written or deleted. */
  private async validate(object: KubernetesObject | undefined, write: Write): Promise<void> {
    await this.ready(write);
    const relevant: Invocation[] = [];
    for (const webhook of this.list('validating')) {
      const invocation = await this.match(webhook, object, write);
      if (invocation !== undefined) relevant.push(invocation);
    }
    for (let at = 0; at < relevant.length; at += MAX_AT_ONCE) {
      const some = relevant.slice(at, at + MAX_AT_ONCE).map((each) => this.ask(each, { object, write, isMutating: false }));
      const failed = (await Promise.allSettled(some)).find((each) => each.status === 'rejected');
      if (failed) throw failed.reason;
    }
  }

  private async ready({ signal }: Write): Promise<void> {
    if (!this.loaded.isOpen) await untilAborted(this.loaded.promise, signal);
  }

  private whole(which: keyof Known, items: readonly KubernetesObject[]): void {
    this.known[which].clear();
    for (const item of items) this.keep(which, item);
    delete this.inOrder[which];
  }

  private changed(which: keyof Known, { type, object }: ChangeEvent<KubernetesObject>): void {
    if (type === 'DELETED') this.known[which].delete(nameOf(object));
    else this.keep(which, object);
    delete this.inOrder[which];
  }

  private keep(which: keyof Known, object: KubernetesObject): void {
    this.known[which].set(nameOf(object), (object as WebhookConfiguration).webhooks ?? []);
  }

  private list(which: keyof Known): readonly WebhookDefinition[] {
    const byName = (): (readonly [string, readonly WebhookDefinition[]])[] =>
      [...this.known[which]].sort(([one], [other]) => (one < other ? -1 : 1));
    this.inOrder[which] ??= byName().flatMap(([, webhooks]) => webhooks);
    return this.inOrder[which];
  }

  /** How a webhook is asked about a write; undefined: it is not. Upstream: `ShouldCallHook`. */
  private async match(
    webhook: WebhookDefinition,
    object: KubernetesObject | undefined,
    write: Write,
  ): Promise<Invocation | undefined> {
    const { rules = [], matchPolicy, objectSelector, namespaceSelector } = webhook;
    const as = infoFor(rules, matchPolicy, write, this.deps.catalog);
    if (as === undefined) return undefined;
    const byLabels = this.selectorOf(objectSelector);
    const isMeant = (one: KubernetesObject | undefined): boolean => one !== undefined && byLabels.matches(one.metadata?.labels);
    if (!byLabels.isEmpty && !isMeant(object) && !isMeant(write.oldObject)) return undefined;
    const byNamespace = this.selectorOf(namespaceSelector);
    const namespace = namespaceOf(write);
    if (!byNamespace.isEmpty && namespace !== undefined && !byNamespace.matches(await this.labelsOf(namespace, object, write)))
      return undefined;
    return (await this.meetsConditions({ webhook, as }, object, write)) ? { webhook, as } : undefined;
  }

  /** Upstream: `matchconditions.Matcher`. */
  private async meetsConditions(
    { webhook: { name, failurePolicy, matchConditions = [] }, as }: Invocation,
    object: KubernetesObject | undefined,
    write: Write,
  ): Promise<boolean> {
    if (matchConditions.length === 0) return true;
    const { info, place, oldObject, signal } = write;
    const [shown, old] = [await this.inVersion(as, object, write), await this.inVersion(as, oldObject, write)];
    try {
      return await doHold(matchConditions, { object: shown, oldObject: old, request: requestOf(as, write) }, write);
    } catch (error) {
      signal?.throwIfAborted();
      if (failurePolicy !== 'Ignore') throw asDenial(forbidden(info, place.name, (error as Error).message));
      this.deps.onError(new Error(`conditions of webhook ${quoted(name)}: ${(error as Error).message}`, { cause: error }));
      return false;
    }
  }

  private selectorOf(object: WebhookDefinition['objectSelector']): LabelSelector {
    return getOrMake(this.selectors, object, () => LabelSelector.fromObject(object));
  }

  /** The labels of the namespace of an object. Upstream: `GetNamespaceLabels`. */
  private async labelsOf(namespace: string, object: KubernetesObject | undefined, write: Write): Promise<Labels | undefined> {
    const { info, row, signal } = write;
    const { namespaces } = this.deps.catalog;
    if (info === namespaces && row.name === '' && object !== undefined) return object.metadata?.labels;
    if (namespaces === undefined) return { [NAME_LABEL]: namespace };
    if (write.labels) return write.labels;
    const found = await this.deps.contextOf(namespaces).storage.get(namespace, { signal });
    if (found === undefined) throw asDenial(notFound(namespaces, namespace));
    write.labels = { ...found.metadata?.labels, [NAME_LABEL]: namespace };
    return write.labels;
  }

  /** What a webhook makes of an object; undefined if it changes nothing. */
  private async changedBy(
    invocation: Invocation,
    object: KubernetesObject | undefined,
    write: Write,
  ): Promise<KubernetesObject | undefined> {
    const { as } = invocation;
    const { info, row, signal } = write;
    const shown = await this.inVersion(as, object, write);
    const { patch } = (await this.ask(invocation, { object: shown, write, isMutating: true })) ?? {};
    if (patch === undefined || patch.length === 0) return undefined;
    try {
      if (shown === undefined) throw new Error('a deletion cannot be changed');
      const change = await inPieces(toPatch(patch, { type: 'json', kind: row.kind ?? as }), { signal });
      const kind = row.kind ?? as;
      const made = (await inPieces(typed(kind, await inPieces(change(shown), { signal })), { signal })) as KubernetesObject;
      const [own, other] = [`${kind.kind} of ${kind.apiVersion}`, `${made.kind} of ${made.apiVersion}`];
      // Further on, it would be the mistake of the client.
      if (other !== own) throw new Error(`expected a ${own}, got a ${other.slice(0, 200)}`);
      return as === info || row.kind ? made : await inPieces(presenting(info, made), { signal });
    } catch (error) {
      signal?.throwIfAborted();
      const why = (error as Partial<WatchError>).status?.message ?? whyOf(error);
      throw asDenial(internalFault(`admission webhook ${quoted(invocation.webhook.name)}: ${why}`));
    }
  }

  /** An object as a webhook gets it. */
  private async inVersion<T extends KubernetesObject | undefined>(
    as: ResourceInfo,
    object: T,
    { info, row, signal }: Write,
  ): Promise<T> {
    if (object === undefined || as === info || row.kind) return object;
    return (await inPieces(presenting(as, object), { signal })) as T;
  }

  /** Resolves with the answer; undefined if the webhook could not be asked, and does not mind. Rejects if it refuses. */
  private async ask(
    { webhook, as }: Invocation,
    { object, write, isMutating }: { object: KubernetesObject | undefined; write: Write; isMutating: boolean },
  ): Promise<WebhookAnswer | undefined> {
    const { signal, oldObject } = write;
    const shown = isMutating ? object : await this.inVersion(as, object, write);
    const old = await this.inVersion(as, oldObject, write);
    const request = { ...requestOf(as, write), object: shown ?? null, oldObject: old ?? null };
    try {
      const answer = await this.calls.ask(webhook, request, { isMutating, signal });
      for (const text of answer.warnings) write.warn(text);
      if (answer.allowed) return answer;
      throw refusalBy(webhook.name, answer.status);
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error;
      if (webhook.failurePolicy !== 'Ignore') throw asDenial(internalFault(error.message));
      this.deps.onError(error);
      return undefined;
    }
  }
}

const nameOf = ({ metadata }: KubernetesObject): string => (metadata as { readonly name: string }).name;

/** Upstream: the user of a kube-apiserver's requests to itself. */
const SERVER_INFO = { username: 'system:apiserver', groups: ['system:masters', 'system:authenticated'] };

function writeOf(info: ResourceInfo, asked: Asked, writer: AdmittedWriter): Write {
  const { operation, subresource, place, oldObject, dryRun, signal } = asked;
  const { gracePeriodSeconds, propagation: propagationPolicy } = asked;
  const { fieldManager, fieldValidation } = writer.options;
  const isDeletion = operation === 'DELETE';
  const { uid, resourceVersion } = asked.preconditions ?? {};
  const verb = operation.charAt(0) + operation.slice(1).toLowerCase();
  return {
    ...{ operation, info, place, oldObject, dryRun, signal, warn: writer.warn, converted: new WeakMap() },
    name: asked.isOfMany ? '' : place.name,
    row: rowOf(info, subresource || undefined) ?? info.main,
    userInfo: writer === SERVER ? SERVER_INFO : userOf(writer.user),
    options: {
      ...{ kind: `${verb}Options`, apiVersion: 'meta.k8s.io/v1', ...(dryRun && { dryRun: ['All'] }) },
      ...(!isDeletion && fieldManager !== undefined && { fieldManager }),
      ...(!isDeletion && fieldValidation !== undefined && { fieldValidation }),
      ...(propagationPolicy !== undefined && { propagationPolicy }),
      ...(gracePeriodSeconds !== undefined && { gracePeriodSeconds }),
      ...((uid ?? resourceVersion) !== undefined && {
        preconditions: { ...(uid !== undefined && { uid }), ...(resourceVersion !== undefined && { resourceVersion }) },
      }),
    },
  };
}

/** The namespace of a write; that of a namespace is its own name. Undefined: it is in none. */
const namespaceOf = ({ info, place }: Write): string | undefined =>
  info.resourceName === 'namespaces' ? place.name : place.namespace;

/** The version of the kind about which a webhook is asked: that of the write, or another for which it is registered. */
function infoFor(rules: readonly WebhookRule[], matchPolicy: string, write: Write, catalog: Catalog): ResourceInfo | undefined {
  const { info } = write;
  if (rules.some((rule) => isFor(rule, info, write))) return info;
  if (matchPolicy === 'Exact' || !info.shared) return undefined;
  const others = catalog.all.filter((each) => each.prefix === info.prefix);
  for (const rule of rules) {
    const found = others.find((each) => isFor(rule, each, write));
    if (found) return found;
  }
  return undefined;
}

/** Whether a rule names a write, in a version of its kind. Upstream: `rules.Matcher`. */
function isFor(rule: WebhookRule, info: ResourceInfo, { operation, row }: Write): boolean {
  const { operations = [], apiGroups = [], apiVersions = [], resources = [], scope } = rule;
  const names = (list: readonly string[], one: string): boolean => list.includes('*') || list.includes(one);
  return (
    names(operations, operation) &&
    names(apiGroups, info.group) &&
    names(apiVersions, info.version) &&
    (scope === '*' || (scope === 'Namespaced') === info.namespaced) &&
    resources.some((each) => {
      const [resource, ...rest] = each.split('/');
      const part = rest.join('/');
      return (resource === '*' || resource === info.plural) && (part === '*' || part === row.name);
    })
  );
}

/** Without the objects. Upstream: `CreateV1AdmissionReview`. */
function requestOf(as: ResourceInfo, write: Write): object {
  const { info, row, operation, name, userInfo, dryRun, options } = write;
  const kindOf = (one: ResourceInfo): object => {
    const { group, version, kind } = row.kind ?? one;
    return { group, version, kind };
  };
  const resourceOf = ({ group, version, plural }: ResourceInfo): object => ({ group, version, resource: plural });
  const namespace = namespaceOf(write);
  return {
    ...{ kind: kindOf(as), resource: resourceOf(as), ...(row.name && { subResource: row.name }) },
    ...{ requestKind: kindOf(info), requestResource: resourceOf(info), ...(row.name && { requestSubResource: row.name }) },
    ...{ ...(name && { name }), ...(namespace && { namespace }) },
    ...{ operation, userInfo, dryRun, options },
  };
}

/** Upstream: `ToStatusErr`. */
function refusalBy(name: string, status: WebhookAnswer['status']): Error {
  const { code, reason, message, details } = status;
  const text = (value: unknown): string => (value ?? '') as string;
  const why = text(message) || text(reason);
  const said = `admission webhook ${quoted(name)} denied the request${why ? `: ${why}` : ' without explanation'}`;
  const known = (code ?? 0) as number;
  return asDenial(
    refused(known >= 400 && known <= 599 ? known : 400, text(reason), said, isRecord(details) ? details : undefined),
  );
}
