/** What a list or a watch selects: which keys, and which objects under them; and what the watches of one selection share. */
import { EventLog, ReplayWindow } from '../../broadcast/log.ts';
import { WaitingReaders } from '../../broadcast/watcher-sets.ts';
import { type KubernetesObject, metadataOf } from '../../cache/object.ts';
import { type FieldRule, type FieldSelector, fitsRule, rulesOf } from '../../selectors/field-selector.ts';
import type { LabelSelector } from '../../selectors/label-selector.ts';
import { isPromise } from '../../watch/abort.ts';
import type { Status } from '../../watch/event.ts';
import { soon } from '../../watch/turn.ts';
import { fieldValue, predicateOf } from '../requests.ts';
import type { ChangeEvent, FieldFunctions } from '../storage.ts';
import type { ChangeLog, LogEntry } from './change-log.ts';

/** A field of the objects whose keys begin with a prefix. */
export interface Field {
  readonly prefix: string;
  /** The value of the field; empty if there is none; undefined if it cannot be read, in which case the object is not selected. */
  read(object: KubernetesObject): string | undefined;
}

/** A field and the value that it must have. */
export interface Pin {
  readonly field: Field;
  readonly value: string;
}

const NAME: Field = { prefix: '', read: (object) => metadataOf(object).name ?? '' };
const NAMESPACE: Field = { prefix: '', read: (object) => metadataOf(object).namespace ?? '' };

let readers = 0;

/**
 * The fields by which objects below a prefix can be selected. If a function of the application throws, or returns
 * anything but a string, that is reported once per object.
 */
export class FieldReader<T extends KubernetesObject> {
  /** Distinguishes readers with different functions. */
  readonly id: number = readers++;
  readonly functions: FieldFunctions<T>;
  readonly #fields: ReadonlyMap<string, Field>;

  constructor(
    functions: FieldFunctions<T>,
    { prefix, onError }: { readonly prefix: string; readonly onError: (error: unknown) => void },
  ) {
    this.functions = functions;
    const own = Object.entries(functions).map(
      ([name, readFrom]) => [name, toField((object: T) => fieldValue(name, readFrom(object)), prefix, onError)] as const,
    );
    // In likely order of objects per value, the fewest first: objects are found by the first field that is pinned.
    this.#fields = new Map([['metadata.name', NAME], ...own, ['metadata.namespace', NAMESPACE]]);
  }

  get(name: string): Field {
    return this.#fields.get(name) as Field;
  }

  get names(): Iterable<string> {
    return this.#fields.keys();
  }
}

function toField<T extends KubernetesObject>(
  readFrom: (object: T) => string,
  prefix: string,
  onError: (error: unknown) => void,
): Field {
  const told = new WeakSet<object>();
  return {
    prefix,
    read(object) {
      try {
        return readFrom(object as T);
      } catch (error) {
        if (!told.has(object)) onError(error);
        told.add(object);
        return undefined;
      }
    },
  };
}

/** What a request asks for. */
interface SelectionOptions {
  readonly prefix: string;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** A selection of objects. Selections with the same `id` select the same objects. */
export class Selection<T extends KubernetesObject> {
  /** The beginning of all keys. */
  readonly prefix: string;
  readonly id: string;
  /** The field value by which its objects are found; undefined if it requires none. */
  readonly pin: Pin | undefined;
  /** Whether it selects by the prefix alone. */
  readonly isWhole: boolean;
  readonly #labels: LabelSelector;
  readonly #rules: readonly { readonly field: Field; readonly rule: FieldRule }[];

  /** @throws {WatchError} REFUSED with code 400 for an invalid selector, or one that names an unknown field. */
  constructor(reader: FieldReader<T>, { prefix, ...selectors }: SelectionOptions) {
    const { labels, fields } = predicateOf<T>(selectors, reader.functions);
    this.prefix = prefix;
    this.isWhole = labels.isEmpty && fields.isEmpty;
    this.id = this.isWhole ? prefix : JSON.stringify([prefix, labels.canonical, fields.canonical, reader.id]);
    this.pin = pinOf(fields, reader);
    this.#labels = labels;
    this.#rules = rulesOf(fields.terms).map((rule) => ({ field: reader.get(rule.field), rule }));
  }

  matches(key: string, object: T): boolean {
    if (!key.startsWith(this.prefix)) return false;
    if (this.isWhole) return true;
    for (const { field, rule } of this.#rules) {
      const found = field.read(object);
      if (found === undefined || !fitsRule(rule, found)) return false;
    }
    return this.#labels.isEmpty || this.#labels.matches(metadataOf(object).labels);
  }
}

function pinOf<T extends KubernetesObject>(fields: FieldSelector, reader: FieldReader<T>): Pin | undefined {
  if (fields.isEmpty) return undefined;
  for (const name of reader.names) {
    const value = fields.requiresExactMatch(name);
    if (value !== undefined) return { field: reader.get(name), value };
  }
  return undefined;
}

/**
 * A view is what the watchers of one selection have in common: the changes that concern them, each as the event that they get.
 * The selection is evaluated once per change for all of them, and all get the same event, which is encoded once.
 *
 *     log of all   | 12 | 13 | 14 | 15 | 16 | 17 |          places
 *                    |              |         |
 *     view of a=1  | ADDED        | MODIFIED | DELETED  |    each with the place of its change
 *                                   ^ a watcher: it has only a place
 *
 * A view begins where the first of its watchers did. If a later watcher begins at an earlier place, the view is rebuilt from
 * there. An application's function that reads a field may write, compact, or start a watch of the same selection: then a change
 * may reach a view that has it already, or never reach it.
 *
 * Invariants
 * - It has an event for every change between `lostBefore` and the end of the log that concerns it, and no other.
 * - If `end` is set, it has ended: no event follows, and watchers that have read everything get the reason.
 */
export class SharedView<T extends KubernetesObject> {
  readonly selection: Selection<T>;
  /** Its watchers that are waiting. */
  readonly park: WaitingReaders;
  watchers: number = 0;
  /** How many of them wait until the state has been read. */
  opening: number = 0;
  /** Events of changes before this place are not here. */
  lostBefore: number = 0;
  /** Set once it has ended; with a status, its watchers learn that they miss something. */
  end: { readonly status?: Status } | undefined;
  /** It was built from the changes before this place. */
  #builtTo: number = 0;
  /** Made with the first event: most of ten thousand views may never have one. */
  #log: EventLog<ChangeEvent<T>> | undefined;
  #window: ReplayWindow<ChangeEvent<T>> | undefined;
  /** The newest state as ADDED events, while somebody reads it. */
  #initial: WeakRef<readonly ChangeEvent<T>[]> | undefined;
  /** The same while it is being read. */
  #reading: Promise<readonly ChangeEvent<T>[]> | undefined;

