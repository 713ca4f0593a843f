import type { ApiServerStats, CacheStats, ResourceStats } from '../../apiserver/stats.ts';
import { parseLabelSelector } from '../../selectors/label-selector.ts';
import { arrange, byId, FigureRow, make, say, TabStops } from '../elements.ts';
import { count, plural, short, size, visible } from '../words.ts';
import type { PageResource } from './api.ts';

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
    this.button.type = 'button';
    this.button.addEventListener('click', () => onChoose(id));
    this.part('name').append(this.button);
    this.button.title = visible(kind);
    this.say('version', visible(group === '' ? version : `${group}/${version}`));
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

/** Versions are decimal numbers here, and easier to read with separators. */
function versionText(version: string): string {
  const number = Number(version);
  return Number.isSafeInteger(number) && version !== '' ? count(number) : version || 'none';
}

/** Namespaces that are offered. */
export const MAX_NAMESPACES = 500;
/** The longest selector that the server takes. */
const MAX_SELECTOR_CHARS = 4_096;
/** A user who is still typing has not finished. */
const TYPING_MS = 400;

/** What is wrong with a label selector, with a mark below the place; undefined: nothing. */
export function faultOf(selector: string): string | undefined {
  try {
    parseLabelSelector(selector, { maxChars: MAX_SELECTOR_CHARS });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** What a user wants to see of a collection. */
interface Filter {
  /** Empty for all. */
  readonly namespace: string;
  readonly labelSelector: string;
}

/** The namespace and the label selector, which the server applies. An invalid selector is not requested. */
export class Filters {
  private readonly namespace: HTMLSelectElement = byId<HTMLSelectElement>('namespace');
  private readonly selector: HTMLInputElement = byId<HTMLInputElement>('selector');
  private readonly onFilter: (filter: Filter) => void;
  private applied: string = '';
  private timer: ReturnType<typeof setTimeout> | undefined = undefined;

  constructor(onFilter: (filter: Filter) => void) {
    this.onFilter = onFilter;
    this.namespace.addEventListener('change', () => onFilter(this.filter));
    this.selector.addEventListener('input', () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.select(), TYPING_MS);
    });
    this.selector.addEventListener('change', () => this.select());
  }

  /** The filter as it is now. */
  get filter(): Filter {
    return { namespace: this.namespace.value, labelSelector: this.applied };
  }

  /** Whether a resource has namespaces to choose from. */
  show(namespaced: boolean): void {
    this.namespace.toggleAttribute('hidden', !namespaced);
  }

  /** Offers namespaces, of which there are `total`. The chosen one stays, even if it is gone. */
  offer(names: readonly string[], total: number): void {
    const { namespace } = this;
    const chosen = namespace.value;
    const offered = names.slice(0, MAX_NAMESPACES);
    if (chosen !== '' && !offered.includes(chosen)) offered.push(chosen);
    const options = offered.map((name) => new Option(visible(name), name));
    const rest = new Option(`and ${count(total - names.length)} more`, '');
    rest.disabled = true;
    namespace.replaceChildren(new Option('all namespaces', ''), ...options, ...(total > names.length ? [rest] : []));
    namespace.value = chosen;
  }

  private select(): void {
    clearTimeout(this.timer);
    const text = this.selector.value.trim();
    const fault = faultOf(text);
    this.selector.setAttribute('aria-invalid', String(fault !== undefined));
    byId('fault').toggleAttribute('hidden', fault === undefined);
    say(byId('fault'), fault ?? '');
    if (fault !== undefined || text === this.applied) return;
    this.applied = text;
    this.onFilter(this.filter);
  }
}
