import { ask, type HttpSettings } from '../../../cache/http/exchange.ts';
import { byId, make, say } from '../../elements.ts';
import { age } from '../../table-source.ts';
import { plural, visible } from '../../words.ts';
import { collectionPath, type PageResource } from '../api.ts';
import { hasMembers, type Members, memberTexts } from './paths.ts';

/** Events that are asked for. */
const MAX_EVENTS = 200;
const REST_MS = 5_000;

/** The events of an object, in either API. */
interface RelatedEvent {
  readonly last: string;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly from: string;
  readonly count: number;
}

/** Whose events are shown. */
interface Subject {
  readonly namespace: string;
  readonly uid: string;
}

/** The events about an object, read again every few seconds while they are in view. */
export class EventsView {
  private readonly means: HttpSettings;
  private reading: AbortController | undefined = undefined;
  private timer: ReturnType<typeof setTimeout> | undefined = undefined;

  constructor(means: HttpSettings) {
    this.means = means;
  }

  start(resource: PageResource | undefined, subject: Subject): void {
    this.stop();
    byId('detail-events-rows').replaceChildren();
    if (resource === undefined) {
      say(byId('detail-events-note'), 'This server has no events.');
      return;
    }
    this.reading = new AbortController();
    void this.read(eventsUrl(resource, subject), this.reading.signal);
  }

  stop(): void {
    this.reading?.abort();
    this.reading = undefined;
    clearTimeout(this.timer);
  }

  private async read(url: URL, signal: AbortSignal): Promise<void> {
    let words: string;
    try {
      const { items, remaining } = await ask(this.means, url, { signal, limit: 'maxListBytes', read: toEvents });
      byId('detail-events-rows').replaceChildren(...items.map(toRow));
      const all = items.length + remaining;
      words = all === 0 ? 'No events about this object.' : `${plural(all, 'event')} about this object.`;
    } catch (error) {
      if (signal.aborted) return;
      words = `The events could not be read: ${(error as Error).message}.`;
    }
    if (signal.aborted) return;
    say(byId('detail-events-note'), words);
    this.timer = setTimeout(() => void this.read(url, signal), REST_MS);
  }
}

/** By the uid: another object may have had the name before. */
function eventsUrl(resource: PageResource, { namespace, uid }: Subject): URL {
  const url = new URL(collectionPath(resource, namespace), location.origin);
  const member = resource.group === '' ? 'involvedObject' : 'regarding';
  url.search = String(new URLSearchParams({ fieldSelector: `${member}.uid=${uid}`, limit: String(MAX_EVENTS) }));
  return url;
}

/** Reads a list of events, newest first. Nothing about it is certain. */
export function toEvents(text: string): { readonly items: readonly RelatedEvent[]; readonly remaining: number } {
  const list = JSON.parse(text) as { items?: unknown; metadata?: { remainingItemCount?: unknown } } | null;
  const items = (Array.isArray(list?.items) ? list.items : []).filter(hasMembers).map(toEvent);
  const { remainingItemCount: remaining } = list?.metadata ?? {};
  items.sort((one, other) => (one.last < other.last ? 1 : one.last > other.last ? -1 : 0));
  return { items, remaining: typeof remaining === 'number' ? remaining : 0 };
}

function toEvent(event: Members): RelatedEvent {
  const told = memberTexts(
    event,
    'lastTimestamp',
    'deprecatedLastTimestamp',
    'firstTimestamp',
    'eventTime',
    'message',
    'note',
    'type',
    'reason',
  );
  const series = hasMembers(event.series) ? event.series : {};
  const source = memberTexts(event.source ?? event.deprecatedSource, 'component').component;
  const reporter = memberTexts(event, 'reportingComponent', 'reportingController');
  const counts = [series.count, event.count, event.deprecatedCount].find((count) => typeof count === 'number' && count > 0);
  return {
    last:
      memberTexts(series, 'lastObservedTime').lastObservedTime ||
      told.lastTimestamp ||
      told.deprecatedLastTimestamp ||
      told.eventTime ||
      told.firstTimestamp ||
      memberTexts(event.metadata, 'creationTimestamp').creationTimestamp,
    type: told.type,
    reason: told.reason,
    message: told.message || told.note,
    from: source || reporter.reportingComponent || reporter.reportingController,
    count: (counts as number | undefined) ?? 1,
  };
}

/** Characters of a cell. */
const MAX_CELL_CHARS = 1_024;

function toRow({ last, type, reason, message, from, count }: RelatedEvent): HTMLTableRowElement {
  const row = make('tr');
  const times = count > 1 ? ` (${plural(count, 'time')})` : '';
  for (const text of [age(last, Date.now()), type, reason, `${message}${times}`, from]) {
    row.append(make('td', { text: visible(text.slice(0, MAX_CELL_CHARS)) }));
  }
  if (type === 'Warning') row.cells[1]?.classList.add('Warning');
  return row;
}
