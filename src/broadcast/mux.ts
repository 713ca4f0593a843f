import { whenAborted } from '../watch/abort.ts';
import { WatchError } from '../watch/errors.ts';
import { soon } from '../watch/turn.ts';
import { BroadcastWatch, type Forgotten, newForgotten } from './broadcast-watch.ts';
import type { Cursor } from './cursor.ts';
import { type StallOptions, Stalls } from './gate.ts';
import type { EventLog, ReplayWindow } from './log.ts';
import { concerns, NONE, type Routing, type TopicViews } from './topics.ts';
import { View, type ViewMember } from './view.ts';
import { type Linked, LinkedSet, type WaitingReaders } from './watcher-sets.ts';

/** One watcher of a broadcaster, at one moment. */
export interface WatcherStats {
  /** The option `name` of `watch`. */
  readonly name: string | undefined;
  /** Number of events that it has not read, and of those that it has lost. */
  readonly queued: number;
  readonly dropped: number;
  /**
   * Since when the publisher has waited for it, by the broadcaster's clock. Absent: the publisher does not wait for it, or
   * waits for another one first.
   */
  readonly waitsSinceMs?: number | undefined;
}

/** Options of a {@link Mux}. */
interface MuxOptions<E> {
  readonly capacity: number;
  readonly incoming: number;
  readonly keyOf: (event: E) => unknown;
  /** Whether `coalesce` forgets changes that cancel out, and folds soon: for queues limited only by the number of objects. */
  readonly forgets?: boolean;
  /** An empty instance, if watchers may ask for topics. */
  readonly topics?: TopicViews<E> | undefined;
  /** How many of the last events are kept, and how many bytes of them at most; default 0, and no limit. */
  readonly replayItems?: number;
  readonly replayBytes?: number;
  /** When to report that a `wait` watcher holds up the publisher. Default: never. */
  readonly stalls?: StallOptions;
}

/** A publish that waits for room. */
interface Pending<E> extends Linked {
  readonly event: E;
  readonly routing: Routing | undefined;
  readonly settle: (outcome: undefined | Promise<never>) => void;
}

/**
 * Moves events from accepted to visible. Every event passes through here, and nothing else moves a `head`.
 *
 *     publish -> [pending, at most maxPending] -> [log: end .. at most `incoming` .. head] -> every watcher's stretch of a log
 *                 waits for room                   accepted; waits at the gates               visible
 *
 * **Order** is the order of `append`, which is the order of the publish calls. The log of the view of all watchers counts every
 * event, so its positions are the places of events among all; the views of topics get theirs in the same steps. **Slow readers**
 * of policy `wait` close the gate of their view, and so hold up each event that one of them wants, and all events after it; other
 * slow readers are not noticed here. **Waking** of pending reads: see watcher-sets.ts. **Closing**: once every accepted event is
 * visible, `closed` is set and nothing moves again.
 *
 * Everything here is synchronous. User code (filters, `onGap`, `keyOf`) runs inside `gate.open`, `enter` and `readers.serve`, and
 * may publish, watch, stop or shut down. Every loop therefore re-reads the state after calling them.
 */
export class Mux<E> {
  readonly options: MuxOptions<E>;
  /** The view of watchers that see every event, and its log, which counts them. */
  readonly all: View<E>;
  readonly log: EventLog<E>;
  readonly topics: TopicViews<E> | undefined;
  readonly signals: Signals<ViewMember> = new Signals();
  readonly stalls: Stalls | undefined;
  /** Owned by the mux, not the broadcaster: it must live as long as anything that may wait for a forgotten watch. */
  readonly forgotten: Forgotten = newForgotten();
  watchers: number = 0;
  /** No further event will be accepted. */
  closing: boolean = false;
  /** No further event will become visible. */
  closed: boolean = false;
  /** Number of publishes that wait for room. */
  pending: number = 0;
  /** How many of them may be accepted now. */
  quota: number = Infinity;
  /** Called once, when `closed` becomes true. */
  onClosed: (() => void) | undefined;
  /** Called when a view has received an event. */
  onVisible: ((view: View<E>) => void) | undefined;
  /** Events have neither topics nor places, and no callback runs when one becomes visible. */
  #isPlain: boolean;
  /** Number of watchers that may hold the publisher back. */
  #holding: number = 0;
  /** How many such watchers have ever joined. */
  #joins: number = 0;
  /** The views of topics of each event that waits at the gates, from head to end. */
  readonly #waiting: (readonly View<E>[])[] = [];
  /** The size of the events in the window. */
  #bytes: number = 0;
  readonly #line: LinkedSet<Pending<E>> = new LinkedSet();
  #busy: boolean = false;
  /** The waiting readers to serve at the end of this turn: all of them at once, so that nothing moves in between. */
  #due: WaitingReaders[] | undefined;

