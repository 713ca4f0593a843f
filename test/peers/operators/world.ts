// What operators.test.ts does to websites, and what is to come of it.
//
//   script (seeded) ---> four writers ---> server <--- operator
//                           |                |
//                           |                '--> look(): what is there, without what differs from run to run
//                           '--> players of the deployment controller and of the garbage collector: there are none beside the server
//
// `faultOf` derives from the websites alone what everything else must be, so it knows when an operator has done its work.
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../../eventually.ts';
import { randomOf } from '../proxy.ts';

/** An object as a server answers it. */
// biome-ignore lint/suspicious/noExplicitAny: answers of a server, which tests read without ceremony
type Answer = any;

/** Sends a request to the server, past all proxies. Rejects with an error that has the code of a refusal. */
export type Send = (method: string, path: string, body?: unknown, type?: string) => Promise<Answer>;

/** Waits until an operator has done its work; with `ready`, also until all replicas are there. */
export type Settled = (options?: { readonly ready?: boolean }) => Promise<void>;

/** The code of a request that was not answered, if it is to count as one that was refused. */
export const NO_ANSWER = -1;

/** What a writer does to the website of a name, or to what belongs to it. */
export interface Edit {
  readonly do: 'create' | 'spec' | 'scale' | 'label' | 'delete' | 'deleteOwned' | 'tamper' | 'ready';
  readonly name: string;
  readonly html: string;
  readonly replicas: number;
  readonly paused: boolean;
  readonly team: string | null;
  /** One of {@link OWNED}. */
  readonly which: number;
  readonly pauseMs: number;
}

const WRITERS = 4;
export const NAMES: readonly string[] = ['a', 'b', 'c', 'd', 'e', 'f'];
const OWNED = ['configmaps', 'deployments', 'services'] as const;
const MERGE = 'application/merge-patch+json';
const TEAMS = ['red', 'blue', null];
const POLL_MS = 60;

type Random = () => number;

const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;

function draw(random: Random, name: string, kinds: readonly Edit['do'][]): Edit {
  return {
    do: pick(random, kinds),
    name,
    html: `<p>${Math.floor(random() * 1_000)}</p>`,
    replicas: Math.floor(random() * 4),
    paused: random() < 0.15,
    team: pick(random, TEAMS),
    which: Math.floor(random() * OWNED.length),
    pauseMs: Math.floor(random() * 40),
  };
}

const CHANGES: readonly Edit['do'][] = [
  'spec',
  'spec',
  'scale',
  'label',
  'delete',
  'deleteOwned',
  'deleteOwned',
  'tamper',
  'ready',
  'ready',
];

/** Rounds of edits of as many websites: each can be done when the rounds before have been done. */
export function rounds(seed: number, count: number): Edit[][] {
  const random = randomOf(seed);
  const alive = new Set<string>();
  return Array.from({ length: count }, () => {
    const start = Math.floor(random() * NAMES.length);
    return Array.from({ length: WRITERS }, (_, at) => {
      const name = NAMES[(start + at) % NAMES.length] as string;
      const edit = draw(random, name, alive.has(name) ? CHANGES : ['create']);
      if (edit.do === 'create') alive.add(name);
      else if (edit.do === 'delete') alive.delete(name);
      return edit;
    });
  });
}

/** For each writer, edits that it does whatever the others do: some of them are refused. */
export function storm(seed: number, count: number): Edit[][] {
  const random = randomOf(seed);
  const all = [...CHANGES, 'create', 'create', 'create'] as const;
  return Array.from({ length: WRITERS }, () => Array.from({ length: count }, () => draw(random, pick(random, NAMES), all)));
}

/** What is left of each website at the end: the last ones are not there. */
export function lastEdits(seed: number): Edit[] {
  const random = randomOf(seed);
  return NAMES.map((name, at) => draw(random, name, [at < NAMES.length - 2 ? 'create' : 'delete']));
}

