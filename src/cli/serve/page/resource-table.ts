import type { ApiServerStats, ResourceStats } from '../../../apiserver/stats.ts';
import { area, Series } from '../../page/charts.ts';
import { make } from '../../page/elements.ts';
import { arrange, FigureRow } from '../../page/figure-row.ts';
import { TabStops } from '../../page/tab-stops.ts';
import { count, short, visible } from '../../page/words.ts';
import type { PageResource } from './catalog.ts';

/** Points of a chart: one minute, at one sample per second. */
const POINTS = 60;
const BOX = { width: 64, height: 20 };

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
  private readonly objects: Series = new Series(POINTS);
  private readonly watchers: Series = new Series(POINTS);
  private readonly lag: Series = new Series(POINTS);

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
    this.objects.push(objects ?? 0);
    this.watchers.push(stats.watchers);
    this.lag.push(stats.lag);
    this.say('watchers', count(stats.watchers));
    this.say('lag', short(stats.lag));
    this.part('lag').title = `${count(stats.behind)} of them behind`;
    this.element.classList.toggle('full', stats.behind > 0);
    this.draw('objects', area(this.objects, BOX, Math.max(this.objects.max * 1.1, 1)));
    this.draw('watchers', area(this.watchers, BOX, Math.max(this.watchers.max * 1.1, 1)));
    this.draw('queued', area(this.lag, BOX, Math.max(this.lag.max * 1.1, 1)));
  }
}
