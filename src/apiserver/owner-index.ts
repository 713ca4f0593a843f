/**
 * Who belongs to whom: the objects that have owners, by their owners' uids, and those that wait for their dependents. What has no
 * owner, and does not wait, costs nothing.
 *
 *     seen, gone ---> [ nodes by key | dependents by the owner's uid | waiting by uid ] ---> look: at this object again
 *                                                                                     '---> lookBelow: at its dependents
 *
 * It knows what was told, which may be late: what it says is a reason to look, never one to delete.
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

/** For what an object waits that is being deleted. */
type Waits = typeof FOREGROUND | typeof ORPHAN | undefined;

/** An object that has owners, or that waits. */
export interface Node {
  /** The place of its kind in the storage, and its own there. */
  readonly prefix: string;
  readonly key: string;
  readonly uid: string;
  owners: readonly OwnerReference[];
  waits: Waits;
}

/** What is done when something may be due. */
interface Reactions {
  readonly look: (node: Node) => void;
  readonly lookBelow: (uid: string) => void;
}

const NONE: readonly OwnerReference[] = [];

/** The owners of an object. What was written past the API may be anything. */
export function ownersOf({ metadata }: KubernetesObject): readonly OwnerReference[] {
  const owners = metadata?.ownerReferences;
  if (!Array.isArray(owners) || owners.length === 0) return NONE;
  return owners.filter((each): each is OwnerReference => isRecord(each) && typeof each.uid === 'string');
}

/** For what an object waits. */
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

  /** All of them. */
  *all(): IterableIterator<Node> {
    for (const nodes of this.nodes.values()) yield* nodes.values();
  }

  /** Those that wait for their dependents. */
  allWaiting(): Iterable<Node> {
    return this.waiting.values();
  }

  /** For what the object of a uid waits. */
  waitsOf(uid: string): Waits {
    return this.waiting.get(uid)?.waits;
  }

  dependentsOf(uid: string): ReadonlySet<Node> {
    return this.dependents.get(uid) ?? EMPTY;
  }

  has(node: Node): boolean {
    return this.nodes.get(node.prefix)?.get(node.key) === node;
  }

  /** An object is there as it is now. */
  seen(prefix: string, key: string, object: KubernetesObject): void {
    const uid = object.metadata?.uid ?? '';
    const [owners, waits] = [ownersOf(object), waitsOf(object)];
    let node = this.nodes.get(prefix)?.get(key);
    if (node !== undefined && node.uid !== uid) {
      // Another one of its name: the end of the first has not been told.
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

  /** An object is gone, whether or not it was known. Without an object: a node that is not there any more. */
  gone({ prefix, key }: Pick<Node, 'prefix' | 'key'>, uid: string): void {
    const node = this.nodes.get(prefix)?.get(key);
    if (node !== undefined && node.uid === uid) {
      this.waiting.delete(uid);
      this.move(node, NONE);
      this.drop(node);
    }
    if (this.dependents.has(uid)) this.reactions.lookBelow(uid);
  }

  /** Gives a node other owners. Those that wait, and that it no longer blocks or no longer has, may be waiting for this. */
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
