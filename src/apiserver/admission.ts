/**
 * A program's say in every write: `mutate` may change what is written, `validate` may refuse it. Both see every write, whether it
 * comes over HTTP, from the same process or from the server itself. The webhooks that clients have registered come after them.
 *
 *     sent, or patched ---> mutate ---> the server's own fields, schema, validate of the definition (422) ---> validate ---> stored
 *     deletion -----------------------------------------------------------------------------------------> validate ---> gone
 *
 * If another writer was faster, they are called again, so they must have no side effects. Upstream: admission webhooks.
 */
import type { KubernetesObject } from '../cache/object.ts';
import type { NamespacedName } from '../cache/resource-client.ts';
import { reparsing } from '../storage/json.ts';
import { refused } from '../storage/statuses.ts';
import { copying } from '../storage/values.ts';
import { whenAborted } from '../watch/abort.ts';
import { type Clock, within } from '../watch/clock.ts';
import { checkOptions, isNullish, isRecord, shownOf } from '../watch/errors.ts';
import { inPieces, type Work } from '../watch/fair-queue.ts';
import { asDenial } from './api-status.ts';

export const OPERATIONS = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] as const;

/** A write, as the hooks of {@link AdmissionHooks} see it. Upstream: `admission.k8s.io` `AdmissionRequest`. */
export interface AdmissionReview<I = unknown> {
  /** CONNECT, as `kubectl exec` does, only behind a kube-apiserver. */
  readonly operation: (typeof OPERATIONS)[number];
  /** Such as `orders.example.com`; of the core group, such as `pods`. */
  readonly resource: string;
  /** Such as `status` or `scale`; undefined for the object itself. For `scale`, the objects are of the kind Scale. */
  readonly subresource: string | undefined;
  readonly namespace: string | undefined;
  /** Empty for a new object whose name the server will generate. */
  readonly name: string;
  /** What is to be written, a copy: of changes, only those by `mutate` have an effect. Undefined for a deletion. */
  readonly object: KubernetesObject | undefined;
  /** What is stored, a copy. Undefined for a creation. */
  readonly oldObject: KubernetesObject | undefined;
  /** Nothing will be written. */
  readonly dryRun: boolean;
  /**
   * Who writes, as `authenticate` returned it; behind a kube-apiserver, its `UserInfo`. Undefined for writes in the same process
   * and for the server's own.
   */
  readonly user: I | undefined;
  /** The options of the request, such as `fieldManager`, `fieldValidation` or `propagationPolicy`. */
  readonly options: Readonly<Record<string, string>>;
  /** Refuses the write by throwing: the client gets this status, by default 403 with the reason Forbidden. */
  readonly deny: (message: string, status?: { readonly code?: number; readonly reason?: string }) => never;
  /** Sends the client a warning, which kubectl prints. At most 100 warnings. */
  readonly warn: (text: string) => void;
  /** Aborts when the hook has run out of time or the client has left: pass it on to whatever the hook awaits. */
  readonly signal: AbortSignal;
}

/**
 * What an `ApiServer` asks before it writes. Anything they throw other than by `deny` fails the write with 500, and only
 * `onError` gets the error. So does a promise that takes longer than `handshakeTimeoutMs`, and anything else that they return.
 */
export interface AdmissionHooks<I = unknown> {
  /** Changes `object`, or returns another one to write instead. Called for each creation and update, but not for deletions. */
  mutate?(review: AdmissionReview<I>): unknown;
  /** Called for each write, with a copy of what will be stored. Refuses by `deny`, and returns nothing. */
  validate?(review: AdmissionReview<I>): void | Promise<void>;
}

/** Who writes. */
export interface AdmittedWriter {
  readonly user: unknown;
  readonly options: Readonly<Record<string, string>>;
  readonly warn: (text: string) => void;
}

/** The server itself, or its program. */
export const SERVER: AdmittedWriter = { user: undefined, options: {}, warn: () => {} };

