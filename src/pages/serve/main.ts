/**
 * The script of the page of `watchmux serve`. Its parts, in the order in which data flows:
 *
 *     URL ----------> Place --> kind, filters, order
 *     /api, /apis --> catalog --> ResourceTable, KindList: which collection
 *     watch of it --> RowFollower (a reflector of rows) --> ObjectTable --onObject--> DetailPanel: one object
 *                          '--> FollowState: header, history, and whether the table is live
 *     /stats -------> Poller --> Overview, ResourceTable, cache panel
 *
 * Everything is bounded: objects held, rows in the document, points of a chart, entries of the history. One watch is open at a time,
 * and one more for the object in the detail, because browsers open six connections to a server, for all of its pages.
 */
import type { ApiServerStats, ResourceStats } from '../../apiserver/stats.ts';
import { keyOf } from '../../cache/object.ts';
import { isWatchError } from '../../watch/errors.ts';
import { byId, drawingSoon, Overview, onPageLife, PageHistory, pollNumbers, StateLine, say } from '../elements.ts';
import { plural, visible } from '../words.ts';
import {
  Access,
  AGGREGATED,
  collectionPath,
  DISCOVERY_PATHS,
  type PageResource,
  Refused,
  TokenForm,
  toResources,
} from './api.ts';
import { FollowState, pastWords } from './connection.ts';
import { DetailPanel } from './detail/panel.ts';
import { Filters, KindList, MAX_NAMESPACES } from './filters.ts';
import { RowFollower } from './follower.ts';
import { ObjectTable } from './objects.ts';
import { type DetailRef, goTo, namesObject, objectIn, readPlace, withObject } from './place.ts';
import { ResourceTable, showCache } from './resources.ts';

/** The server as a whole: changes per second, as seen by its caches and as received by this page, and the totals. */
function showOverview(stats: ApiServerStats, received: number): void {
  const { requests, resources, watchers, watchersStalled, events, sentBytes } = stats;
  const changes = sum(resources, ({ cache }) => cache?.changes ?? 0);
  const refusals = Object.fromEntries(Object.entries(requests).filter(([code]) => Number(code) >= 400));
  const totals = {
    objects: sum(resources, ({ cache }) => cache?.objects ?? 0),
    changes,
    watchers,
    behind: sum(resources, ({ behind }) => behind),
    cut: watchersStalled,
    delivered: events,
    requests: sum(Object.values(requests), (each) => each),
    refused: sum(Object.values(refusals), (each) => each),
    expired: sum(resources, ({ cache }) => cache?.fellBehind ?? 0),
  };
  overview.show({ all: changes, here: received, sentBytes }, totals, { refused: refusals });
}

function sum<T>(values: readonly T[], read: (value: T) => number): number {
  return values.reduce((total, each) => total + read(each), 0);
}

const AGE_MS = 1_000;

const access = new Access();
const line = new StateLine();
const history = new PageHistory();
const state = new FollowState(line, history);
const overview = new Overview('Changes');
let resources: readonly PageResource[] = [];
let chosen: PageResource | undefined;
let stats: ApiServerStats | undefined;
let namespaces: number | undefined;
/** Whether the collection's state has been reported. */
let arrived = false;
/** Whether the server has answered the last request for its numbers, even if with a refusal. */
let responds = true;

