/**
 * The detail of one object, in a drawer: its live content, its history, its events, and what can be done with it.
 *
 *     toggle(ref) --> ObjectFollower --states--> ObjectHistory --> HistoryView
 *                                         |----> TextView: as text, with the latest changes
 *                                         '----> EditView, DeleteDialog --> writes
 *
 * Nothing but the user discards unsaved text: the drawer stays open while there is any.
 */

import { type HttpSettings, toHttpSettings } from '../../../cache/http/exchange.ts';
import { versionOf } from '../../../cache/object.ts';
import { apiVersionOf } from '../../../cache/resource-client.ts';
import { byId, copyText, drawingSoon, make, saveAs, say } from '../../elements.ts';
import { plural, size, timeOf, visible } from '../../words.ts';
import { type Access, collectionPath, type PageResource } from '../api.ts';
import { type DetailRef, keyOfRef } from '../place.ts';
import { DeleteDialog, EditView, withoutManagers } from './edit.ts';
import { EventsView } from './events-view.ts';
import { type FollowPhase, ObjectFollower, type ObjectState } from './follow.ts';
import { HistoryView, momentOf, ObjectHistory, toEntry } from './history.ts';
import { hasMembers, type Members, memberTexts } from './paths.ts';
import { type Allowed, askAllowed } from './requests.ts';
import { type TextFormat, TextView, toText } from './text.ts';

interface DetailDeps {
  readonly access: Access;
  readonly resources: () => readonly PageResource[];
  /** The oldest version of a collection from which the server can tell what has happened. */
  readonly oldestOf: (resource: PageResource) => string | undefined;
  /** Another object is shown, or none. */
  readonly onOpen: (ref: DetailRef | undefined) => void;
  /** The user has closed it. */
  readonly onClose: (ref: DetailRef) => void;
  /** The server requires another token. */
  readonly onDenied: () => void;
}

type Tab = 'object' | 'history' | 'events' | 'edit';
const TABS: readonly Tab[] = ['object', 'history', 'events', 'edit'];

/** How long changes are marked. */
const MARK_MS = 6_000;
/** The shortest time between two changes that are read out. */
const ANNOUNCE_MS = 4_000;
const ANSWER_MS = 20_000;
/** Paths of changes in a line. */
const MAX_PATHS = 5;

/** Everything that belongs to one object and ends with it. */
interface Open {
  readonly ref: DetailRef;
  readonly follower: ObjectFollower;
  readonly history: ObjectHistory;
  readonly ending: AbortController;
  object: Members | undefined;
  isGone: boolean;
  /** The version that was seen first. */
  first: string;
  allowed: Allowed | undefined;
  olderAsked: boolean;
}

export class DetailPanel {
  private readonly deps: DetailDeps;
  private readonly http: HttpSettings;
  private readonly section: HTMLElement = byId('detail');
  private readonly text: TextView = new TextView(byId('detail-text'));
  private readonly historyView: HistoryView = new HistoryView();
  private readonly events: EventsView;
  private readonly edit: EditView;
  private readonly deletion: DeleteDialog;
  private open: Open | undefined = undefined;
  private tab: Tab = 'object';
  private showsAll: boolean = false;
  private marked: ReadonlySet<string> | undefined = undefined;
  private unmarking: ReturnType<typeof setTimeout> | undefined = undefined;
  private announcing: ReturnType<typeof setTimeout> | undefined = undefined;
  private unsaid: string = '';
  private phase: FollowPhase = { is: 'connecting' };
  private isSilent: boolean = false;
  private readonly draw: () => void = drawingSoon(() => this.show());

  constructor(deps: DetailDeps) {
    this.deps = deps;
    this.http = toHttpSettings({ fetch: deps.access.fetch, responseTimeoutMs: ANSWER_MS });
    this.events = new EventsView(this.http);
    this.edit = new EditView(this.http);
    this.deletion = new DeleteDialog(this.http);
    this.listen();
  }

