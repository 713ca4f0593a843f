import type { WatchEvent } from '../../../watch/event.ts';
import { HubLog, type Lifetime } from '../hub-log.ts';
import type { HubSettings } from '../hub-options.ts';
import { type SourcePosition, toPosition, toSourceVersion } from './source.ts';

/**
 * The place of the first event that a hub with a source distributes. Earlier events also have places when a client is brought up
 * from the source: such a place must not be 0, which stands for no place. All are small integers to V8.
 */
const FIRST_PLACE = 2 ** 28;

const BEFORE_ALL: SourcePosition = { epoch: 'none', sequence: 0, mark: '0' };

/**
 * The events of a hub with a source. Places count the events in this process; versions are those of the stream. Both grow together,
 * but not in step: an entry of the stream that is not an event has a version and no place. So the place of a version is looked up
 * among the events that are kept.
 *
 *     stream     41  42  43  44  45          43 is not an event
 *     place       6   7       8   9          after version 43: not found here, so the source is asked
 */
export class SourceLog extends HubLog {
  /** The position, and the topics, of the event that is being published. They come from the stream. */
  next: SourcePosition = BEFORE_ALL;
  topics: readonly string[] = [];
  /** How often it has begun at a position that does not continue what was before. */
  restarts: number = 0;
  private position: SourcePosition = BEFORE_ALL;
  private last: string = toSourceVersion(this.position);
  /** What is before it belongs to another stream. */
  private floor: number = FIRST_PLACE;

  constructor(settings: HubSettings<WatchEvent>, lifetime: Lifetime) {
    super(settings, lifetime);
    this.mux.begin(FIRST_PLACE);
  }

  /** Continues at a position of another stream: nothing from before is known any more. */
  restart(position: SourcePosition): void {
    this.restarts++;
    this.floor = this.head;
    this.reach(position);
  }

  /** The last event is at this position. */
  reach(position: SourcePosition): void {
    this.position = position;
    this.last = toSourceVersion(position);
  }

  override distributed(): void {
    this.reach(this.next);
  }

  override get accepted(): number {
    return this.head - FIRST_PLACE;
  }

  /** The stream that it is in, and how far. */
  get epoch(): string {
    return this.position.epoch;
  }

  get sequence(): number {
    return this.position.sequence;
  }

  override get oldest(): number {
    return Math.max(this.floor, super.oldest);
  }

  override get version(): string {
    return this.last;
  }

  override versionOf(place: number): string | undefined {
    if (place === this.head) return this.last;
    return place > this.oldest ? this.mux.log.at(place - 1).version : undefined;
  }

  override placeOf(version: string): number | undefined {
    if (version === this.last) return this.head;
    const sequence = sequenceOf(version);
    let from = this.oldest;
    for (let to = this.head; from < to; ) {
      const middle = Math.floor((from + to) / 2);
      if (sequenceOf(this.versionOf(middle)) < sequence) from = middle + 1;
      else to = middle;
    }
    // The same sequence is not enough: after a loss, it may be another event.
    return this.versionOf(from) === version ? from : undefined;
  }

  /** Returns a place for an event of the stream that is not kept here. Not after that of any later event. */
  placeBefore(sequence: number): number {
    return this.head - (this.position.sequence - sequence);
  }

  protected override topicsOf(): readonly string[] {
    return this.topics;
  }
}

function sequenceOf(version: string = ''): number {
  return toPosition(version)?.sequence ?? 0;
}
