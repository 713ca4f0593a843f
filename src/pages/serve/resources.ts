import type { ApiServerStats, CacheStats, ResourceStats } from '../../apiserver/stats.ts';
import { apiVersionOf } from '../../cache/resource-client.ts';
import { arrange, byId, FigureRow, make, say, TabStops } from '../elements.ts';
import { count, plural, short, size, visible } from '../words.ts';
import type { PageResource } from './api.ts';
import { versionText } from './connection.ts';

/** The resources of the server: objects, watchers and lag of each, now and during the last minute. One is chosen. */
export class ResourceTable {
  private readonly body: HTMLTableSectionElement;
  private readonly onChoose: (id: string) => void;
  private readonly stops: TabStops;
  private rows: Map<string, ResourceRow> = new Map();
  private chosen: string | undefined = undefined;

  constructor(body: HTMLTableSectionElement, onChoose: (id: string) => void) {
    this.body = body;
    this.onChoose = onChoose;
    this.stops = new TabStops(body);
  }

  /** There are these resources. */
  list(resources: readonly PageResource[]): void {
    const { rows } = this;
    this.rows = new Map(resources.map((each) => [each.id, rows.get(each.id) ?? new ResourceRow(each, this.onChoose)]));
    arrange(
      this.body,
      Array.from(this.rows.values(), ({ element }) => element),
    );
    this.choose(this.chosen);
  }

  choose(id: string | undefined): void {
    this.chosen = id;
    for (const [each, { button }] of this.rows) {
      if (each === id) button.setAttribute('aria-current', 'true');
      else button.removeAttribute('aria-current');
    }
    this.stops.keep(this.rows.get(id ?? '')?.button);
  }

  show({ resources }: ApiServerStats): void {
    const byName = new Map(resources.map((each) => [each.resource, each]));
    for (const row of this.rows.values()) row.show(byName.get(row.resource.name));
  }
}

class ResourceRow extends FigureRow {
  readonly resource: PageResource;
  readonly button: HTMLButtonElement;

  constructor(resource: PageResource, onChoose: (id: string) => void) {
    super('resource');
    this.resource = resource;
    const { id, plural, group, version, kind } = resource;
    this.button = make('button', { text: visible(plural) });
    this.button.addEventListener('click', () => onChoose(id));
    this.part('name').append(this.button);
    this.button.title = visible(kind);
    this.say('version', visible(apiVersionOf({ group, version })));
  }

  /** Undefined: no client has asked for it yet, and nothing is known. */
  show(stats: ResourceStats | undefined): void {
    const objects = stats?.cache?.objects;
    this.say('objects', objects === undefined ? '\u2013' : short(objects));
    if (stats === undefined) return;
    this.say('watchers', count(stats.watchers));
    this.say('lag', short(stats.lag));
    this.part('lag').title = `${count(stats.behind)} of them behind`;
    this.element.classList.toggle('full', stats.behind > 0);
    const looks = { top: (max: number) => max * 1.1 };
    this.draw('objects', objects ?? 0, looks);
    this.draw('watchers', stats.watchers, looks);
    this.draw('queued', stats.lag, looks);
  }
}

/** The cache of the chosen resource: who watches it, how far behind they are, and how far back a watch may begin. */
export function showCache({ plural: name }: PageResource, stats: ResourceStats | undefined): void {
  say(byId('cache-title'), `Cache of ${visible(name)}`);
  const { watchers = 0, behind = 0, lag = 0, cache } = stats ?? {};
  const numbers = { watchers, behind, lag, views: cache?.views ?? 0, gaps: cache?.gaps ?? 0 };
  for (const [id, value] of Object.entries(numbers)) say(byId(`cache-${id}`), short(value));
  byId('cache-behind').classList.toggle('some', behind > 0);
  say(byId('cache-window'), cache === undefined ? '' : windowWords(cache));
  say(byId('cache-note'), cache === undefined ? 'No client has asked for it yet.' : noteWords(cache, watchers));
}

/** How far back a watch may begin. */
export function windowWords({ window, resourceVersion }: CacheStats): string {
  if (window.items === 0) return `Version ${versionText(resourceVersion)}. No past changes are kept yet.`;
  const kept = `${plural(window.items, 'change')} kept, ${size(window.bytes)}`;
  return `Window: a watch can begin at any version from ${versionText(window.since)} to ${versionText(resourceVersion)} (${kept}).`;
}

/** Further remarks. */
export function noteWords({ phase, error, watches, fellBehind }: CacheStats, watchers: number): string {
  const inProcess = watches - watchers;
  const notes = [
    ...(phase === 'ready' ? [] : [`Not ready${error === undefined ? '' : `: ${error}`}.`]),
    ...(inProcess > 0 ? [`${plural(inProcess, 'more watch', 'more watches')} in the server itself.`] : []),
    ...(fellBehind > 0 ? [`${plural(fellBehind, 'watch was', 'watches were')} too slow, and got a 410.`] : []),
  ];
  return notes.join(' ');
}