  get shown(): DetailRef | undefined {
    return this.open?.ref;
  }

  /** Whether the server answers. A lost network leaves a watch open. */
  answers(does: boolean): void {
    if (this.isSilent === !does) return;
    this.isSilent = !does;
    this.showPhase();
  }

  /** Shows an object, or hides it if it is shown. */
  toggle(ref: DetailRef): void {
    if (this.open !== undefined && keyOfRef(this.open.ref) === keyOfRef(ref)) this.close();
    else this.openNow(ref);
  }

  /** If that would lose text, only asks the user. */
  close(): void {
    const { open } = this;
    if (open === undefined || !this.end()) return;
    this.section.hidden = true;
    this.deps.onOpen(undefined);
    this.deps.onClose(open.ref);
  }

  /** Shows this object, or none, because the browser has gone back or forward. Text that is being written stays, and the URL says so. */
  goTo(ref: DetailRef | undefined): void {
    const { open } = this;
    if (ref === undefined) this.close();
    else if (open === undefined || keyOfRef(open.ref) !== keyOfRef(ref)) this.openNow(ref);
    if (open !== undefined && this.open === open) this.deps.onOpen(open.ref);
  }

  /** Closes the question whether to delete the object, which blocks the rest of the page. */
  dropQuestion(): void {
    this.deletion.close();
  }

  /** The page is hidden: following ends, and later resumes where it was. */
  pause(): void {
    this.open?.follower.stop();
    this.events.stop();
  }

  resume(): void {
    this.open?.follower.start();
    if (this.tab === 'events') this.choose('events');
  }

  private openNow(ref: DetailRef): void {
    if (!this.end()) return;
    const { resource, namespace = '', name } = ref;
    const { kind } = resource;
    const open: Open = {
      ref,
      follower: new ObjectFollower({
        url: new URL(collectionPath(resource, namespace), location.origin),
        name,
        fetch: this.deps.access.fetch,
        type: { apiVersion: apiVersionOf(resource), kind },
        onState: (state) => this.open === open && this.onState(open, state),
        onPhase: (phase) => this.open === open && this.onPhase(phase),
        onDenied: () => this.open === open && this.deps.onDenied(),
      }),
      ...{ history: new ObjectHistory(), ending: new AbortController(), object: undefined, isGone: false, first: '' },
      ...{ allowed: undefined, olderAsked: false },
    };
    this.open = open;
    this.showsAll = false;
    this.marked = undefined;
    this.text.clear();
    for (const id of ['detail-facts', 'detail-changed', 'detail-older-note']) say(byId(id), '');
    say(byId('detail-title'), visible(titleOf(ref)));
    this.section.hidden = false;
    this.choose('object');
    this.show();
    open.follower.start();
    void this.askAllowed(open);
    this.deps.onOpen(ref);
    this.section.focus();
    this.section.scrollTop = 0;
  }

  /** Ends everything that belongs to the shown object. Returns whether that is allowed. */
  private end(): boolean {
    if (this.edit.isDirty) {
      this.choose('edit');
      this.edit.report('This text is not saved: save it, or start again, before you close it.', []);
      byId('edit-text').focus();
      return false;
    }
    this.open?.follower.stop();
    this.open?.ending.abort();
    this.open = undefined;
    this.events.stop();
    this.edit.end();
    this.deletion.close();
    clearTimeout(this.unmarking);
    return true;
  }

  private async askAllowed(open: Open): Promise<void> {
    const { resource, namespace = '', name } = open.ref;
    const subject = { group: resource.group, resource: resource.plural, namespace, name };
    open.allowed = await askAllowed(this.http, subject);
    if (this.open === open) this.draw();
  }