  readonly onDue: (readers: WaitingReaders) => void = (readers) => {
    if (this.#due) {
      this.#due.push(readers);
      return;
    }
    this.#due = [readers]; // an array that grows from nothing would have room for 17
    soon(this.#serveDue);
  };

  /** Serves waiting readers, then moves on, since their reads have made room. */
  readonly #serveDue: () => void = () => {
    const due = this.#due ?? NONE;
    this.#due = undefined;
    this.#busy = true;
    for (const readers of due) readers.serve();
    this.#busy = false;
    this.pump();
  };

  constructor(options: MuxOptions<E>) {
    this.options = options;
    this.stalls = options.stalls && new Stalls(options.stalls, (watcher) => describe(watcher as Cursor<E>));
    this.all = new View(this);
    this.log = this.all.log;
    this.topics = options.topics;
    this.#isPlain = !this.topics && !options.replayItems;
  }

  /** Counts places from here on. Only before the first event and the first watch. */
  begin(place: number): void {
    this.log.begin(place);
    if (this.all.window) this.all.window.start = place;
  }

  /** Calls back when a view has received an event. */
  whenVisible(callback: (view: View<E>) => void): void {
    this.onVisible = callback;
    this.#isPlain = false;
  }

  /** Accepts an event if there is room now. Returns whether it did. */
  accept(event: E, routing?: Routing): boolean {
    // User code may have stopped the watcher that blocked the pending publishes. They come before this event.
    while (this.pending > 0) if (this.#holding > 0 || !this.#admitted()) return false;
    const { all, log } = this;
    let accepted = true;
    // The usual case, in which no watcher has to be asked. Small enough for the compiler to inline, it takes a third of the
    // time.
    if (this.#isPlain && log.head === log.end && all.gate.isSurelyOpen(log.head)) {
      if (!all.handOver(event)) {
        log.append(event);
        all.step();
        all.moved();
      }
    } else accepted = this.#admit(event, routing);
    // A full watcher lets events pass that its filter rejects, so the filter is asked once the event has its place. An event that
    // the filter published meanwhile may have found no room, or may have taken the room of this one.
    if (log.head < log.end || this.pending > 0) this.pump();
    return accepted;
  }

  /** Queues a publish. Resolves as soon as there is room. */
  acceptLater(event: E, routing?: Routing): Promise<void> {
    return new Promise((settle) => {
      this.#line.add({ event, routing, settle } as Pending<E>); // which links it
      // Only the blocking watcher would pump again, and user code may have made room since the gate was asked.
      if (++this.pending === 1) this.pump();
    });
  }

  /** Moves head and accepts pending publishes, as far as the gate allows. */
  pump(): void {
    if (this.#busy) return; // the running pump continues, or `serve` pumps at its end
    this.#busy = true;
    do {
      while (this.log.head < this.log.end) {
        const { head } = this.log;
        if (!this.#opens(this.#waiting[0] as readonly View<E>[])) break;
        if (this.log.head === head) this.#advance(this.#nextWaiting());
      }
    } while (this.#admitted());
    this.#busy = false;
    if (this.closing && !this.closed && this.pending === 0 && this.log.head === this.log.end) this.#close();
  }

  /** Returns the handle of a cursor that has joined. `signal` stops it. */
  handleOf(cursor: Cursor<E>, signal: AbortSignal | undefined): BroadcastWatch<E> {
    if (signal?.aborted)
      cursor.stop(); // aborted by the filter, when it was asked about the prefix
    else if (signal && !cursor.stopped) this.signals.add(cursor, signal);
    return new BroadcastWatch(cursor, this.forgotten);
  }

  /** The watchers that have not ended, each at this moment. */
  stats(): WatcherStats[] {
    if (this.closed) return [];
    const views = [this.all, ...(this.topics?.all() ?? NONE)];
    const cursors = views.flatMap((view) => view.members) as unknown as Cursor<E>[];
    return cursors.map((cursor) => {
      const { name } = cursor.options;
      const { queued, dropped } = cursor; // runs user code, which may end this watch or others
      const { gate, log } = cursor.view;
      const holdsUp = gate.blocker === cursor && cursor.bound() <= log.head;
      return { name, queued, dropped, ...(holdsUp && { waitsSinceMs: gate.sinceMs }) };
    });
  }

  /** Accepts nothing from now on, and closes as soon as everything that was accepted is visible. */
  end(): void {
    this.closing = true;
    this.pump();
  }

  /** Gives up on full `wait` watchers: they lose the events they have no room for. Pending publishes are refused. */
  force(): void {
    for (let pending = this.#line.first; pending; pending = this.#line.first) {
      this.#unline(pending);
      pending.settle(Promise.reject(new WatchError('CLOSED', 'publish: shut down before there was room')));
    }
    // Move every head to its end before any user code runs: a watcher it stops has then received, or lost, every accepted event.
    const moved = new Set([this.all]);
    while (this.#waiting.length > 0) {
      const views = this.#nextWaiting();
      this.#step(views);
      for (const view of views) moved.add(view);
    }
    for (const view of moved) view.moved();
    this.pump();
  }

  joined(holdsPublisher: boolean): void {
    this.watchers++;
    if (!holdsPublisher) return;
    this.#holding++;
    this.#joins++;
  }

  left(watcher: ViewMember, view: View<E>): void {
    this.watchers--;
    this.signals.delete(watcher);
    this.forgotten.unregister(watcher);
    if (view.watchers === 0 && view !== this.all) this.topics?.remove(view);
    if (!watcher.holdsPublisher) return;
    this.#holding--;
    this.pump();
  }

  /** Returns the view of a set of topics. */
  viewOf(topics: readonly string[]): View<E> {
    const views = this.topics as TopicViews<E>;
    const known = views.find(topics);
    if (known) return known;
    const view = new View(this, topics);
    views.add(view);
    if (view.window) this.#fill(view);
    return view;
  }

  /** Gives a new view its events of the window, and those that wait. */
  #fill(view: View<E>): void {
    const { log } = this;
    const waiting = this.#waiting;
    for (let at = this.all.window?.start as number; at < log.end; at++) {
      if (!concerns((log.noteAt(at) as Routing).topics, view.topics as readonly string[])) continue;
      const ahead = at - log.head;
      view.log.append(log.at(at), at);
      if (ahead < 0) view.step();
      else {
        view.log.need();
        waiting[ahead] = [...(waiting[ahead] as readonly View<E>[]), view];
      }
    }
  }

  /** Appends an event if there is room. A publish that waited (`pending`) leaves the line right before. */
  #admit(event: E, routing: Routing | undefined, pending?: Pending<E>): boolean {
    const { log } = this;
    while (log.head === log.end) {
      const { head } = log;
      const changes = this.topics?.changes;
      const views = this.#viewsOf(routing);
      const open = this.#opens(views);
      // User code at the gate has shut down, or given up on the pending publishes. That came first.
      if (this.closed || (pending && !this.#line.has(pending))) return false;
      if (!open) break;
      // User code at the gate has published, or joined or left, and that came first.
      if (log.end !== head || this.topics?.changes !== changes) continue;
      if (pending) this.#unline(pending);
      this.#append(views, event, routing);
      this.#advance(views);
      return true;
    }
    if (log.end - log.head >= this.options.incoming && this.#holding > 0) return false;
    if (pending) this.#unline(pending);
    const views = this.#viewsOf(routing);
    // Waiting events are stored, even if no watcher stands in the log.
    this.log.need();
    for (const view of views) view.log.need();
    this.#append(views, event, routing);
    this.#waiting.push(views);
    return true;
  }

  /** Returns the views of topics that get an event. The array must not be modified. */
  #viewsOf(routing: Routing | undefined): readonly View<E>[] {
    return this.topics ? this.topics.of(routing?.topics) : NONE;
  }

  /** Whether the next event of these views may become visible now. */
  #opens(views: readonly View<E>[]): boolean {
    if (views === NONE) return this.all.gate.open(this.log.head);
    for (;;) {
      const joins = this.#joins;
      if (!this.all.gate.open(this.log.head)) return false;
      for (const view of views) if (!view.gate.open(view.log.head)) return false;
      // User code at one gate may have added a watcher to a gate that was asked before.
      if (joins === this.#joins) return true;
    }
  }

  #append(views: readonly View<E>[], event: E, routing: Routing | undefined): void {
    const { log } = this;
    // The routing is noted if it may be needed again, and the place if places are reported.
    const place = this.all.window && log.end;
    log.append(event, this.all.window && routing);
    if (views !== NONE) for (const view of views) view.log.append(event, place);
  }

  #nextWaiting(): readonly View<E>[] {
    const views = this.#waiting.shift() as readonly View<E>[];
    this.log.unneed();
    for (const view of views) view.log.unneed();
    return views;
  }

  #admitted(): boolean {
    const pending = this.#line.first;
    if (!pending || !this.quota || !this.#admit(pending.event, pending.routing, pending)) return false;
    this.quota--;
    pending.settle(undefined);
    return true;
  }

  #unline(pending: Pending<E>): void {
    this.#line.delete(pending);
    this.pending--;
  }

  /** Makes one more event visible: in all logs first, because what follows may run user code. */
  #advance(views: readonly View<E>[]): void {
    this.#step(views);
    this.all.moved();
    if (views !== NONE) for (const view of views) view.moved();
  }

