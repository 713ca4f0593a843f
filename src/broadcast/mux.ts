import { WatchError } from '../watch/errors.ts';
import type { EventLog } from './log/log.ts';
import { ReplayWindow, type WindowOptions } from './log/window.ts';
import { concerns, type Topics, TopicViews } from './topics.ts';
import { type Leaver, View } from './view.ts';
import { type Forgotten, newForgotten } from './watchers/forgotten.ts';
import { type Linked, LinkedSet } from './watchers/linked-set.ts';
import type { Park } from './watchers/park.ts';
import { Signals } from './watchers/signals.ts';
import { soon } from './watchers/soon.ts';

/** Options of a {@link Mux}. */
export interface MuxOptions<E> {
  readonly capacity: number;
  readonly incoming: number;
  readonly keyOf: (event: E) => unknown;
  /** Set if watchers may ask for topics. */
  readonly hasTopics?: boolean;
  /** Set if the last events are kept. */
  readonly window?: WindowOptions<E> | undefined;
}

/** A publish that waits for room. */
interface Pending<E> extends Linked {
  readonly event: E;
  readonly topics: Topics;
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
 * slow readers are not noticed here. **Waking** of pending reads: see watchers/park.ts. **Closing**: once every accepted event is
 * visible, `closed` is set and nothing moves again.
 *
 * Everything here is synchronous. User code (filters, `onGap`, `keyOf`) runs inside `gate.open`, `enter` and `park.serve`, and
 * may publish, watch, stop or shut down. Every loop therefore re-reads the state after calling them.
 */
export class Mux<E> {
  readonly options: MuxOptions<E>;
  /** The view of watchers that see every event, and its log, which counts them. */
  readonly all: View<E>;
  readonly log: EventLog<E>;
  readonly topics: TopicViews<E> | undefined;
  readonly window: ReplayWindow<E> | undefined;
  readonly signals: Signals<Leaver> = new Signals();
  /** Owned by the mux, not the broadcaster: it must live as long as anything that may wait for a forgotten watch. */
  readonly forgotten: Forgotten = newForgotten();
  watchers: number = 0;
  /** No further event will be accepted. */
  closing: boolean = false;
  /** No further event will become visible. */
  closed: boolean = false;
  /** Number of publishes that wait for room. */
  pending: number = 0;
  /** Called once, when `closed` becomes true. */
  onClosed: (() => void) | undefined = undefined;
  private onVisible: ((view: View<E>) => void) | undefined = undefined;
  /** Events have neither topics nor places, and nobody is called when one becomes visible. */
  private isPlain: boolean;
  /** Number of watchers that may hold the publisher back. */
  private holding: number = 0;
  /** The views of topics that each accepted event belongs to, from head to end. */
  private readonly routes: (readonly View<E>[])[] = [];
  private readonly line: LinkedSet<Pending<E>> = new LinkedSet();
  private busy: boolean = false;
  /** The parks to serve at the end of this turn: all of them in one go, so that nothing moves in between. */
  private due: Park[] | undefined = undefined;

  readonly onDue: (park: Park) => void = (park) => {
    if (this.due) {
      this.due.push(park);
      return;
    }
    this.due = [park]; // an array that grows from nothing would have room for 17
    soon(this.serveDue);
  };

  /** Serves parked readers, then moves on, since their reads have made room. */
  private readonly serveDue: () => void = () => {
    const { due = NO_VIEWS } = this;
    this.due = undefined;
    this.busy = true;
    for (const park of due) park.serve();
    this.busy = false;
    this.pump();
  };

  constructor(options: MuxOptions<E>) {
    this.options = options;
    this.all = new View(this);
    this.log = this.all.log;
    this.topics = options.hasTopics ? new TopicViews() : undefined;
    this.window = options.window && new ReplayWindow(this.log, options.window);
    this.isPlain = !this.topics && !this.window;
  }

