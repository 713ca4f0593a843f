/**
 * What is left in a namespace that is being deleted, and what the namespace says of it in its status, for those who wonder why it stays.
 *
 *     objects ---> Remains: how many of which kind, and of which finalizer ---> conditions ---> `kubectl describe namespace`
 *
 * Upstream, a namespace whose Pods have not ended says that no content remains, as the other kinds have not been counted then; here it
 * says so of its Pods. Upstream: `status_condition_utils.go` of the namespace controller.
 */
import type { KubernetesObject } from '../cache/object.ts';
import type { ResourceInfo } from './resource-info.ts';

/** A condition as it is stored. */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly lastTransitionTime: string;
  readonly reason: string;
  readonly message: string;
}

type News = Pick<Condition, 'reason' | 'message'>;
type Name = Pick<ResourceInfo, 'group' | 'version' | 'plural'>;

/** Each type, with what is said while nothing is wrong. */
const FINE: Readonly<Record<string, News>> = {
  NamespaceDeletionDiscoveryFailure: { reason: 'ResourcesDiscovered', message: 'All resources successfully discovered' },
  NamespaceDeletionGroupVersionParsingFailure: {
    reason: 'ParsedGroupVersions',
    message: 'All legacy kube types successfully parsed',
  },
  NamespaceDeletionContentFailure: {
    reason: 'ContentDeleted',
    message: 'All content successfully deleted, may be waiting on finalization',
  },
  NamespaceContentRemaining: { reason: 'ContentRemoved', message: 'All content successfully removed' },
  NamespaceFinalizersRemaining: { reason: 'ContentHasNoFinalizers', message: 'All content-preserving finalizers finished' },
};

/** What is left of one kind. */
class Left {
  count: number = 0;
  /** Whether somebody is known to be at work: a finalizer's owner, or a kubelet in its time. */
  isAwaited: boolean = false;
}

/** What an attempt to empty a namespace has left. */
export class Remains {
  private readonly namespace: string;
  private readonly now: number;
  private readonly kinds: Map<Name, Left> = new Map();
  private readonly finalizers: Map<string, number> = new Map();

  constructor(namespace: string, now: number) {
    this.namespace = namespace;
    this.now = now;
  }

  get isEmpty(): boolean {
    return this.kinds.size === 0;
  }

  /** Counts an object that is left. */
  add(kind: Name, { metadata = {} }: KubernetesObject): void {
    const left = this.kinds.get(kind) ?? new Left();
    this.kinds.set(kind, left);
    left.count++;
    const { finalizers = [], deletionTimestamp } = metadata;
    for (const each of finalizers) this.finalizers.set(each, (this.finalizers.get(each) ?? 0) + 1);
    if (finalizers.length > 0 || Date.parse(String(deletionTimestamp)) > this.now) left.isAwaited = true;
  }

  /** The conditions that follow earlier ones; the same list if they say the same. */
  conditionsAfter(old: readonly Condition[], now: string): readonly Condition[] {
    const news = this.news(this.whichStay());
    let isSame = true;
    const own = Object.entries(FINE).map(([type, fine]): Condition => {
      const before = old.find((each) => each.type === type);
      const wrong = news[type];
      const status = wrong ? 'True' : 'False';
      const { reason, message } = wrong ?? fine;
      if (before?.status === status && before.reason === reason && before.message === message) return before;
      isSame = false;
      const lastTransitionTime = before?.status === status ? before.lastTransitionTime : now;
      return { type, status, lastTransitionTime, reason, message };
    });
    return isSame ? old : [...old.filter(({ type }) => !Object.hasOwn(FINE, type)), ...own];
  }

  /** What is wrong if something stays that nobody is known to wait for. */
  private whichStay(): string[] {
    return [...this.kinds].flatMap(([{ group, version, plural }, { isAwaited }]) =>
      isAwaited ? [] : [`for gvr: ${group}/${version}, Resource=${plural}`],
    );
  }

  private news(staying: readonly string[]): Readonly<Record<string, News>> {
    const kinds = [...this.kinds].map(([{ group, plural }, { count }]) => `${plural}.${group} has ${count} resource instances`);
    const held = [...this.finalizers].map(([name, count]) => `${name} in ${count} resource instances`);
    const listed = (texts: readonly string[]): string => [...texts].sort().join(', ');
    const failed = staying.map((which) => `unexpected items still remain in namespace: ${this.namespace} ${which}`);
    return {
      ...(failed.length > 0 && {
        NamespaceDeletionContentFailure: {
          reason: 'ContentDeletionFailed',
          message: `Failed to delete all resource types, ${failed.length} remaining: ${listed(failed)}`,
        },
      }),
      ...(kinds.length > 0 && {
        NamespaceContentRemaining: {
          reason: 'SomeResourcesRemain',
          message: `Some resources are remaining: ${listed(kinds)}`,
        },
      }),
      ...(held.length > 0 && {
        NamespaceFinalizersRemaining: {
          reason: 'SomeFinalizersRemain',
          message: `Some content in the namespace has finalizers remaining: ${listed(held)}`,
        },
      }),
    };
  }
}
