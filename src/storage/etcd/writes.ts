/**
 * Writes that depend on what is there: read, decide, write if nothing has changed meanwhile, or else decide again.
 *
 *     hint or read ---> preconditions, user code ---> write if the revision is the same ---> done
 *           ^                  | refused                     | it is not
 *           |            by a hint: read                     v
 *           '------------------------------- what etcd says is there
 *
 * Upstream: `GuaranteedUpdate` and `conditionalDelete` of storage/etcd3, which do not wait between conflicts.
 */

import type { KubernetesObject } from '../../cache/object.ts';
import { isPromise } from '../../watch/abort.ts';
import { Backoff } from '../../watch/backoff.ts';
import { copyOf, isSameContent } from '../memory/value.ts';
import { unmetPrecondition } from '../preconditions.ts';
import { notFound } from '../statuses.ts';
import type { DeleteOptions, UpdateOptions } from '../storage.ts';
import type { CallContext, EtcdClient } from './etcd-client.ts';
import { toBytes } from './key-bytes.ts';
import { atRevision, atVersion, type Draft, objectOf, toDraft, toStored } from './objects.ts';
import type { KeyValue } from './wire/messages.ts';

/** What is there, as far as is known. Revision 0: nothing. */
interface State<T> {
  readonly object: T | undefined;
  readonly revision: bigint;
  /** Whether etcd has said so since the write began. */
  readonly isCurrent: boolean;
}

/** One key, and its name in errors. */
export interface Target {
  readonly client: EtcdClient;
  readonly key: string;
  readonly place: string;
  readonly context: CallContext;
}

/** The result of a decision: these bytes are written, nothing is written, or what is there is deleted. */
type Decision<T> = { readonly draft: Draft<T> } | { readonly same: true } | { readonly remove: true };
type Decide<T> = (current: T | undefined) => Promise<Decision<T>>;

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
    const changed = await asked(target, change(copyOf(current) as T));
    const draft = toDraft<T>(toBytes(target.place), toStored(changed));
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
  const { client, place, context } = target;
  const backoff = new Backoff({ minMs: 2, maxMs: 200, factor: 2, random: client.settings.random });
  let state = hinted(cached) ?? (await readState<T>(target));
  for (let conflicts = 0; ; conflicts++) {
    if (conflicts > PROMPT_CONFLICTS) {
      await client.channel.wait(backoff.failed({}), context.signal);
      client.check(context.signal);
    }
    const decision = await decided(target, decide, state);
    state = decision.state;
    const { object, revision } = state;
    if ('same' in decision) return object as T;
    const draft = 'draft' in decision ? decision.draft : undefined;
    const key = toBytes(place);
    const written = await client.write(
      { key, expected: revision, ...(draft && { value: draft.value, ttlSeconds: ttlSeconds ?? 0 }) },
      context,
    );
    if (written.succeeded) {
      const now = written.header.revision;
      return draft ? client.wrote(now, atRevision(draft, now)) : atVersion(object as T, now);
    }
    state = stateOf<T>(written.current);
  }
}

/** Decides by what is there. If a hint leads to anything but a write, the decision is made again with etcd's answer. */
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
    target.context.signal?.throwIfAborted();
    refusal = { error };
  }
  const current = await readState<T>(target);
  if (refusal && current.revision === state.revision) throw refusal.error;
  return { ...(await decide(current.object)), state: current };
}

async function readState<T extends KubernetesObject>({ client, place, context }: Target): Promise<State<T>> {
  return stateOf<T>((await client.range({ key: toBytes(place) }, context)).kvs[0]);
}

function stateOf<T extends KubernetesObject>(kv: KeyValue | undefined): State<T> {
  return { object: kv && objectOf<T>(kv), revision: kv?.modRevision ?? 0n, isCurrent: true };
}

/** A hint counts only if its version can be one of etcd's. */
function hinted<T extends KubernetesObject>(cached: T | undefined): State<T> | undefined {
  const version = cached?.metadata?.resourceVersion;
  if (typeof version !== 'string' || !/^[1-9]\d{0,18}$/.test(version)) return undefined;
  return { object: cached, revision: BigInt(version), isCurrent: false };
}

/** The result of user code. Waits for it until the signal aborts, or the storage is closed. */
function asked<R>({ client, context }: Target, answer: R | Promise<R>): R | Promise<R> {
  return isPromise(answer) ? client.pending.until(answer, context.signal) : answer;
}