/** The objects of a kind by name, without what differs from run to run. */
export type Look = Readonly<Record<'websites' | 'registry' | (typeof OWNED)[number], Readonly<Record<string, object>>>>;

/** One operator's namespaces on a server, and what is done and seen there. */
export class World {
  readonly namespace: string;
  readonly registry: string;
  readonly #send: Send;

  constructor(send: Send, name: string) {
    this.#send = send;
    this.namespace = name;
    this.registry = `${name}-registry`;
  }

  async create(): Promise<void> {
    for (const name of [this.namespace, this.registry]) await this.#send('POST', '/api/v1/namespaces', { metadata: { name } });
  }

  path(plural: string, name: string = ''): string {
    const api = plural === 'websites' ? '/apis/example.com/v1' : plural === 'deployments' ? '/apis/apps/v1' : '/api/v1';
    const namespace = plural === 'registry' ? this.registry : this.namespace;
    const path = `${api}/namespaces/${namespace}/${plural === 'registry' ? 'configmaps' : plural}`;
    return name === '' ? path : `${path}/${name}`;
  }

  /** Does an edit. One that is refused has been done, too. */
  async edit(edit: Edit): Promise<void> {
    try {
      await this.#edit(edit);
    } catch (error) {
      if (![NO_ANSWER, 404, 409, 422].includes((error as { code?: number }).code as number)) throw error;
    }
  }

