import { invalid } from '../watch/errors.ts';
import type { View } from './view.ts';

/** What `topicsOf` returns for an event. */
export type Topics = string | readonly string[] | undefined;

/** What decides where an event goes, and for how long it is kept: its topics, and its size if that is limited. */
export interface Routing {
  readonly topics: Topics;
  bytes: number;
}

/** No views of topics, as for every event while no watcher asks for topics. */
export const NONE: readonly never[] = [];

/** The topics of an event for every watcher. Not for an application's `topicsOf`. */
export const EVERY_TOPIC: readonly string[] = [];

/**
 * The views for watchers of topics, and which of them an event belongs to.
 *
 *     event of topics b, c          a --> {a}
 *                                   b --> {b}, {a, b}        -----> {b}, {a, b}, {c}: each once
 *                                   c --> {c}
 *
 * A watcher of several topics stands in the view of exactly that set, so it gets an event once, and in order, however many of its
 * topics the event has. A view lives as long as it has watchers: a topic that nobody watches is not in the table.
 */
export class TopicViews<E> {
  /** The views that include a topic. */
  private readonly byTopic: Map<string, View<E>[]> = new Map();
  readonly #views: Set<View<E>> = new Set();
  /** Counts the views that were created or removed. */
  changes: number = 0;

  /** Returns the view of exactly these topics, if there is one. */
  find(topics: readonly string[]): View<E> | undefined {
    return this.byTopic.get(topics[0] as string)?.find((view) => isSame(view.topics as readonly string[], topics));
  }

  add(view: View<E>): void {
    const topics = view.topics as readonly string[];
    this.#views.add(view);
    for (const topic of topics) {
      // A new array: events that wait at the gate have the old one, and are not for this view.
      this.byTopic.set(topic, [...(this.byTopic.get(topic) ?? NONE), view]);
    }
    this.changes++;
  }

  remove(view: View<E>): void {
    this.#views.delete(view);
    for (const topic of view.topics as readonly string[]) {
      const views = (this.byTopic.get(topic) as View<E>[]).filter((other) => other !== view);
      if (views.length > 0) this.byTopic.set(topic, views);
      else this.byTopic.delete(topic);
    }
    this.changes++;
  }

  /** Returns the views that an event belongs to, each once. The array must not be modified. */
  of(topics: Topics): readonly View<E>[] {
    if (typeof topics === 'string') return this.byTopic.get(topics) ?? NONE;
    if (topics === undefined) return NONE;
    if (topics === EVERY_TOPIC) return this.all();
    if (topics.length === 1) return this.of(topics[0]);
    const views = new Set<View<E>>();
    for (const topic of topics) for (const view of this.byTopic.get(topic) ?? []) views.add(view);
    return [...views];
  }

  all(): View<E>[] {
    return [...this.#views];
  }
}

/**
 * Returns what `topicsOf` has returned, if it is valid; throws INVALID_ARGUMENT otherwise. An array is copied: the event may wait
 * and its topics be needed later, while `topicsOf` may reuse its array for the next event.
 */
export function toTopics(topics: Topics): Topics {
  if (topics === undefined || typeof topics === 'string' || topics === EVERY_TOPIC) return topics;
  const list = toList(topics);
  if (list) return list;
  throw invalid('topicsOf', topics, 'a function that returns a string, an array of strings, or undefined');
}

/**
 * Returns the topics of a watcher without repetitions, and sorted, so that equal sets are equal lists; throws INVALID_ARGUMENT if
 * they are not a list of strings.
 */
export function toTopicSet(topics: readonly string[]): readonly string[] {
  const list = toList(topics);
  if (!list) throw invalid('topics', topics, 'an array of strings');
  return [...new Set(list)].sort();
}

/** Whether an event of these topics belongs to a watcher of a set. */
export function concerns(topics: Topics, set: readonly string[]): boolean {
  if (topics === EVERY_TOPIC) return true;
  return typeof topics === 'string' ? set.includes(topics) : topics?.some((topic) => set.includes(topic)) === true;
}

/** Returns a copy of a list of strings; undefined for anything else. */
function toList(topics: unknown): string[] | undefined {
  if (!Array.isArray(topics)) return undefined;
  const list = [...topics]; // first, because `every` skips holes
  return list.every((topic) => typeof topic === 'string') ? list : undefined;
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((topic, at) => topic === b[at]);
}