const follower = new RowFollower(access, {
  onChange: () => draw(),
  onState: (now) => {
    state.show(now);
    draw();
  },
  onFailure: (error, failure) => {
    state.failed(error, failure);
    // The server does not accept the selector, or does not let this user see the collection.
    if (isWatchError(error, 'REFUSED') && [400, 403, 404].includes(error.status?.code ?? 0)) filters.fail(`${error.message}.`);
  },
  onNoPast: (error, { version }) => {
    const since = statsOf(chosen)?.cache?.window.since;
    state.halt('not live');
    filters.fail(pastWords(error, { version, since }));
  },
  onDenied: () => lock(),
  onTooMany: (limit) => {
    state.halt(`more than ${plural(limit, 'object')}`, 'Not live: there are more objects than a page can hold.', { retry: true });
    history.add(`More than ${plural(limit, 'object')}: choose a namespace, or a label selector.`, 'loss');
  },
});
const table = new ObjectTable({
  follower,
  nowMs: () => state.nowMs,
  tell: (text) => history.tell(text),
  onLabel: (label) => filters.toggle(label),
  onObject: (ref) => detail.toggle(ref),
});
const rowOf = ({ namespace, name }: DetailRef): string => keyOf({ metadata: { namespace, name } });
const detail = new DetailPanel({
  access,
  resources: () => resources,
  oldestOf: (resource) => statsOf(resource)?.cache?.window.since,
  onOpen: (ref) => {
    window.history.replaceState(null, '', withObject(location.href, ref));
    markOpen();
  },
  onClose: (ref) => table.focusRow(rowOf(ref)),
  onDenied: () => lock(),
});
/** The row of the object that is shown, if it is in this table. */
const markOpen = (): void => {
  const { shown } = detail;
  table.setOpen(shown && shown.resource.id === chosen?.id ? rowOf(shown) : undefined);
};
const kinds = new ResourceTable(byId<HTMLTableSectionElement>('resources'), (id) => choose(id, { step: true }));
const kindList = new KindList((id) => choose(id, { step: true }));
const filters = new Filters(() => follow());
const token = new TokenForm((text) => {
  if (!access.use(text)) return false;
  void start();
  return true;
});

const draw = drawingSoon(() => {
  table.draw();
  const { scope, hasSynced, size: objects, resourceVersion } = follower;
  if (arrived || !hasSynced || scope === undefined) return;
  arrived = true;
  state.arrived({ scope, objects, resourceVersion });
});

const isRefused = (error: unknown, code: number): boolean => error instanceof Refused && error.code === code;

/** Finds out what resources there are, and follows one. Asks for a token if the server requires one. */
async function start(): Promise<void> {
  line.show('connecting', 'connecting');
  try {
    await discover();
  } catch (error) {
    if (isRefused(error, 401)) lock();
    else {
      line.show('off', 'not connected', { retry: true });
      history.add(`Connection lost: ${(error as Error).message}.`, 'note');
    }
    return;
  }
  token.hide();
  poller.start();
  detail.resume();
  arrive();
  const linked = objectIn(location.href, resources);
  if (detail.shown === undefined && linked !== undefined) detail.goTo(linked);
  else if (linked === undefined && namesObject(location.href)) {
    history.add('The link is to an object of a kind that this server does not have.', 'note');
    window.history.replaceState(null, '', withObject(location.href, undefined));
  }
  void count();
}

/** Shows what the URL says; by default, the first kind. */
function arrive(): void {
  const place = readPlace();
  filters.restore(place);
  table.restore(place);
  const { fieldSelector, resourceVersion, columns } = place;
  const more = byId<HTMLDetailsElement>('more');
  more.open ||= matchMedia('(min-width: 62rem)').matches || [fieldSelector, resourceVersion, columns].some((each) => each !== '');
  const found = resources.find(({ id }) => id === place.kind) ?? resources[0];
  if (found === undefined) line.show('off', 'this server has no resources', { retry: true });
  else choose(found.id);
}

async function discover(): Promise<void> {
  const documents = await Promise.all(DISCOVERY_PATHS.map((path) => access.text(path, { accept: AGGREGATED })));
  resources = toResources(documents.map((text) => JSON.parse(text) as unknown));
  kinds.list(resources);
  kindList.list(resources, chosen?.id);
  say(byId('policy'), plural(resources.length, 'resource'));
}

/** The server counts only the objects of resources that a client has asked for, so this asks for the others. */
async function count(): Promise<void> {
  for (const resource of resources) {
    if (stats?.resources.some((each) => each.resource === resource.name)) continue;
    await access.text(`${collectionPath(resource)}?limit=1`).catch(() => {});
  }
}

