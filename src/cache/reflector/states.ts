import type { Failure } from './failure.ts';

/**
 * The states of a reflector. `streaming` is a watch that begins with the state of the collection, up to where that ends; `watching`
 * is a watch from there, or one that is about to be opened; `waiting` is between two requests.
 */
export type State = 'idle' | 'streaming' | 'listing' | 'watching' | 'waiting' | 'stopped';

/** How long a watch took, from the request on. */
interface Ran {
  readonly ranMs: number;
}

/** What has happened. Each is the outcome of the action before it, except `stop`, which may come at any time. */
export type Input =
  | { readonly type: 'start' }
  /** The source has accepted a watch. */
  | { readonly type: 'opened' }
  | { readonly type: 'listed'; readonly paged: boolean }
  /** The watch has delivered a change of an object, a BOOKMARK, or the BOOKMARK that ends the initial state, of this version. */
  | { readonly type: 'event'; readonly resourceVersion: string }
  | { readonly type: 'bookmark'; readonly resourceVersion: string }
  | { readonly type: 'initialEnd'; readonly resourceVersion: string }
  /** What was read is stored, collected for the initial state, or reported as broken. The version is empty if it had none. */
  | { readonly type: 'stored'; readonly resourceVersion: string }
  /** The store has got a whole list. */
  | { readonly type: 'replaced'; readonly resourceVersion: string }
  /** The store has thrown, or `shouldResync` has. */
  | ({ readonly type: 'storeFailed' } & Failure & Ran)
  /** A list or a watch was refused. */
  | ({ readonly type: 'refused' } & Failure & Ran)
  /** The watch has delivered an ERROR, or reading it has failed. */
  | ({ readonly type: 'error' } & Failure & Ran)
  /** Nothing has come for too long. */
  | ({ readonly type: 'silent' } & Failure & Ran)
  /** The watch has ended. `empty`: it had brought nothing. */
  | ({ readonly type: 'ended'; readonly empty: boolean } & Ran)
  /** The delay has passed. */
  | { readonly type: 'due' }
  | { readonly type: 'stop' };

/** What the shell does next. Its outcome is the next input. */
export type Action =
  /** List the collection. */
  | { readonly do: 'list'; readonly resourceVersion: string; readonly pageSize: number }
  /** Open a watch that begins with the state. */
  | { readonly do: 'stream'; readonly resourceVersion: string }
  /** Open a watch that goes on from a version. */
  | { readonly do: 'watch'; readonly resourceVersion: string }
  /** Get the next event. */
  | { readonly do: 'read' }
  /** The event belongs to the state that is being streamed. */
  | { readonly do: 'collect' }
  /** What was listed or collected replaces what the store has. */
  | { readonly do: 'replace' }
  /** The event is for the store. */
  | { readonly do: 'apply' }
  /** End the watch, and wait. */
  | { readonly do: 'wait'; readonly delayMs: number }
  /** End everything. */
  | { readonly do: 'end' };

/** What an input leads to. */
export interface Step {
  readonly state: State;
  readonly action: Action;
  /** A failure that is not reported: the next request will show whether it matters. */
  readonly quiet?: boolean | undefined;
  /** A failure that is not the input's. */
  readonly failure?: Failure | undefined;
}