  #step(views: readonly View<E>[]): void {
    const { all } = this;
    all.step();
    if (views !== NONE) for (const view of views) view.step();
    if (all.window) this.#limit(all.window);
  }

  /** Keeps the windows within their limits, after one more event in all its views. */
  #limit(window: ReplayWindow<E>): void {
    this.#bytes += bytesOf(this.log.noteAt(this.log.head - 1));
    this.#trim(window);
  }

  /** The event at this place holds this many bytes more than when it was published. */
  grew(place: number, bytes: number): void {
    const { window } = this.all;
    if (!window || place < window.start) return; // it is no longer kept
    (this.log.noteAt(place) as Routing).bytes += bytes;
    this.#bytes += bytes;
    this.#trim(window);
  }

  #trim(window: ReplayWindow<E>): void {
    const { log } = this;
    const { replayItems = 0, replayBytes = Infinity } = this.options;
    while (log.head - window.start > replayItems || this.#bytes > replayBytes) {
      const routing = log.noteAt(window.start) as Routing | undefined;
      this.#bytes -= bytesOf(routing);
      window.shift();
      for (const view of this.#viewsOf(routing)) (view.window as ReplayWindow<E>).shift();
    }
  }

  #close(): void {
    this.closed = true;
    this.signals.clear();
    this.stalls?.end();
    this.onClosed?.();
    // After those that are already due: a removed view may have a read to settle.
    const readers = [this.all, ...(this.topics?.all() ?? NONE)].map((view) => view.readers);
    this.#due = [...(this.#due ?? NONE), ...readers];
    this.#serveDue();
  }
}

