/**
 * The script of the page of `watchmux serve`. Its parts, in the order in which data flows:
 *
 *     /api, /apis --> catalog --> ResourceTable: which collection
 *     watch of it --> Follower (an informer of rows) --> ObjectTable --openDetail--> DetailPanel: one object
 *                          '--> FollowState: header, history
 *     /stats -------> Poller --> Overview, ResourceTable, cache panel
 *
 * Everything is bounded: objects held, rows shown, points of a chart, entries of the history. One watch is open at a
 * time, and one more for the object in the detail, because browsers open six connections to a server, for all of its pages.
 */
import type { ApiServerStats } from '../../apiserver/stats.ts';
import { keyOf } from '../../cache/object.ts';
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
import { type DetailRef, showDetailsWith } from './detail/index.ts';
import { DetailPanel } from './detail/panel.ts';
import { FollowState, RowFollower } from './follower.ts';
import { ObjectTable } from './objects.ts';
import { Filters, MAX_NAMESPACES, ResourceTable, showCache } from './resources.ts';

/** The server as a whole: changes per second, as taken by its caches and as received by this page, and the totals. */
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

const follower = new RowFollower(access, {
  onChange: () => draw(),
  onState: (now) => {
    state.show(now);
    draw();
  },
  onFailure: (error, failure) => state.failed(error, failure),
  onDenied: () => lock(),
  onTooMany: (limit) => {
    line.show('off', `more than ${plural(limit, 'object')}`, { retry: true });
    history.add(`More than ${plural(limit, 'object')}: choose a namespace, or a label selector.`, 'loss');
  },
});
const table = new ObjectTable({ follower });
const rowOf = ({ namespace, name }: DetailRef): string => keyOf({ metadata: { namespace, name } });
const detail = new DetailPanel({
  access,
  resources: () => resources,
  oldestOf: ({ name }) => stats?.resources.find(({ resource }) => resource === name)?.cache?.window.since,
  onOpen: (ref) => table.setOpen(ref && rowOf(ref)),
  onClose: (ref) => table.focusRow(rowOf(ref)),
  onDenied: () => lock(),
});
showDetailsWith((ref) => detail.toggle(ref));
const kinds = new ResourceTable(byId<HTMLTableSectionElement>('resources'), (id) => choose(id));
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

/** Finds out what resources there are, and follows one. Without a token, if the server wants one, asks for it. */
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
  const found =
    resources.find(({ id }) => (chosen === undefined ? location.hash === hashOf(id) : id === chosen.id)) ?? resources[0];
  if (found === undefined) line.show('off', 'this server has no resources', { retry: true });
  else choose(found.id);
  void count();
}

async function discover(): Promise<void> {
  const documents = await Promise.all(DISCOVERY_PATHS.map((path) => access.text(path, { accept: AGGREGATED })));
  resources = toResources(documents.map((text) => JSON.parse(text) as unknown));
  kinds.list(resources);
  say(byId('policy'), plural(resources.length, 'resource'));
}

/** The server counts the objects only of resources that a client has asked for, so this asks for the others. */
async function count(): Promise<void> {
  for (const resource of resources) {
    if (stats?.resources.some((each) => each.resource === resource.name)) continue;
    await access.text(`${collectionPath(resource)}?limit=1`).catch(() => {});
  }
}

function choose(id: string): void {
  const found = resources.find((each) => each.id === id);
  if (found === undefined) return;
  chosen = found;
  window.history.replaceState(null, '', hashOf(id));
  kinds.choose(id);
  filters.show(found.namespaced);
  say(byId('objects-title'), visible(found.plural));
  showStats();
  follow();
}

/** In the URL, so that a page that is reloaded shows the same. */
function hashOf(id: string): string {
  return `#${encodeURIComponent(id)}`;
}

function follow(): void {
  if (chosen === undefined) return;
  const { namespace, labelSelector } = filters.filter;
  arrived = false;
  state.begin();
  follower.follow({ resource: chosen, namespace: chosen.namespaced ? namespace : '', labelSelector });
  table.clear();
}

/** The token is missing, or wrong. Nothing is requested without it. */
function lock(): void {
  poller.stop();
  follower.stop();
  detail.pause();
  line.show('connecting', 'a token is needed');
  token.show(access.hasToken);
}

function showStats(): void {
  if (stats === undefined) return;
  showOverview(stats, follower.received);
  kinds.show(stats);
  if (chosen === undefined) return;
  const { name } = chosen;
  showCache(
    chosen,
    stats.resources.find(({ resource }) => resource === name),
  );
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
    try {
      return JSON.parse(await access.text('/stats', { signal })) as ApiServerStats;
    } catch (error) {
      if (isRefused(error, 401)) lock();
      throw error;
    }
  },
  onAnswer: (answer, wasAway) => {
    stats = answer;
    // A server that was restarted may have other kinds.
    if (wasAway) void discover().catch(() => {});
    showStats();
    void offerNamespaces().catch(() => {});
  },
});

byId('retry').addEventListener('click', () => void start());
setInterval(() => table.grow(), AGE_MS);
onPageLife({
  leave: () => {
    poller.stop();
    follower.stop();
    detail.pause();
  },
  // The page continues with what is there now.
  comeBack: () => void start(),
  seen: () => {
    if (chosen !== undefined && !token.isShown) poller.start();
  },
});

void start();