/** The webhooks that clients have registered, for one kind. They come after the hooks; a deletion is put to `mutate`, too. */
export interface OfClients {
  mutate<T extends KubernetesObject | undefined>(object: T, asked: Asked, writer: AdmittedWriter): Promise<T>;
  validate(object: KubernetesObject | undefined, asked: Asked, writer: AdmittedWriter): Promise<void>;
}

interface AdmissionDeps {
  readonly hooks: AdmissionHooks;
  readonly webhooks: OfClients | undefined;
  /** Such as `orders.example.com`. */
  readonly resource: string;
  /** Reads what a hook has made as an object of the kind. Throws if it is none. */
  readonly read: (made: unknown, subresource: string | undefined) => Work<unknown>;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** What is written. */
export interface Asked extends Pick<AdmissionReview, 'operation' | 'oldObject' | 'dryRun'> {
  readonly place: NamespacedName;
  readonly subresource?: string | undefined;
  /** Of a deletion. */
  readonly isOfMany?: boolean | undefined;
  readonly propagation?: string | undefined;
  readonly gracePeriodSeconds?: number | undefined;
  readonly preconditions?: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined } | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What `deny` throws. */
export class Denied extends Error {
  readonly code: number;
  readonly reason: string;

  constructor(message: string, { code = 403, reason = 'Forbidden' }: { readonly code?: number; readonly reason?: string } = {}) {
    super(message);
    this.code = toCode(code);
    this.reason = reason;
  }
}

/** A review's `deny`. */
export const deny: AdmissionReview['deny'] = (message, status = {}) => {
  checkOptions(status, ['code', 'reason']);
  throw new Denied(message, status);
};

/** The hooks, for one kind and one writer. */
export class Admission {
  private readonly deps: AdmissionDeps;
  private readonly writer: AdmittedWriter;

  constructor(deps: AdmissionDeps, writer: AdmittedWriter = SERVER) {
    this.deps = deps;
    this.writer = writer;
  }

  /** Resolves with what is written instead of an object. */
  async mutate(object: object, asked: Asked): Promise<unknown> {
    const { hooks, webhooks } = this.deps;
    const made = hooks.mutate ? await this.mutated(object, asked) : object;
    return webhooks ? webhooks.mutate(made as KubernetesObject, asked, this.writer) : made;
  }

  /** Rejects if an object may not be written or deleted. */
  async validate(object: KubernetesObject | undefined, asked: Asked): Promise<void> {
    const { hooks, webhooks } = this.deps;
    const { signal } = asked;
    if (hooks.validate) {
      const own = object && (await inPieces(reparsing(object), { signal }));
      await this.call('validate', own as KubernetesObject | undefined, asked);
    }
    if (object === undefined) await webhooks?.mutate(object, asked, this.writer);
    await webhooks?.validate(object, asked, this.writer);
  }

  /** The same hooks for another writer. */
  of(writer: AdmittedWriter): Admission {
    return new Admission(this.deps, writer);
  }

  /** Those of another kind, for the same writer. */
  about(other: Admission | undefined): Admission | undefined {
    return other?.of(this.writer);
  }

  private async mutated(object: object, asked: Asked): Promise<unknown> {
    const { read, resource } = this.deps;
    const { signal, subresource } = asked;
    const done = <R>(work: Work<R>): R | Promise<R> => inPieces(work, { signal });
    const own = (await done(reparsing(object))) as KubernetesObject;
    const made = (await this.call('mutate', own, asked)) ?? own;
    // As if it had come over the wire: it shares nothing with the hook.
    const sent = await done(reparsing(made));
    try {
      return await done(read(sent, subresource));
    } catch (cause) {
      signal?.throwIfAborted();
      throw new Error(`admission: mutate.${resource} made an object that is none of its kind`, { cause });
    }
  }