/** `step`: the user has chosen it, and may want to go back. */
function choose(id: string, { step = false }: { readonly step?: boolean } = {}): void {
  const found = resources.find((each) => each.id === id);
  if (found === undefined) return;
  // All collections share one sequence of versions, but kinds differ in their fields.
  if (step) goTo({ kind: id, fieldSelector: '', sort: '' }, { step });
  else goTo({ kind: id });
  if (step) {
    filters.restore(readPlace());
    table.restore(readPlace());
  }
  chosen = found;
  kinds.choose(id);
  kindList.choose(id);
  filters.show(found.namespaced);
  say(byId('objects-title'), visible(found.plural));
  showStats();
  markOpen();
  follow();
}

function follow(): void {
  if (chosen === undefined) return;
  const { namespace, ...rest } = filters.filter;
  arrived = false;
  state.begin();
  byId('go-live').toggleAttribute('hidden', rest.version === '');
  follower.follow({ ...rest, resource: chosen, namespace: chosen.namespaced ? namespace : '' });
  table.clear();
}

/** The token is missing, or wrong. Nothing is requested without it. */
function lock(): void {
  poller.stop();
  follower.stop();
  detail.pause();
  detail.dropQuestion();
  if (arrived) history.add('Signed out: the server no longer accepts the token.', 'loss');
  line.show('off', arrived ? 'signed out' : 'a token is needed');
  token.show(access.hasToken);
}

function showStats(): void {
  if (stats === undefined) return;
  showOverview(stats, follower.received);
  kinds.show(stats);
  if (chosen === undefined) return;
  showCache(chosen, statsOf(chosen));
}

function statsOf(resource: PageResource | undefined): ResourceStats | undefined {
  return stats?.resources.find((each) => each.resource === resource?.name);
}

/** Which namespaces there are, if that has changed. */
async function offerNamespaces(): Promise<void> {
  const objects = stats?.resources.find(({ resource }) => resource === 'namespaces')?.cache?.objects;
  if (objects === namespaces || !resources.some(({ id }) => id === 'namespaces/v1')) return;
  namespaces = objects;
  const list = JSON.parse(await access.text(`/api/v1/namespaces?limit=${MAX_NAMESPACES}`)) as {
    readonly items: readonly { readonly metadata: { readonly name: string } }[];
    readonly metadata: { readonly remainingItemCount?: number };
  };
  const names = list.items.map(({ metadata }) => metadata.name);
  filters.offer(names, names.length + (list.metadata.remainingItemCount ?? 0));
}

const poller = pollNumbers<ApiServerStats>({
  ask: async (signal) => {
    responds = false;
    try {
      return JSON.parse(await access.text('/stats', { signal })) as ApiServerStats;
    } catch (error) {
      responds = error instanceof Refused;
      if (isRefused(error, 401)) lock();
      throw error;
    }
  },
  onFault: () => {
    state.answers(responds);
    detail.answers(responds);
  },
  onAnswer: (answer, wasAway) => {
    stats = answer;
    state.answers(true);
    detail.answers(true);
    // A server that was restarted may have other kinds.
    if (wasAway) void discover().catch(() => {});
    showStats();
    void offerNamespaces().catch(() => {});
  },
});

byId('retry').addEventListener('click', () => void start());
byId('go-live').addEventListener('click', () => filters.goLive());
addEventListener('popstate', () => {
  if (resources.length === 0) return;
  const linked = objectIn(location.href, resources);
  arrive();
  detail.goTo(linked);
});
setInterval(() => state.isLive && table.grow(), AGE_MS);
onPageLife({
  leave: () => {
    poller.stop();
    follower.stop();
    detail.pause();
  },
  // The page continues with the current state.
  comeBack: () => void start(),
  seen: () => {
    if (chosen !== undefined && !token.isShown) poller.start();
  },
});

void start();