  /** Calls back when a view has got an event. */
  whenVisible(callback: (view: View<E>) => void): void {
    this.onVisible = callback;
    this.isPlain = false;
  }

  /** Accepts an event if there is room now. Returns whether it did. */
  accept(event: E, topics?: Topics): boolean {
    // User code may have stopped the watcher that blocked the pending publishes. They come before this event.
    while (this.pending > 0) if (this.holding > 0 || !this.admitted()) return false;
    const { all, log } = this;
    let accepted = true;
    // The usual case, in which nobody has to be asked. Small enough for the compiler to inline, it takes a third of the time.
    if (this.isPlain && log.head === log.end && all.gate.isSurelyOpen(log.head)) {
      log.append(event);
      if (log.step()) all.enter(log.chunkOf(log.head));
      all.park.notify();
    } else accepted = this.admit(event, topics);
    // A full watcher lets events pass that its filter rejects, so the filter is asked once the event has its place. An event that
    // the filter published meanwhile may have found no room, or may have taken the room of this one.
    if (log.head < log.end || this.pending > 0) this.pump();
    return accepted;
  }

  /** Queues a publish. Resolves as soon as there is room. */
  acceptLater(event: E, topics?: Topics): Promise<void> {
    return new Promise((settle) => {
      this.line.add({ event, topics, settle, inSet: undefined, before: undefined, after: undefined });
      // Only the blocking watcher would pump again, and user code may have made room since the gate was asked.
      if (++this.pending === 1) this.pump();
    });
  }

  /** Moves head and accepts pending publishes, as far as the gate allows. */
  pump(): void {
    if (this.busy) return; // the running pump continues, or `serve` pumps at its end
    this.busy = true;
    do {
      while (this.log.head < this.log.end) {
        const { head } = this.log;
        const views = this.routes[0] ?? NO_VIEWS;
        if (!this.opens(views)) break;
        if (this.log.head !== head) continue;
        this.routes.shift();
        this.advance(views);
      }
    } while (this.admitted());
    this.busy = false;
    if (this.closing && !this.closed && this.pending === 0 && this.log.head === this.log.end) this.close();
  }

  /** Gives up on full `wait` watchers: they lose the events they have no room for. Pending publishes are refused. */
  force(): void {
    for (let pending = this.line.first; pending; pending = this.line.first) {
      this.unline(pending);
      pending.settle(Promise.reject(new WatchError('CLOSED', 'publish: shut down before there was room')));
    }
    // Move every head to its end before any user code runs: a watcher it stops has then received, or lost, every accepted event.
    const entered = new Map([[this.all, this.log.chunkOf(this.log.head)]]);
    for (let views = this.routes.shift(); this.log.head < this.log.end; views = this.routes.shift()) {
      this.step(this.all);
      for (const view of views ?? NO_VIEWS) {
        if (!entered.has(view)) entered.set(view, view.log.chunkOf(view.log.head));
        this.step(view);
      }
    }
    for (const [view, last] of entered) {
      for (let chunk = last; chunk < view.log.chunkOf(view.log.head); ) view.enter(++chunk);
      view.park.notify();
    }
    this.pump();
  }

  joined(holdsPublisher: boolean): void {
    this.watchers++;
    if (holdsPublisher) this.holding++;
  }

  left(watcher: Leaver, view: View<E>): void {
    this.watchers--;
    this.signals.delete(watcher);
    this.forgotten.unregister(watcher);
    if (view.watchers === 0 && view !== this.all) this.topics?.remove(view);
    if (!watcher.holdsPublisher) return;
    this.holding--;
    this.pump();
  }

  /** Returns the view of a set of topics. */
  viewOf(topics: readonly string[]): View<E> {
    const views = this.topics as TopicViews<E>;
    const known = views.find(topics);
    if (known) return known;
    const view = new View(this, topics);
    views.add(view);
    if (this.window) this.catchUp(view);
    return view;
  }