  constructor(selection: Selection<T>) {
    this.selection = selection;
    this.park = new WaitingReaders(serveSoon);
  }

  /** The position after its last event. */
  get head(): number {
    return this.#log?.head ?? 0;
  }

  /** Takes every change that concerns it from the log of all, from a place on. */
  build(log: ChangeLog<T>, from: number): void {
    this.#log = this.#window = undefined;
    this.lostBefore = from;
    this.#builtTo = 0;
    let place = from;
    for (; place < log.end; place++) {
      if (place >= log.start) this.take(log.at(place), place);
      else this.lostBefore = place + 1;
    }
    this.#builtTo = place;
  }

  /** Takes a change, if it concerns the selection. */
  take(change: LogEntry<T>, place: number): void {
    const event = this.#eventOf(change);
    if (event === undefined || place < this.#builtTo) return;
    if (!this.#log) {
      this.#log = new EventLog(16);
      this.#window = new ReplayWindow(this.#log);
    }
    this.#log.append(event, place);
    this.#log.step();
    this.#initial = this.#reading = undefined;
    this.park.notify();
  }

  /** Drops what the log of all has dropped. If this view has ended, that log belongs to another state. */
  trim(start: number): void {
    const [log, window] = [this.#log, this.#window];
    if (this.end || !log || !window) return;
    while (window.start < log.head) {
      const place = this.placeAt(window.start);
      if (place >= start) return;
      this.lostBefore = place + 1;
      window.shift();
    }
  }

  /** The position of the first event whose place is not before the given one. Most watches have read all events, or all but the last. */
  positionOf(place: number): number {
    const { head } = this;
    const window = this.#window;
    if (!window || window.start === head || this.placeAt(head - 1) < place) return head;
    if (window.start === head - 1 || this.placeAt(head - 2) < place) return head - 1;
    return window.positionOf(place);
  }

  at(position: number): ChangeEvent<T> {
    return (this.#log as EventLog<ChangeEvent<T>>).at(position);
  }

  /** The place of an event. */
  placeAt(position: number): number {
    return (this.#log as EventLog<ChangeEvent<T>>).placeOf(position);
  }

  /** Its last events from a position on. Watchers at the same position get the same array. */
  from(position: number): readonly ChangeEvent<T>[] {
    return (this.#log as EventLog<ChangeEvent<T>>).slice(position, this.head);
  }

  /**
   * The state as ADDED events. Watchers that begin with the same state get the same array. If it takes long to make, `isWanted`
   * says whether somebody still waits for it.
   */
  initial(
    make: (isWanted: () => boolean) => readonly ChangeEvent<T>[] | Promise<readonly ChangeEvent<T>[]>,
  ): readonly ChangeEvent<T>[] | Promise<readonly ChangeEvent<T>[]> {
    const known = this.#initial?.deref() ?? this.#reading;
    if (known !== undefined) return known;
    let reading: Promise<readonly ChangeEvent<T>[]> | undefined;
    const isWanted = (): boolean => {
      if (reading === undefined || this.opening > 0) return true;
      this.#forget(reading);
      return false;
    };
    const { head } = this;
    const events = make(isWanted);
    if (!isPromise(events)) return head === this.head ? this.#known(events) : events;
    reading = events.then((read) => (this.#forget(reading) ? this.#known(read) : read));
    this.#reading = reading;
    return reading;
  }

  #known(events: readonly ChangeEvent<T>[]): readonly ChangeEvent<T>[] {
    this.#initial = new WeakRef(events);
    return events;
  }

  /** Whether this was the current reading, and not that of an older state. */
  #forget(reading: Promise<readonly ChangeEvent<T>[]> | undefined): boolean {
    if (this.#reading !== reading) return false;
    this.#reading = undefined;
    return true;
  }

  /** The event that its watchers get for a change: the object may enter the selection, stay in it, or leave it. */
  #eventOf(change: LogEntry<T>): ChangeEvent<T> | undefined {
    const { key, before, after } = change;
    const { selection } = this;
    const wasIn = before !== undefined && selection.matches(key, before.object);
    if (after && selection.matches(key, after.object)) return wasIn ? change.event : change.entered;
    return wasIn ? change.left : undefined;
  }
}

function serveSoon(park: WaitingReaders): void {
  soon(() => park.serve());
}