/** A watcher in a report. */
function describe({ options: { name }, queued }: { options: { name?: string | undefined }; queued: number }): string {
  return `${name === undefined ? 'a watcher without a name' : `the watcher ${JSON.stringify(name)}`}, with ${queued} events queued,`;
}

function bytesOf(routing: unknown): number {
  return (routing as Routing | undefined)?.bytes ?? 0;
}

/**
 * Stops watchers when a consumer's signal aborts. It listens once per signal, however many watches share it.
 *
 * Invariant: a signal has a listener only while a watcher here depends on it.
 */
class Signals<W extends { stop(): void }> {
  readonly #signals: Map<W, AbortSignal> = new Map();
  /** The watchers of each signal, in the order in which they joined. */
  readonly #listeners: Map<AbortSignal, { readonly all: Set<W>; readonly leave: () => void }> = new Map();

  add(watcher: W, signal: AbortSignal): void {
    let listener = this.#listeners.get(signal);
    if (!listener) {
      const all: Set<W> = new Set();
      // Each one that stops leaves, which deletes it from this set.
      const leave = whenAborted(signal, () => {
        for (const each of all) each.stop();
      });
      listener = { all, leave };
      this.#listeners.set(signal, listener);
    }
    listener.all.add(watcher);
    this.#signals.set(watcher, signal);
  }

  delete(watcher: W): void {
    const signal = this.#signals.get(watcher);
    const listener = signal && this.#listeners.get(signal);
    if (!listener) return;
    this.#signals.delete(watcher);
    listener.all.delete(watcher);
    if (listener.all.size > 0) return;
    this.#listeners.delete(signal);
    listener.leave();
  }

  clear(): void {
    for (const watcher of this.#signals.keys()) this.delete(watcher);
  }
}