  private onState(open: Open, { what, object }: ObjectState): void {
    const before = open.isGone ? undefined : open.object;
    if (what === 'deleted' || object !== undefined) open.object = object ?? open.object;
    open.isGone = what === 'deleted' || object === undefined;
    if (object === undefined) {
      this.draw();
      return;
    }
    if (open.first === '') open.first = versionOf(object);
    const entry = toEntry({ what, at: new Date(), before, after: object });
    open.history.add(entry);
    if (what === 'deleted') this.announce('Deleted.');
    else if (what !== 'read')
      this.mark(
        entry.changes.map(({ path, after }) => ({ path, isThere: after !== undefined })),
        entry.more,
      );
    this.draw();
  }

  /** Marks the changes for a while, describes them, and has them read out. */
  private mark(changes: readonly { readonly path: string; readonly isThere: boolean }[], more: number): void {
    const rest = changes.length - MAX_PATHS + more;
    const paths = changes.slice(0, MAX_PATHS).map(({ path, isThere }) => `${path}${isThere ? '' : ' (removed)'}`);
    const words = paths.length === 0 ? 'nothing but its version' : `${paths.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
    say(byId('detail-changed'), `\u00b1 Changed at ${timeOf(new Date())}: ${visible(words)}`);
    this.announce(`Changed: ${words}`);
    this.marked = new Set(changes.filter(({ isThere }) => isThere).map(({ path }) => path));
    clearTimeout(this.unmarking);
    this.unmarking = undefined;
  }

  /** The time of a mark starts when it is visible, because showing a long text takes time, too. */
  private unmarkLater(): void {
    this.unmarking ??= setTimeout(() => {
      this.marked = undefined;
      this.draw();
    }, MARK_MS);
  }

  /** A screen reader reads every text set here, so of several in a short time only the last one is set. */
  private announce(text: string): void {
    this.unsaid = text;
    if (this.announcing !== undefined) return;
    const speak = (): void => {
      this.announcing = undefined;
      if (this.unsaid === '') return;
      say(byId('detail-announcer'), visible(this.unsaid));
      this.unsaid = '';
      this.announcing = setTimeout(speak, ANNOUNCE_MS);
    };
    speak();
  }

  private onPhase(phase: FollowPhase): void {
    this.phase = phase;
    this.showPhase();
  }

  private showPhase(): void {
    const { phase, isSilent } = this;
    const element = byId('detail-phase');
    const isOff = phase.is === 'waiting' || isSilent;
    element.dataset.state = isOff ? 'off' : phase.is;
    const why = phase.is === 'waiting' ? (phase.error as Error).message : 'no answer';
    say(element, isOff ? `not connected (${visible(why)})` : phase.is);
  }

  /** Shows the current state. */
  private show(): void {
    const { open } = this;
    if (open === undefined) return;
    const { object, isGone, allowed } = open;
    byId('detail-title').classList.toggle('gone', isGone);
    const deletion = byId<HTMLButtonElement>('detail-delete');
    const isOff = isGone || object === undefined || allowed?.delete === false;
    // A disabled button loses the focus, and keyboard users would have to start from the top of the page.
    if (isOff && document.activeElement === deletion) this.section.focus({ preventScroll: true });
    deletion.disabled = isOff;
    for (const id of ['detail-copy', 'detail-download']) byId<HTMLButtonElement>(id).disabled = object === undefined;
    this.showFacts(open);
    if (this.tab === 'history') this.historyView.show(open.history);
    if (object === undefined) {
      if (isGone) say(byId('edit-about'), 'There is no such object.');
      return;
    }
    this.showOwners(object);
    if (this.tab === 'object') this.showText(object);
    if (this.tab === 'edit' && this.edit.isOutdated(object, allowed)) this.beginEdit(open);
  }

  private showFacts({ object, isGone, history: { entries } }: Open): void {
    const { creationTimestamp, resourceVersion } = memberTexts(object?.metadata, 'creationTimestamp', 'resourceVersion');
    const deleted = entries.find(({ what }) => what === 'deleted')?.at;
    const last = deleted === undefined ? 'There is no such object.' : `Deleted at ${timeOf(deleted)}. This was its last state.`;
    const created = new Date(creationTimestamp);
    const since = Number.isNaN(created.getTime()) ? '' : `, created ${momentOf(created)}`;
    const facts = `version ${visible(resourceVersion)}${since}`;
    say(byId('detail-facts'), isGone ? last : object === undefined ? 'Reading \u2026' : facts);
  }

  private showText(object: Members): void {
    const { format } = this;
    const isWhole = this.text.show(this.wanted(object), { format, marked: this.marked, all: this.showsAll });
    if (this.marked !== undefined) this.unmarkLater();
    const all = byId('detail-all');
    all.hidden = isWhole;
    say(all, this.showsAll ? 'The rest is too long to show: download it' : 'Show all');
  }

  private showOwners(object: Members): void {
    const { ownerReferences } = hasMembers(object.metadata) ? object.metadata : {};
    const owners = (Array.isArray(ownerReferences) ? ownerReferences.slice(0, 20) : []) as readonly unknown[];
    const element = byId('detail-owners');
    const key = JSON.stringify(owners);
    if (element.dataset.owners === key) return;
    element.dataset.owners = key;
    element.hidden = owners.length === 0;
    element.replaceChildren('Owned by ', ...owners.flatMap((owner, at) => [...(at > 0 ? [', '] : []), this.ownerLink(owner)]));
  }

  private ownerLink(owner: unknown): Node | string {
    const { apiVersion, kind, name, uid } = memberTexts(owner, 'apiVersion', 'kind', 'name', 'uid');
    const text = visible(`${kind} ${name}`);
    const [version = '', group = ''] = apiVersion.split('/').reverse();
    const resource = this.deps.resources().find((each) => each.group === group && each.version === version && each.kind === kind);
    if (resource === undefined) return text;
    const link = make('a', { text });
    link.href = `#${encodeURIComponent(resource.id)}`;
    link.addEventListener('click', (event) => {
      event.preventDefault();
      const namespace = resource.namespaced ? this.open?.ref.namespace : undefined;
      this.openNow({ resource, namespace, name, uid });
    });
    return link;
  }