  /** Gives a new view the events that are accepted and not visible: a watch that begins in the past needs them. */
  private catchUp(view: View<E>): void {
    const { log, routes } = this;
    view.log.retain(0); // stores events from now on, also while nobody stands
    for (let at = log.head; at < log.end; at++) {
      const topics = log.noteAt(at) as Topics;
      if (!concerns(topics, view.topics as readonly string[])) continue;
      view.log.append(log.at(at), { note: at });
      routes[at - log.head] = [...(routes[at - log.head] ?? NO_VIEWS), view];
    }
  }

  /** Appends an event if there is room. A publish that waited (`pending`) leaves the line right before. */
  private admit(event: E, topics: Topics, pending?: Pending<E>): boolean {
    const { log } = this;
    while (log.head === log.end) {
      const { head } = log;
      const changes = this.topics?.changes;
      const views = this.viewsOf(topics);
      const open = this.opens(views);
      // User code at the gate has shut down, or given up on the pending publishes. That came first.
      if (this.closed || (pending && !this.line.has(pending))) return false;
      if (!open) break;
      // User code at the gate has published, or joined or left, and that came first.
      if (log.end !== head || this.topics?.changes !== changes) continue;
      if (pending) this.unline(pending);
      this.append(event, { topics, views, waits: false });
      this.advance(views);
      return true;
    }
    if (log.end - log.head >= this.options.incoming && this.holding > 0) return false;
    if (pending) this.unline(pending);
    const views = this.viewsOf(topics);
    this.append(event, { topics, views, waits: true });
    if (this.topics) this.routes.push(views);
    return true;
  }

  private viewsOf(topics: Topics): readonly View<E>[] {
    return this.topics ? this.topics.of(topics) : NO_VIEWS;
  }

  /** Whether the next event may become visible now, by the gates of all who want it. */
  private opens(views: readonly View<E>[]): boolean {
    if (!this.all.gate.open(this.log.head)) return false;
    for (const view of views) if (!view.gate.open(view.log.head)) return false;
    return true;
  }

  /** Appends an event to the logs of its views. `waits`: it is not made visible at once. */
  private append(event: E, { topics, views, waits }: { topics: Topics; views: readonly View<E>[]; waits: boolean }): void {
    const place = this.log.end;
    if (!this.window && !waits) {
      this.log.append(event);
      for (const view of views) view.log.append(event);
      return;
    }
    // Topics are noted where they can be asked for again, and places where they are told.
    this.log.append(event, { note: this.window && topics, waits });
    for (const view of views) view.log.append(event, { note: this.window && place, waits });
  }

  private admitted(): boolean {
    const pending = this.line.first;
    if (!pending || !this.admit(pending.event, pending.topics, pending)) return false;
    pending.settle(undefined);
    return true;
  }

  private unline(pending: Pending<E>): void {
    this.line.delete(pending);
    this.pending--;
  }

  /** Makes one more event visible: in all logs first, because what follows may run user code. */
  private advance(views: readonly View<E>[]): void {
    const { all } = this;
    const chunk = this.step(all);
    const chunks = views.length === 0 ? undefined : views.map((view) => this.step(view));
    if (chunk !== undefined) all.enter(chunk);
    all.park.notify();
    chunks?.forEach((each, at) => {
      const view = views[at] as View<E>;
      if (each !== undefined) view.enter(each);
      view.park.notify();
    });
  }

  /** Moves the head of a view. Returns the chunk that it has entered, if it has. */
  private step(view: View<E>): number | undefined {
    const entered = view.log.step();
    if (view === this.all) this.window?.add();
    this.onVisible?.(view);
    return entered ? view.log.chunkOf(view.log.head) : undefined;
  }

  private close(): void {
    this.closed = true;
    this.signals.clear();
    this.onClosed?.();
    this.due = [this.all.park, ...(this.topics?.all() ?? NO_VIEWS).map((view) => view.park)];
    this.serveDue();
  }
}

const NO_VIEWS: readonly never[] = [];