  private async call(hook: 'mutate' | 'validate', object: KubernetesObject | undefined, asked: Asked): Promise<unknown> {
    const { hooks, clock, timeoutMs, resource } = this.deps;
    const { oldObject, signal } = asked;
    const what = `${hook}.${resource}`;
    // The storage shares its object with all who read it.
    const old = oldObject && (await inPieces(copying(oldObject), { signal }));
    const abort = new AbortController();
    const leave = whenAborted(signal, (reason) => abort.abort(reason));
    try {
      const review = this.reviewOf(object, { ...asked, oldObject: old }, abort.signal);
      const said = await within(Promise.resolve(hooks[hook]?.(review)), { limitMs: timeoutMs, clock, what: () => what });
      return checkSaid(hook, resource, said);
    } catch (cause) {
      if (cause instanceof Denied) throw refusalOf(cause, what);
      abort.abort(cause);
      // If a request that the hook made was refused, that refusal is not the answer to this write.
      throw new Error(`admission: ${what} failed`, { cause });
    } finally {
      leave();
    }
  }

  private reviewOf(object: KubernetesObject | undefined, asked: Asked, signal: AbortSignal): AdmissionReview {
    const { operation, subresource, place, oldObject, dryRun, propagation, gracePeriodSeconds } = asked;
    const { user, options, warn } = this.writer;
    const { resource } = this.deps;
    return {
      ...{ operation, resource, subresource: subresource || undefined, ...place },
      // Upstream, the namespace of a namespace is its own name.
      ...(resource === 'namespaces' && { namespace: place.name }),
      ...{ object, oldObject, dryRun, user, deny, warn, signal },
      options: {
        ...options,
        ...(propagation !== undefined && { propagationPolicy: propagation }),
        ...(gracePeriodSeconds !== undefined && { gracePeriodSeconds: String(gracePeriodSeconds) }),
      },
    };
  }
}

/** Returns what a hook has returned. Throws if it is neither undefined nor an object by `mutate`: it means nothing. */
export function checkSaid(hook: 'mutate' | 'validate', resource: string, said: unknown): unknown {
  if (isNullish(said) || (hook === 'mutate' && isRecord(said))) return said;
  const expected = hook === 'mutate' ? 'an object or undefined' : 'undefined, or a call of deny';
  throw new TypeError(`${hook} of ${resource}: expected ${expected}, got ${shownOf(said)}`);
}

/** What the verbs of a resource need, with the hooks. */
interface Admitted {
  readonly admission?: Admission | undefined;
}

/** Upstream: `ToStatusErr`. */
function refusalOf({ code, reason, message }: Denied, what: string): Error {
  const why = message || reason;
  const text = `admission webhook "${what}" denied the request${why ? `: ${why}` : ' without explanation'}`;
  return asDenial(refused(code, reason, text));
}

/** A status code that refuses; any that an answer cannot have becomes 403. Upstream: `ToStatusErr`. */
const toCode = (code: number): number => (Number.isInteger(code) && code <= 599 ? Math.max(code, 400) : 403);

/** The names of options that the hooks see. */
export const OPTIONS = ['fieldManager', 'fieldValidation', 'propagationPolicy', 'gracePeriodSeconds'] as const;
const MAX_WARNINGS = 100;

/** What the verbs of a client's request need: its hooks know the client, and their warnings are added to `warnings`. */
export function forClient<C extends Admitted>(
  context: C,
  { user, query, warnings }: { readonly user: unknown; readonly query: URLSearchParams; readonly warnings: string[] },
): C {
  const { admission } = context;
  if (admission === undefined) return context;
  const options = Object.fromEntries(OPTIONS.flatMap((name) => query.getAll(name).map((value) => [name, value] as const)));
  return { ...context, admission: admission.of({ user, options, warn: warnInto(warnings) }) };
}

/** A review's `warn`. */
export function warnInto(warnings: string[]): AdmissionReview['warn'] {
  return (given) => {
    const text = String(given);
    // A write that is repeated, as another writer was faster, warns again.
    if (warnings.length < MAX_WARNINGS && !warnings.includes(text)) warnings.push(text);
  };
}

/** The same without hooks, for what the server does as a part of something that has been admitted. */
export function unasked<C extends Admitted>(context: C): C {
  return { ...context, admission: undefined };
}