  private get format(): TextFormat {
    return byId<HTMLSelectElement>('detail-format').value as TextFormat;
  }

  private wanted(object: Members): Members {
    return byId<HTMLInputElement>('detail-managed').checked ? object : withoutManagers(object);
  }

  private choose(tab: Tab): void {
    const { open } = this;
    this.tab = tab;
    for (const each of TABS) {
      const button = byId<HTMLButtonElement>(`detail-tab-${each}`);
      button.setAttribute('aria-selected', String(each === tab));
      button.tabIndex = each === tab ? 0 : -1;
      byId(`detail-${each}`).hidden = each !== tab;
    }
    this.events.stop();
    if (open === undefined) return;
    if (tab === 'events') this.startEvents(open);
    if (tab === 'history' && !open.olderAsked) void this.readOlder(open);
    this.show();
  }

  private startEvents({ ref, object }: Open): void {
    const resources = this.deps.resources();
    const events = resources.filter(
      ({ plural: name, group }) => name === 'events' && (group === '' || group === 'events.k8s.io'),
    );
    const chosen = events.find(({ group }) => group === '') ?? events[0];
    const { uid } = memberTexts(object?.metadata, 'uid');
    this.events.start(chosen, { namespace: ref.resource.namespaced ? (ref.namespace ?? '') : '', uid: uid || (ref.uid ?? '') });
  }

  private beginEdit({ ref, object, allowed }: Open): void {
    if (object === undefined) return;
    const format = allowed?.yaml === false ? 'json' : this.format;
    this.edit.begin({ path: pathOf(ref), object, format, allowed });
  }

