import { getOrMake } from '../../watch/errors.ts';
import { show, type Violation, violation } from './history.ts';

/** One request to a storage, for one key: the call, the answer, and the times of both. */
export interface StorageRequest {
  readonly key: string;
  /** When it began and when its answer came, by any clock or counter that grows. `to` is absent if no answer ever came. */
  readonly from: number;
  readonly to?: number | undefined;
  /**
   * - `write`: store this value; `if`: only if the current value is that one, undefined for none. `delete`: remove the value.
   * - `read`: read the value, by a get or a list without a version.
   */
  readonly call:
    | { readonly do: 'write'; readonly value: unknown; readonly if?: { readonly value: unknown } | undefined }
    | { readonly do: 'delete'; readonly if?: { readonly value: unknown } | undefined }
    | { readonly do: 'read' };
  /**
   * - `done`: it was written, or this value was read. `refused`: the condition did not hold, so nothing was written; a `delete`
   *   without a condition is refused if there is nothing.
   * - Absent: it is unknown whether it happened, because no answer came, or one that does not say.
   */
  readonly answer?: { readonly is: 'done'; readonly value?: unknown } | { readonly is: 'refused' } | undefined;
  /** Who asked, for messages. */
  readonly client?: string | undefined;
}

/** What happened to a storage. A test records it where it calls the storage. */
export interface StorageHistory {
  readonly requests: readonly StorageRequest[];
  /** The initial values, by key; default none. */
  readonly initial?: Readonly<Record<string, unknown>> | undefined;
}

/** How many states of one key are searched before the search gives up. */
const MAX_STATES = 2_000_000;

/**
 * **Linearizable**: for each key, all requests can be put into one order, in which each took effect at one moment between its call
 * and its answer, so that every answer is what that order gives. A request without an answer took effect once after its call, or never.
 *
 * This is the search of Wing and Gong: try each request that may be next, and backtrack if that leads nowhere. It remembers what
 * has been tried: which requests are placed, and the value after them (Lowe). Values are compared as JSON.
 *
 * @throws {Error} if a key has a history for which the search is too long.
 */
export function checkLinearizable({ requests, initial = {} }: StorageHistory): Violation | undefined {
  const byKey = new Map<string, StorageRequest[]>();
  for (const request of requests) {
    getOrMake(byKey, request.key, () => []).push(request);
  }
  for (const [key, of] of byKey) {
    const deadEnd = new Search(of, textOf(Object.hasOwn(initial, key) ? initial[key] : undefined)).run();
    if (deadEnd) return wrong(key, deadEnd);
  }
  return undefined;
}

function wrong(key: string, { request, state }: DeadEnd): Violation {
  const { call, answer, client } = request;
  return violation('Linearizable', {
    ...(client !== undefined && { watcher: client }),
    event: { key, ...call },
    expected: `an order of the requests for ${key} in which each answer is right`,
    seen: `${show(answer)} where there is ${state}, in the order that goes furthest`,
  });
}

interface DeadEnd {
  readonly request: StorageRequest;
  readonly state: string;
}

/** A request, ready to be searched. */
interface SearchStep {
  readonly request: StorageRequest;
  readonly from: number;
  /** Infinity if it need not have happened. */
  readonly to: number;
}

/** One place in the order: the request that was put there, and the value before it. */
interface Placed {
  readonly at: number;
  readonly state: string;
}

class Search {
  readonly #steps: readonly SearchStep[];
  readonly #placed: boolean[];
  readonly #seen: Set<string> = new Set();
  readonly #order: Placed[] = [];
  #state: string;
  #furthest: { readonly depth: number; readonly deadEnd: DeadEnd } | undefined;

  constructor(requests: readonly StorageRequest[], state: string) {
    this.#state = state;
    this.#steps = requests
      // A read without an answer proves nothing.
      .filter(({ call, answer }) => answer !== undefined || call.do !== 'read')
      .map((request) => ({ request, from: request.from, to: request.answer ? (request.to ?? Infinity) : Infinity }))
      .sort((a, b) => a.from - b.from);
    this.#placed = this.#steps.map(() => false);
  }

  /** Why there is no order; undefined if there is one. */
  run(): DeadEnd | undefined {
    let next = 0;
    for (;;) {
      if (this.#isWhole()) return undefined;
      const found = this.#place(next);
      if (found) next = 0;
      else {
        const last = this.#order.pop();
        if (!last) return this.#furthest?.deadEnd;
        this.#placed[last.at] = false;
        this.#state = last.state;
        next = last.at + 1;
      }
    }
  }

  /** Whether every request that must have happened is placed. */
  #isWhole(): boolean {
    return this.#steps.every(({ request }, at) => this.#placed[at] || !request.answer);
  }

  /** Places the first request from `next` on that may be next; returns whether there is one. */
  #place(next: number): boolean {
    // A request that was answered comes before those that began after its answer.
    const limit = Math.min(...this.#steps.map(({ to }, at) => (this.#placed[at] ? Infinity : to)));
    for (let at = next; at < this.#steps.length; at++) {
      const step = this.#steps[at] as SearchStep;
      if (this.#placed[at]) continue;
      if (step.from > limit) break;
      const state = effect(step.request, this.#state);
      if (state === undefined) this.#note(step.request);
      else if (this.#enter(at, state)) return true;
    }
    return false;
  }

  #enter(at: number, state: string): boolean {
    this.#placed[at] = true;
    const name = `${this.#placed.map(Number).join('')}${state}`;
    if (this.#seen.has(name)) {
      this.#placed[at] = false;
      return false;
    }
    if (this.#seen.size >= MAX_STATES) throw new Error(`Linearizable: more than ${MAX_STATES} states of one key; record less`);
    this.#seen.add(name);
    this.#order.push({ at, state: this.#state });
    this.#state = state;
    return true;
  }

  #note(request: StorageRequest): void {
    if (this.#furthest && this.#furthest.depth >= this.#order.length) return;
    this.#furthest = { depth: this.#order.length, deadEnd: { request, state: this.#state } };
  }
}

const NOTHING = 'nothing';

/** The value after a request took effect; undefined if its answer would have been different. */
function effect({ call, answer }: StorageRequest, state: string): string | undefined {
  if (call.do === 'read') return answer?.is === 'done' && textOf(answer.value) === state ? state : undefined;
  const holds = call.if ? textOf(call.if.value) === state : call.do === 'write' || state !== NOTHING;
  if (answer?.is === 'refused') return holds ? undefined : state;
  if (!holds) return answer ? undefined : state;
  return call.do === 'write' ? textOf(call.value) : NOTHING;
}

function textOf(value: unknown): string {
  return value === undefined ? NOTHING : (JSON.stringify(value) ?? String(value));
}