  async #edit({ name, html, replicas, paused, team, which, ...edit }: Edit): Promise<void> {
    const site = this.path('websites', name);
    const owned = OWNED[which] as (typeof OWNED)[number];
    const patch = (path: string, change: object): Promise<Answer> => this.#send('PATCH', path, change, MERGE);
    if (edit.do === 'create') {
      const metadata = { name, ...(team !== null && { labels: { team } }) };
      const object = {
        apiVersion: 'example.com/v1',
        kind: 'Website',
        metadata,
        spec: { html, replicas, ...(paused && { paused }) },
      };
      await this.#send('POST', this.path('websites'), object);
    } else if (edit.do === 'spec') await patch(site, { spec: { html, replicas, paused: paused || null } });
    else if (edit.do === 'scale') await patch(`${site}/scale`, { spec: { replicas } });
    else if (edit.do === 'label') await patch(site, { metadata: { labels: { team } } });
    else if (edit.do === 'delete') await this.#delete(site);
    else if (edit.do === 'deleteOwned') await this.#send('DELETE', this.path(owned, name));
    else if (edit.do === 'ready') await this.#ready(name, replicas);
    else if (owned === 'configmaps') await patch(this.path(owned, name), { data: { 'index.html': 'tampered' } });
    else if (owned === 'deployments') await patch(this.path(owned, name), { spec: { replicas: 9 } });
    else await patch(this.path(owned, name), { metadata: { labels: { app: 'tampered' } } });
  }

  /**
   * Deletes what it has seen, and nothing newer: of a DELETE without a version, a kube-apiserver looks for finalizers first, and deletes
   * then, whatever finalizer was added in between (kubernetes#77988). Nobody could clean up after that.
   */
  async #delete(path: string): Promise<void> {
    for (;;) {
      const { metadata } = await this.#send('GET', path);
      const preconditions = { uid: metadata.uid, resourceVersion: metadata.resourceVersion };
      try {
        await this.#send('DELETE', path, { preconditions });
        return;
      } catch (error) {
        if ((error as { code?: number }).code !== 409) throw error;
      }
    }
  }

  /** Plays the controller of deployments: as many are ready, of those that there are to be. */
  async #ready(name: string, most: number): Promise<void> {
    const { metadata, spec } = await this.#send('GET', this.path('deployments', name));
    const ready = Math.min(most, spec.replicas);
    const status = { observedGeneration: metadata.generation, replicas: spec.replicas, readyReplicas: ready };
    await this.#send('PATCH', `${this.path('deployments', name)}/status`, { status }, MERGE);
  }

  /** Runs the edits of each writer, one after the other. */
  async play(writers: readonly (readonly Edit[])[]): Promise<void> {
    await Promise.all(
      writers.map(async (edits) => {
        for (const edit of edits) {
          await this.edit(edit);
          await sleep(edit.pauseMs);
        }
      }),
    );
  }

  /** Brings all websites to their last state, whatever they are. */
  async finish(edits: readonly Edit[]): Promise<void> {
    for (const edit of edits) {
      if (edit.do !== 'create') {
        await this.edit(edit);
        continue;
      }
      await eventually(async () => {
        await this.edit(edit);
        const { metadata } = await this.#send('GET', this.path('websites', edit.name));
        if (metadata.deletionTimestamp) throw new Error(`${edit.name} is being deleted`);
      });
      await this.edit({ ...edit, do: 'spec' });
      await this.edit({ ...edit, do: 'label' });
    }
  }

  /** Plays the garbage collector, once: what an owner controls that is no longer there goes. */
  async collect(): Promise<void> {
    const owned = await Promise.all(OWNED.map((plural) => this.#list(plural)));
    const alive = new Set((await this.#list('websites')).map(({ metadata }) => metadata.uid));
    for (const [at, items] of owned.entries())
      for (const { metadata } of items) {
        const [owner] = metadata.ownerReferences ?? [];
        const preconditions = { uid: metadata.uid, resourceVersion: metadata.resourceVersion };
        if (owner && !alive.has(owner.uid))
          await this.#send('DELETE', this.path(OWNED[at] as string, metadata.name), { preconditions }).catch(refused);
      }
  }

  /** Makes all replicas of all deployments ready, but one of those of `c`. Returns whether they were. */
  async ready(): Promise<boolean> {
    let were = true;
    for (const { metadata, spec, status = {} } of await this.#list('deployments')) {
      const ready = metadata.name === 'c' ? Math.max(0, spec.replicas - 1) : spec.replicas;
      if (status.observedGeneration === metadata.generation && (status.readyReplicas ?? 0) === ready) continue;
      were = false;
      await this.#ready(metadata.name, ready).catch(refused);
    }
    return were;
  }

  /** Waits until what is there follows from the websites; with `ready`, also until all replicas are. */
  async settled({ ready = false }: Parameters<Settled>[0] = {}): Promise<void> {
    const look = async (): Promise<void> => {
      await this.collect();
      const fault = (await this.fault()) ?? (!ready || (await this.ready()) ? undefined : 'replicas were not ready');
      if (fault !== undefined) throw new Error(`${this.namespace} never settled: ${fault}`);
    };
    await eventually(look, { intervalMs: POLL_MS });
  }

  /** The first thing that does not follow from the websites. */
  async fault(): Promise<string | undefined> {
    const sites = await this.#list('websites');
    const found = await Promise.all(['registry', ...OWNED].map((plural) => this.#list(plural)));
    const [registry = [], pages = [], deployments = [], services = []] = found;
    const of = (items: Answer[], name: string): Answer => items.find(({ metadata }) => metadata.name === name);
    const names = sites.map(({ metadata }) => metadata.name);
    const others = found.flat().find(({ metadata }) => !names.includes(metadata.name) && metadata.name !== 'kube-root-ca.crt');
    if (others) return `${others.metadata.namespace}/${others.metadata.name} is there`;
    for (const site of sites) {
      const { name } = site.metadata;
      const rest = {
        entry: of(registry, name),
        page: of(pages, name),
        deployment: of(deployments, name),
        service: of(services, name),
      };
      const fault = faultOf(site, rest);
      if (fault) return `${name}: ${fault}`;
    }
    return undefined;
  }

  async #list(plural: string): Promise<Answer[]> {
    return (await this.#send('GET', this.path(plural))).items;
  }

  async look(): Promise<Look> {
    const entries = ['websites', 'registry', ...OWNED].map(async (plural) => {
      const items = (await this.#list(plural)).filter(({ metadata }) => metadata.name !== 'kube-root-ca.crt');
      return [plural, Object.fromEntries(items.map((each) => [each.metadata.name, plain(each, plural)]))];
    });
    return Object.fromEntries(await Promise.all(entries));
  }

  /** How often each event was told: `website type reason message`. */
  async events(): Promise<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { involvedObject, type, reason, message, count, series } of await this.#list('events')) {
      if (involvedObject.kind !== 'Website') continue;
      const key = `${involvedObject.name} ${type} ${reason}: ${message}`;
      counts[key] = (counts[key] ?? 0) + (series?.count ?? count ?? 1);
    }
    return Object.fromEntries(Object.entries(counts).sort(([one], [other]) => (one < other ? -1 : 1)));
  }
}

function refused(error: { code?: number }): void {
  if (error.code === undefined) throw error;
}

/** What of a website's objects does not follow from it. */
function faultOf(site: Answer, { entry, page, deployment, service }: Record<string, Answer>): string | undefined {
  const { name, uid, labels: { team } = {}, deletionTimestamp, generation } = site.metadata;
  const { html, paused, replicas } = site.spec;
  if (deletionTimestamp) return 'is being deleted';
  if (!site.metadata.finalizers?.includes('example.com/registry')) return 'no finalizer';
  if (entry?.data.uid !== uid) return 'not in the registry';
  for (const [what, object] of Object.entries({ page, deployment, service })) {
    if (!object) return `no ${what}`;
    const { labels, ownerReferences } = object.metadata;
    if (labels.app !== name || labels.team !== team) return `labels of the ${what}`;
    if (ownerReferences?.length !== 1 || ownerReferences[0].uid !== uid) return `owner of the ${what}`;
  }
  if (page.data['index.html'] !== html) return 'page';
  const wanted = paused ? 0 : replicas;
  if (deployment.spec.replicas !== wanted) return 'replicas';
  const { readyReplicas: ready = 0, observedGeneration } = deployment.status ?? {};
  const all = observedGeneration === deployment.metadata.generation && ready === wanted;
  const [condition] = site.status?.conditions ?? [];
  if (site.status?.observedGeneration !== generation || condition?.observedGeneration !== generation) return 'observedGeneration';
  if ((site.status.replicas ?? 0) !== ready) return 'replicas of the status';
  if (condition.reason !== (paused ? 'Paused' : all ? 'AllReady' : 'Progressing')) return `reason ${condition.reason}`;
  return undefined;
}

/** An object without uids, versions, times, managers and what a server fills in. */
function plain({ metadata, spec, data, status }: Answer, plural: string): object {
  const { name, labels, finalizers, ownerReferences, generation } = metadata;
  const owners = ownerReferences?.map(({ uid, ...reference }: { uid: string }) => reference);
  const about = { name, labels, finalizers, owners };
  if (plural === 'websites') {
    const conditions = status?.conditions?.map(({ lastTransitionTime, observedGeneration, ...condition }: Answer) => ({
      ...condition,
      behind: generation - observedGeneration,
    }));
    return { ...about, spec, status: { ...status, observedGeneration: undefined, conditions } };
  }
  if (plural === 'deployments') {
    const [container] = spec.template.spec.containers;
    const { name: called, image, volumeMounts } = container;
    const { readyReplicas = 0, replicas = 0 } = status ?? {};
    const template = { labels: spec.template.metadata.labels, container: { called, image, volumeMounts } };
    return {
      ...about,
      spec: { replicas: spec.replicas, selector: spec.selector, template },
      status: { readyReplicas, replicas },
    };
  }
  if (plural === 'services') {
    const ports = spec.ports.map(({ name: called, port }: Answer) => ({ called, port }));
    return { ...about, spec: { selector: spec.selector, ports } };
  }
  return { ...about, data: plural === 'registry' ? { host: data.host } : data };
}