  private async readOlder(open: Open): Promise<void> {
    const note = byId('detail-older-note');
    const button = byId<HTMLButtonElement>('detail-older');
    const since = this.deps.oldestOf(open.ref.resource);
    // If an object was gone before the page looked, all its changes are older ones.
    if (since === undefined || (open.first === '' && !open.isGone)) {
      say(note, 'The server keeps no older changes.');
      return;
    }
    open.olderAsked = true;
    button.hidden = true;
    say(note, 'Reading older changes \u2026');
    let words: string;
    try {
      const older = await open.follower.older({ since, until: open.first }, open.ending.signal);
      const known = new Set(open.history.entries.map(({ version }) => version));
      const entries = older.filter(({ version }) => open.first !== '' || !known.has(version));
      open.history.addOlder(entries);
      words =
        entries.length === 0
          ? 'The server keeps no older changes of this object.'
          : `Back to version ${since}, the oldest that the server keeps.`;
    } catch (error) {
      words = `Older changes could not be read: ${(error as Error).message}.`;
      open.olderAsked = false;
    }
    if (this.open !== open) return;
    button.hidden = open.olderAsked;
    say(note, visible(words));
    this.show();
  }

  private listen(): void {
    byId('detail-close').addEventListener('click', () => this.close());
    this.section.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.close();
    });
    for (const tab of TABS) byId(`detail-tab-${tab}`).addEventListener('click', () => this.choose(tab));
    byId('detail-tabs').addEventListener('keydown', (event) => this.onTabKey(event));
    for (const id of ['detail-format', 'detail-managed']) byId(id).addEventListener('change', () => this.show());
    byId('detail-all').addEventListener('click', () => {
      this.showsAll = true;
      this.show();
      byId('detail-text').focus();
    });
    byId('detail-older').addEventListener('click', () => this.open && void this.readOlder(this.open));
    byId('detail-copy').addEventListener('click', () => void this.copy());
    byId('detail-download').addEventListener('click', () => this.download());
    byId('detail-delete').addEventListener('click', () => this.askDelete());
    byId('delete').addEventListener('close', () => {
      if (document.activeElement === document.body && this.open !== undefined) this.section.focus({ preventScroll: true });
    });
    byId('edit-reset').addEventListener('click', () => this.open && this.beginEdit(this.open));
    // Browsers allow few connections per server for all its pages, so a hidden page uses none for a single object.
    document.addEventListener('visibilitychange', () => (document.hidden ? this.pause() : this.resume()));
    addEventListener('beforeunload', (event) => this.edit.isDirty && event.preventDefault());
  }

  private onTabKey(event: KeyboardEvent): void {
    const at = TABS.indexOf(this.tab);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: TABS.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const tab = TABS[(to + TABS.length) % TABS.length] as Tab;
    this.choose(tab);
    byId(`detail-tab-${tab}`).focus();
  }

  private askDelete(): void {
    const { open } = this;
    if (open?.object === undefined) return;
    const { uid } = memberTexts(open.object.metadata, 'uid');
    this.deletion.ask({ title: titleOf(open.ref), path: pathOf(open.ref), uid });
  }

  private async copy(): Promise<void> {
    const { object } = this.open ?? {};
    if (object === undefined) return;
    const text = toText(this.wanted(object), this.format);
    const words = (await copyText(text))
      ? `Copied ${plural(text.length, 'character')}.`
      : 'The browser does not let this page copy.';
    say(byId('detail-changed'), words);
    this.announce(words);
  }

  private download(): void {
    const { object, ref } = this.open ?? {};
    if (object === undefined || ref === undefined) return;
    const text = toText(this.wanted(object), this.format);
    const blob = new Blob([text], { type: `application/${this.format}` });
    saveAs(`${ref.resource.plural}-${ref.name}.${this.format}`, blob);
    say(byId('detail-changed'), `Downloaded ${size(blob.size)}.`);
  }
}

const titleOf = ({ resource, namespace = '', name }: DetailRef): string =>
  `${resource.kind} ${namespace && `${namespace}/`}${name}`;
const pathOf = ({ resource, namespace, name }: DetailRef): string =>
  `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;
