import { toTopics } from '../../../broadcast/topics.ts';
import { checkOptions, invalid, WatchError } from '../../../watch/errors.ts';
import type { WatchEvent } from '../../../watch/event.ts';
import { toText } from '../../events/envelope.ts';
import { newEpoch } from '../../protocol.ts';
import type { HubSettings, PublishOptions } from '../hub-options.ts';
import type { HubSource } from './source.ts';

/** Options of an {@link Outbox}. */
interface OutboxOptions extends Pick<HubSettings<WatchEvent>, 'topicsOf' | 'maxPending'> {
  readonly source: HubSource;
  /** Refuses a text that is too long for clients. */
  readonly publisher: { checkSize(bytes: number): void };
  readonly lifetime: { readonly closing: boolean };
}

/** Characters of an id: those of a header's value, without spaces. */
const ID = /^[\x21-\x7e]{1,256}$/;
/** What the version adds to a text, at most. */
const VERSION_BYTES = 128;

const utf8 = new TextEncoder();

/** What a hub with a source publishes: events go to the stream, and come back from there like those of any other hub. */
export class Outbox {
  private readonly options: OutboxOptions;
  private pending: number = 0;

  constructor(options: OutboxOptions) {
    this.options = options;
  }

  async publish(event: WatchEvent, options: string | PublishOptions = {}): Promise<void> {
    const { source, publisher, lifetime, topicsOf, maxPending: limit } = this.options;
    const { json, id = newEpoch() + newEpoch() } =
      typeof options === 'string' ? { json: options } : checkOptions(options, ['json', 'id']);
    if (lifetime.closing) throw new WatchError('CLOSED', 'publish: the hub is shut down');
    if (typeof id !== 'string' || !ID.test(id)) throw invalid('id', id, '1 to 256 printable ASCII characters without spaces');
    if (this.pending >= limit)
      throw new WatchError('OVERLOADED', `publish: ${limit} publishes are already pending (maxPending)`, { limit });
    const text = toText(event, json);
    publisher.checkSize(utf8.encode(text).length + VERSION_BYTES);
    const topics = toTopics(topicsOf?.(event)) ?? [];
    this.pending++;
    try {
      await source.publish({ json: text, topics: typeof topics === 'string' ? [topics] : topics, id });
    } finally {
      this.pending--;
    }
  }
}
