/**
 * Who owns whom: the objects that have owners, by their owners' uids, and those that wait for their dependents. Objects that have
 * no owners and do not wait cost nothing.
 *
 *     seen, gone ---> [ nodes by key | dependents by the owner's uid | waiting by uid ] ---> look: at this object again
 *                                                                                     '---> lookBelow: at its dependents
 *
 * It knows what it was told, which may be outdated: what it says is a reason to look, never one to delete.
 */
import type { KubernetesObject } from '../cache/object.ts';
import { getOrMake, isRecord } from '../watch/errors.ts';
import { FOREGROUND, ORPHAN } from './verbs/remove.ts';

/** A reference to an owner. Upstream: `metav1.OwnerReference`. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly blockOwnerDeletion?: boolean | undefined;
}

/** What an object that is being deleted waits for. */
type Waits = typeof FOREGROUND | typeof ORPHAN | undefined;

/** An object that has owners, or that waits. */
export interface Node {
  /** The prefix of its kind in the storage, and its key below that. */
  readonly prefix: string;
  readonly key: string;
  readonly uid: string;
  owners: readonly OwnerReference[];
  waits: Waits;
}

/** Called when there may be something to do. */
interface Reactions {
  readonly look: (node: Node) => void;
  readonly lookBelow: (uid: string) => void;
}

const NONE: readonly OwnerReference[] = [];

/** The owners of an object. Objects that were not written through the API may contain anything. */
export function ownersOf({ metadata }: KubernetesObject): readonly OwnerReference[] {
  const owners = metadata?.ownerReferences;
  if (!Array.isArray(owners) || owners.length === 0) return NONE;
  return owners.filter((each): each is OwnerReference => isRecord(each) && typeof each.uid === 'string');
}

export function waitsOf({ metadata }: KubernetesObject): Waits {
  const { deletionTimestamp, finalizers = [] } = metadata ?? {};
  if (deletionTimestamp === undefined) return undefined;
  return ([ORPHAN, FOREGROUND] as const).find((each) => finalizers.includes(each));
}

const MEMBERS = ['uid', 'apiVersion', 'kind', 'name', 'blockOwnerDeletion'] as const;

export function isSameOwners(one: readonly OwnerReference[], other: readonly OwnerReference[]): boolean {
  return one.length === other.length && one.every((each, at) => MEMBERS.every((name) => each[name] === other[at]?.[name]));
}

export const blocks = ({ blockOwnerDeletion }: OwnerReference): boolean => blockOwnerDeletion === true;

export class OwnerIndex {
  private readonly nodes: Map<string, Map<string, Node>> = new Map();
  private readonly dependents: Map<string, Set<Node>> = new Map();
  private readonly waiting: Map<string, Node> = new Map();
  private readonly reactions: Reactions;

  constructor(reactions: Reactions) {
    this.reactions = reactions;
  }

  /** The objects of one kind that it knows. */
  *of(prefix: string): IterableIterator<Node> {
    yield* this.nodes.get(prefix)?.values() ?? [];
  }

  *all(): IterableIterator<Node> {
    for (const nodes of this.nodes.values()) yield* nodes.values();
  }

  /** Those that wait for their dependents. */
  allWaiting(): Iterable<Node> {
    return this.waiting.values();
  }

  /** What the object with a uid waits for. */
  waitsOf(uid: string): Waits {
    return this.waiting.get(uid)?.waits;
  }

  dependentsOf(uid: string): ReadonlySet<Node> {
    return this.dependents.get(uid) ?? EMPTY;
  }

  has(node: Node): boolean {
    return this.nodes.get(node.prefix)?.get(node.key) === node;
  }

  /** Called with the current state of an object. */
  seen(prefix: string, key: string, object: KubernetesObject): void {
    const uid = object.metadata?.uid ?? '';
    const [owners, waits] = [ownersOf(object), waitsOf(object)];
    let node = this.nodes.get(prefix)?.get(key);
    if (node !== undefined && node.uid !== uid) {
      // It replaces one with the same name, whose deletion was not reported.
      this.gone(node, node.uid);
      node = undefined;
    }
    if (node === undefined) {
      if (owners.length === 0 && waits === undefined) return;
      node = { prefix, key, uid, owners: NONE, waits: undefined };
      this.add(node);
    }
    const before = node.owners;
    const begins = waits !== undefined && waits !== node.waits;
    const isSame = isSameOwners(before, owners);
    node.waits = waits;
    if (waits === undefined) this.waiting.delete(uid);
    else this.waiting.set(uid, node);
    if (!isSame) this.move(node, owners);
    if (owners.length === 0 && waits === undefined) this.drop(node);
    if (begins) this.reactions.lookBelow(uid);
    if (begins || (!isSame && owners.length > 0)) this.reactions.look(node);
  }

  /** Called when an object is gone, whether or not it was known. */
  gone({ prefix, key }: Pick<Node, 'prefix' | 'key'>, uid: string): void {
    const node = this.nodes.get(prefix)?.get(key);
    if (node !== undefined && node.uid === uid) {
      this.waiting.delete(uid);
      this.move(node, NONE);
      this.drop(node);
    }
    if (this.dependents.has(uid)) this.reactions.lookBelow(uid);
  }

  /** Changes a node's owners. Owners that wait, and that it no longer has or blocks, may have been waiting for this. */
  private move(node: Node, owners: readonly OwnerReference[]): void {
    const before = node.owners;
    const kept = new Set(owners.map(({ uid }) => uid));
    node.owners = owners;
    for (const { uid } of owners) {
      getOrMake(this.dependents, uid, () => new Set<Node>()).add(node);
    }
    for (const { uid } of before) {
      if (!kept.has(uid)) this.part(node, uid);
      const owner = this.waiting.get(uid);
      if (owner) this.reactions.look(owner);
    }
  }

  private part(node: Node, uid: string): void {
    const dependents = this.dependents.get(uid);
    dependents?.delete(node);
    if (dependents?.size === 0) this.dependents.delete(uid);
  }

  private add(node: Node): void {
    getOrMake(this.nodes, node.prefix, () => new Map<string, Node>()).set(node.key, node);
  }

  private drop({ prefix, key }: Node): void {
    const nodes = this.nodes.get(prefix);
    nodes?.delete(key);
    if (nodes?.size === 0) this.nodes.delete(prefix);
  }
}

const EMPTY: ReadonlySet<Node> = new Set();
