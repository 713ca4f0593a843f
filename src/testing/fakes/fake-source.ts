import type {
  Following,
  HubSource,
  LastEvents,
  ReadFrom,
  ReadLimits,
  SourceEvent,
  SourceMessage,
  SourcePosition,
} from '../../bridge/hub/source/source.ts';
import { whenAborted } from '../../watch/abort.ts';

const encoder = new TextEncoder();

interface SourceReader {
  /** The sequence of the last event that it got. */
  at: number;
  wake(): void;
  failure: Error | undefined;
}

/**
 * A stream in memory for hubs, like one in NATS, with everything that can happen to one: it is unreachable, cuts its readers,
 * loses its latest or its first events, or is replaced. Use it to test how your hubs and workers react.
 *
 *     const source = new FakeSource();
 *     const [a, b] = [new Hub({ source }), new Hub({ source })];
 *     await a.publish(event);      // b has it as well
 *     source.lose(1);              // as after a power failure: clients of both get a 410
 */
export class FakeSource implements HubSource {
  /** What the stream holds. */
  readonly events: SourceEvent[] = [];
  /** Whether publishes are stored but not acknowledged: they reject. */
  losesAcknowledgements: boolean = false;
  private created: number = 1;
  private last: { sequence: number; mark: string } = { sequence: 0, mark: '0' };
  private stored: number = 0;
  private readonly ids: Set<string> = new Set();
  private readonly readers: Set<SourceReader> = new Set();
  private down: boolean = false;
  private held: boolean = false;

  /** The identity of the stream. */
  get epoch(): string {
    return `fake${this.created}`;
  }

  /** The end of the stream. */
  get end(): SourcePosition {
    return { epoch: this.epoch, ...this.last };
  }

  async publish({ json, topics, id }: SourceMessage): Promise<void> {
    this.mustBeUp();
    if (!this.ids.has(id)) {
      this.ids.add(id);
      this.append(json, topics);
    }
    if (this.losesAcknowledgements) throw new Error('the acknowledgement was lost');
  }

  /** Stores what another program has published, such as a text that is not an event. */
  append(json: string, topics: readonly string[] = []): void {
    this.last = { sequence: this.last.sequence + 1, mark: (++this.stored).toString(36) };
    this.events.push({ ...this.last, json, topics });
    this.move();
  }

  async follow(from: SourcePosition | LastEvents, signal: AbortSignal): Promise<Following | undefined> {
    this.mustBeUp();
    const position = 'last' in from ? this.before(from.last) : from;
    if (!this.continues(position)) return undefined;
    const reader: SourceReader = { at: position.sequence, wake: () => {}, failure: undefined };
    this.readers.add(reader);
    const leave = whenAborted(signal, () => {
      this.readers.delete(reader);
      reader.wake();
    });
    const end = (): void => {
      leave();
      this.readers.delete(reader);
    };
    // The last event may have been removed: it will not come, so nobody must wait for it.
    const { sequence: last } = this.events.at(-1) ?? this.last;
    return { position, last, batches: this.batches(reader, { signal, end }) };
  }

  async read({ epoch, first }: ReadFrom, { items, bytes }: ReadLimits): Promise<readonly SourceEvent[] | undefined> {
    this.mustBeUp();
    if (epoch !== this.epoch) return undefined;
    const events: SourceEvent[] = [];
    let left = bytes;
    for (const event of this.events) {
      if (event.sequence < first) continue;
      left -= encoder.encode(event.json).length;
      if (events.length === items || (left < 0 && events.length > 0)) break;
      events.push(event);
    }
    return events;
  }

  /** Cuts every reader: each has to follow again. */
  cut(): void {
    for (const reader of this.readers) {
      reader.failure = new Error('cut');
      reader.wake();
    }
    this.readers.clear();
  }

  /** Cuts every reader, and refuses everything until {@link start}. */
  stop(): void {
    this.down = true;
    this.cut();
  }

  start(): void {
    this.down = false;
  }

  /** Holds new events back from readers that follow. */
  hold(): void {
    this.held = true;
  }

  release(): void {
    this.held = false;
    this.move();
  }

  /** Drops the first events, as a stream's limits do. */
  trim(count: number): void {
    this.events.splice(0, count);
  }

  /** Drops one event, as an administrator might. */
  remove(sequence: number): void {
    const at = this.events.findIndex((event) => event.sequence === sequence);
    if (at >= 0) this.events.splice(at, 1);
  }

  /** Loses the latest events, acknowledged or not. Their sequences are used again. Readers are cut. */
  lose(count: number): void {
    const lost = Math.min(count, this.events.length);
    this.events.splice(this.events.length - lost, lost);
    const { sequence, mark } = this.events.at(-1) ?? { sequence: this.last.sequence - lost, mark: 'lost' };
    this.last = { sequence, mark: sequence === 0 ? '0' : mark };
    this.cut();
  }

  /** Deletes the stream and creates it again. Readers are cut. */
  recreate(): void {
    this.created++;
    this.events.length = 0;
    this.last = { sequence: 0, mark: '0' };
    this.ids.clear();
    this.cut();
  }

  /** Number of readers that follow. */
  get following(): number {
    return this.readers.size;
  }

  private mustBeUp(): void {
    if (this.down) throw new Error('the source cannot be reached');
  }

  private move(): void {
    for (const reader of this.readers) reader.wake();
  }

  private before(count: number): SourcePosition {
    const [first] = count > 0 ? this.events.slice(-count) : [];
    if (first === undefined) return this.end;
    const before = this.events.find(({ sequence }) => sequence === first.sequence - 1);
    return { epoch: this.epoch, sequence: first.sequence - 1, mark: before?.mark ?? (first.sequence === 1 ? '0' : 'unknown') };
  }

  private continues({ epoch, sequence, mark }: SourcePosition): boolean {
    if (epoch !== this.epoch || sequence > this.last.sequence) return false;
    if (sequence === this.last.sequence) return mark === this.last.mark;
    const event = this.events.find((each) => each.sequence === sequence);
    if (event !== undefined) return event.mark === mark;
    return (sequence === 0 || mark === 'unknown') && this.events.some((each) => each.sequence === sequence + 1);
  }

  private async *batches(
    reader: SourceReader,
    { signal, end }: { readonly signal: AbortSignal; readonly end: () => void },
  ): AsyncGenerator<readonly SourceEvent[], undefined> {
    try {
      while (!signal.aborted) {
        if (reader.failure !== undefined) throw reader.failure;
        const batch = this.held ? [] : this.events.filter(({ sequence }) => sequence > reader.at);
        const last = batch.at(-1);
        if (last !== undefined) {
          reader.at = last.sequence;
          yield batch;
          continue;
        }
        await new Promise<void>((resolve) => {
          reader.wake = resolve;
        });
      }
    } finally {
      end();
    }
  }
}
