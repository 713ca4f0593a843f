/**
 * Writes that depend on what is there: read, decide, write if nothing has changed meanwhile, or else decide again.
 *
 *     hint or read ---> preconditions, user code ---> write if the revision is the same ---> done
 *           ^                  | refused                     | it is not
 *           |            by a hint: read                     v
 *           '------------------------------ what the backend says is there
 *
 * Upstream: `GuaranteedUpdate` and `conditionalDelete` of storage/etcd3, which do not wait between conflicts.
 */
import type { KubernetesObject } from '../cache/object.ts';
import { isPromise } from '../watch/abort.ts';
import { Backoff } from '../watch/backoff.ts';
import { sleep } from '../watch/clock.ts';
import type { Shared } from './backed-lists.ts';
import type { Entry } from './backend.ts';
import { copyOf, isSameContent } from './memory/value.ts';
import { unmetPrecondition } from './preconditions.ts';
import { notFound } from './statuses.ts';
import type { DeleteOptions, UpdateOptions } from './storage.ts';
import { atVersion, Draft } from './stored.ts';

/** What is there, as far as is known. Revision 0: nothing. */
interface State<T> {
  readonly object: T | undefined;
  readonly revision: string;
  /** Whether the backend has said so since the write began. */
  readonly isCurrent: boolean;
}

/** One key, and its name in the backend. */
export interface Target {
  readonly shared: Shared;
  readonly key: string;
  readonly place: string;
  readonly what: string;
  readonly signal: AbortSignal | undefined;
}

/** The result of a decision: this is written, nothing is written, or what is there is deleted. */
type Decision<T extends KubernetesObject> = { readonly draft: Draft<T> } | { readonly same: true } | { readonly remove: true };
type Decide<T extends KubernetesObject> = (current: T | undefined) => Promise<Decision<T>>;

/** Conflicts in a row after which a write waits before it tries again. */
const PROMPT_CONFLICTS = 3;

export async function updateObject<T extends KubernetesObject>(
  target: Target,
  change: (current: T) => T | Promise<T>,
  options: UpdateOptions<T>,
): Promise<T> {
  const { cached, createIfMissing = false, ttlSeconds } = options;
  const decide: Decide<T> = async (current) => {
    if (current === undefined && !createIfMissing) throw notFound(target.key);
    const unmet = unmetPrecondition(target.key, current, options);
    if (unmet) throw unmet;
    const draft = new Draft<T>(await asked(target, change(copyOf(current) as T)));
    return current !== undefined && isSameContent(draft.object, current) ? { same: true } : { draft };
  };
  return guarded(target, decide, { cached, ttlSeconds });
}

export async function deleteObject<T extends KubernetesObject>(target: Target, options: DeleteOptions<T>): Promise<T> {
  const { validate, cached } = options;
  const decide: Decide<T> = async (current) => {
    if (current === undefined) throw notFound(target.key);
    const unmet = unmetPrecondition(target.key, current, options);
    if (unmet) throw unmet;
    if (validate) await asked(target, validate(current));
    return { remove: true };
  };
  return guarded(target, decide, { cached });
}

async function guarded<T extends KubernetesObject>(
  target: Target,
  decide: Decide<T>,
  { cached, ttlSeconds }: { cached: T | undefined; ttlSeconds?: number | undefined },
): Promise<T> {
  const { shared, place: key, what, signal } = target;
  const backoff = new Backoff({ minMs: 2, maxMs: 200, factor: 2, random: shared.random });
  let state = hinted(cached) ?? (await readState<T>(target));
  for (let conflicts = 0; ; conflicts++) {
    if (conflicts > PROMPT_CONFLICTS) await pause(target, backoff.failed({}));
    const decision = await decided(target, decide, state);
    state = decision.state;
    const { object, revision: expected } = state;
    if ('same' in decision) return object as T;
    const put = 'draft' in decision ? decision.draft : undefined;
    shared.pending.check(signal);
    const result = await shared.backend.txn<T>({ key, expected, put, ttlSeconds, what, signal });
    if (result.succeeded) return put ? (result.object as T) : atVersion(object as T, result.revision);
    state = stateOf(result.current);
  }
}

/** Decides by what is there. If a hint leads to anything but a write, the decision is made again with the backend's answer. */
async function decided<T extends KubernetesObject>(
  target: Target,
  decide: Decide<T>,
  state: State<T>,
): Promise<Decision<T> & { readonly state: State<T> }> {
  let refusal: { readonly error: unknown } | undefined;
  try {
    const decision = await decide(state.object);
    if (state.isCurrent || !('same' in decision)) return { ...decision, state };
  } catch (error) {
    if (state.isCurrent) throw error;
    target.signal?.throwIfAborted();
    refusal = { error };
  }
  const current = await readState<T>(target);
  if (refusal && current.revision === state.revision) throw refusal.error;
  return { ...(await decide(current.object)), state: current };
}

async function readState<T extends KubernetesObject>({ shared, place, what, signal }: Target): Promise<State<T>> {
  return stateOf<T>((await shared.backend.get<T>(place, { what, signal })).entry);
}

function stateOf<T extends KubernetesObject>(entry: Entry<T> | undefined): State<T> {
  const object = entry?.object;
  return { object, revision: object?.metadata?.resourceVersion ?? '0', isCurrent: true };
}

/** A hint counts only if its version can be one of the backend's. */
function hinted<T extends KubernetesObject>(cached: T | undefined): State<T> | undefined {
  const revision = cached?.metadata?.resourceVersion;
  if (typeof revision !== 'string' || !/^[1-9]\d{0,18}$/.test(revision)) return undefined;
  return { object: cached, revision, isCurrent: false };
}

/** Waits between conflicts, until the signal aborts or the storage is closed. */
async function pause({ shared, signal }: Target, delayMs: number): Promise<void> {
  const over = new AbortController();
  try {
    await shared.pending.until(sleep(delayMs, { clock: shared.clock, signal: over.signal }), signal);
  } finally {
    over.abort();
  }
}

/** The result of user code. Waits for it until the signal aborts, or the storage is closed. */
function asked<R>({ shared, signal }: Target, answer: R | Promise<R>): R | Promise<R> {
  return isPromise(answer) ? shared.pending.until(answer, signal) : answer;
}
