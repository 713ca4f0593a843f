/**
 * Editing an object as text. The user's text is saved for the version with which editing began: if the object has changed
 * since, the server refuses, and both are shown.
 *
 *     text of version 12 --save--> saved as 13: the text is that of 13
 *                            |---> refused: causes with their fields beside the text
 *                            '---> conflict: what has changed since 12, the object as it is now, and the text as it was
 */

import { ask, type HttpSettings } from '../../../cache/http/exchange.ts';
import { versionOf } from '../../../cache/object.ts';
import { byId, make, say } from '../../elements.ts';
import { parseExactly, plural, size, visible } from '../../words.ts';
import { changeList, toEntry } from './history.ts';
import { hasMembers, type Members } from './paths.ts';
import { type Allowed, type Cause, type WriteAnswer, write } from './requests.ts';
import { type TextFormat, TextView, toText } from './text.ts';

/** A longer text is not edited in a page. */
const MAX_EDIT_CHARS = 512 * 1_024;
/** The field manager of what is saved here. */
const FIELD_MANAGER = 'watchmux-page';

interface EditTarget {
  readonly path: string;
  readonly object: Members;
  readonly format: TextFormat;
  readonly allowed: Allowed | undefined;
}

export class EditView {
  private readonly means: HttpSettings;
  private readonly area: HTMLTextAreaElement = byId<HTMLTextAreaElement>('edit-text');
  private readonly theirs: TextView = new TextView(byId('edit-theirs'));
  private target: EditTarget | undefined = undefined;
  /** The text as it was at the start. */
  private begun: string = '';
  /** Only one request at a time, and none for an object that the user has left. */
  private busy: EditTarget | undefined = undefined;

  constructor(means: HttpSettings) {
    this.means = means;
    byId('edit').addEventListener('submit', (event) => {
      event.preventDefault();
      void this.save(false);
    });
    byId('edit-try').addEventListener('click', () => void this.save(true));
    this.area.addEventListener('input', () => this.tell());
  }

  /** Whether there is text that would be lost. */
  get isDirty(): boolean {
    return this.target !== undefined && this.area.value !== this.begun;
  }

  /** Whether it should start over with this object: the user has written nothing, and is not about to. */
  isOutdated(object: Members, allowed: Allowed | undefined): boolean {
    const { target } = this;
    if (target === undefined) return true;
    if (this.isDirty || document.activeElement === this.area || this.busy !== undefined) return false;
    return target.allowed !== allowed || versionOf(target.object) !== versionOf(object);
  }

  /** Starts with an object as it is. Anything written before is lost. */
  begin(target: EditTarget): void {
    this.target = target;
    this.begun = toText(withoutManagers(target.object), target.format);
    const isLong = this.begun.length > MAX_EDIT_CHARS;
    if (isLong) this.begun = '';
    this.area.value = this.begun;
    // A browser may change line ends.
    this.begun = this.area.value;
    const mayNot = target.allowed?.update === false;
    this.area.readOnly = mayNot;
    this.area.disabled = isLong;
    for (const id of ['edit-save', 'edit-try']) byId<HTMLButtonElement>(id).disabled = isLong || mayNot;
    this.report('');
    this.showOther();
    this.tell(
      isLong
        ? `It is longer than ${size(MAX_EDIT_CHARS)}: download it, and send it with another client.`
        : mayNot
          ? 'You may read it, but not change it.'
          : undefined,
    );
  }

  end(): void {
    this.target = undefined;
    this.area.value = this.begun = '';
    this.area.disabled = true;
    for (const id of ['edit-save', 'edit-try']) byId<HTMLButtonElement>(id).disabled = true;
    say(byId('edit-about'), '');
    this.report('');
    this.showOther();
    this.theirs.clear();
  }

  /** Says which version the text is for, and whether that is still current. */
  tell(why?: string): void {
    const { target } = this;
    if (target === undefined) return;
    const dirty = this.isDirty ? ', changed here' : '';
    say(
      byId('edit-about'),
      why ??
        `${target.format.toUpperCase()} of version ${visible(versionOf(target.object))}${dirty}. It is saved only if the object has not changed meanwhile.`,
    );
  }

  /** Says something about the text. */
  report(text: string, causes: readonly Cause[] | undefined = undefined): void {
    const said = byId('edit-said');
    said.classList.toggle('bad', causes !== undefined);
    say(said, visible(text));
    const list = byId('edit-faults');
    list.toggleAttribute('hidden', !causes?.length);
    list.replaceChildren(...(causes ?? []).map((cause) => this.faultItem(cause)));
    this.area.setAttribute('aria-invalid', String(causes !== undefined));
  }

  private faultItem({ field, message }: Cause): HTMLLIElement {
    const item = make('li');
    if (field !== '') {
      const button = make('button', { text: visible(field), title: 'Show it in the text' });
      button.addEventListener('click', () => this.reveal(field));
      item.append(button, ' ');
    }
    item.append(visible(message));
    return item;
  }

  private reveal(field: string): void {
    const { value } = this.area;
    const at = placeOf(value, field);
    this.area.focus();
    this.area.setSelectionRange(at, value.indexOf('\n', at) < 0 ? value.length : value.indexOf('\n', at));
  }

  private async save(dryRun: boolean): Promise<void> {
    const { target } = this;
    if (target === undefined || this.busy === target) return;
    if (!/\bresourceVersion["']? *:/.test(this.area.value)) {
      const version = versionOf(target.object);
      this.report(`Not saved: without resourceVersion ${version}, it would undo what others have changed meanwhile.`, []);
      return;
    }
    this.busy = target;
    this.report(dryRun ? 'Asking \u2026' : 'Saving \u2026');
    this.showOther();
    const query = { fieldValidation: 'Strict', fieldManager: FIELD_MANAGER, ...(dryRun && { dryRun: 'All' }) };
    const outcome = await write(this.means, {
      method: 'PUT',
      path: target.path,
      query,
      body: this.area.value,
      format: target.format,
    });
    if (this.busy === target) this.busy = undefined;
    if (this.target !== target) return;
    if (outcome.object !== undefined) this.accepted(target, outcome.object, dryRun);
    else await this.refused(target, outcome);
  }

  private accepted(target: EditTarget, object: Members, dryRun: boolean): void {
    if (!dryRun) {
      this.begin({ ...target, object });
      this.report(`Saved as version ${versionOf(object)}.`);
      return;
    }
    const { changes, more } = toEntry({ what: 'changed', at: undefined, before: target.object, after: object });
    this.report(
      changes.length === 0 ? 'The server accepts it. Nothing would change.' : 'The server accepts it. Nothing is saved yet.',
    );
    if (changes.length === 0) return;
    this.showOther('What would change');
    changeList(changes, more, byId<HTMLUListElement>('edit-differences'));
  }

  private async refused(target: EditTarget, { code, message, causes }: WriteAnswer): Promise<void> {
    const hint = code === 415 ? ' Choose JSON, and start again.' : '';
    this.report(`${code === 0 ? 'Not saved, as far as is known' : 'Not saved'}: ${message}.${hint}`, causes);
    if (code !== 409) return;
    const url = new URL(target.path, location.origin);
    const now = await ask(this.means, url, { read: parseExactly }).catch(() => undefined);
    if (this.target !== target || !hasMembers(now)) return;
    const { changes, more } = toEntry({ what: 'changed', at: undefined, before: target.object, after: now });
    const version = versionOf(now);
    this.showOther(`Version ${visible(version)} is the current one. ${plural(changes.length + more, 'change')} since you began:`);
    changeList(changes, more, byId<HTMLUListElement>('edit-differences'));
    this.theirs.show(withoutManagers(now), { format: target.format });
    byId('edit-theirs').hidden = false;
    const rebase = byId<HTMLButtonElement>('edit-rebase');
    rebase.hidden = false;
    rebase.onclick = () => this.rebase(target, now);
  }

  /** Keeps the text, but for another version from now on: saving it overwrites what has changed meanwhile. */
  private rebase(target: EditTarget, object: Members): void {
    const text = withVersion(this.area.value, { from: versionOf(target.object), to: versionOf(object) });
    if (text === undefined) {
      this.report(`The text no longer has resourceVersion ${versionOf(target.object)}: write ${versionOf(object)} yourself.`, []);
      return;
    }
    this.area.value = text;
    this.target = { ...target, object };
    this.showOther();
    this.report(`The text is for version ${versionOf(object)} now. Saving it overwrites what has changed meanwhile.`);
    this.tell();
    this.area.focus();
  }

  /** Shows, or hides, what is below the text. */
  private showOther(title?: string): void {
    byId('edit-other').hidden = title === undefined;
    say(byId('edit-other-title'), title ?? '');
    byId('edit-differences').replaceChildren();
    for (const id of ['edit-theirs', 'edit-rebase']) byId(id).hidden = true;
  }
}

/** An object without `managedFields`. If they are missing, a server keeps its own. */
export function withoutManagers(object: Members): Members {
  const { metadata } = object;
  if (!hasMembers(metadata) || !Object.hasOwn(metadata, 'managedFields')) return object;
  const { managedFields: _, ...rest } = metadata;
  return { ...object, metadata: rest };
}

/**
 * The same text with another version. Undefined: it does not have the first one. Data may have a member of the same name, and
 * may come before the metadata.
 */
export function withVersion(text: string, { from, to }: { readonly from: string; readonly to: string }): string | undefined {
  const start = Math.max(0, text.search(/^(metadata| {2}"metadata"):/m));
  for (const name of ['\n  resourceVersion: ', '\n    "resourceVersion": ', 'resourceVersion: ', '"resourceVersion": ']) {
    for (const value of [JSON.stringify(from), from]) {
      const at = text.indexOf(name + value, start);
      const end = at + name.length + value.length;
      if (at >= 0 && !/\w/.test(text[end] ?? '')) return text.slice(0, at) + name + JSON.stringify(to) + text.slice(end);
    }
  }
  return undefined;
}

/**
 * Where a text, of either format, most likely has a field such as `spec.containers[0].image`: the last part of the path that
 * can be found.
 */
export function placeOf(text: string, field: string): number {
  let place = 0;
  let from = 0;
  for (const name of field.split(/[.[\]]+/).slice(0, 50)) {
    if (name === '' || /^\d+$/.test(name)) continue;
    const found = [`${name}:`, `"${name}":`].map((label) => text.indexOf(label, from)).filter((at) => at >= 0);
    if (found.length === 0) break;
    place = Math.min(...found);
    from = place + name.length;
  }
  return place;
}

interface DeleteTarget {
  /** For people. */
  readonly title: string;
  readonly path: string;
  /** Protects an object that has taken its name in the meantime. */
  readonly uid: string;
}

/** The question before an object is deleted. The browser keeps the focus in it, and Escape closes it. */
export class DeleteDialog {
  private readonly dialog: HTMLDialogElement = byId<HTMLDialogElement>('delete');
  private readonly means: HttpSettings;
  private target: DeleteTarget | undefined = undefined;

  constructor(means: HttpSettings) {
    this.means = means;
    byId('delete-no').addEventListener('click', () => this.dialog.close());
    byId('delete-yes').addEventListener('click', () => void this.confirm());
  }

  ask(target: DeleteTarget): void {
    this.target = target;
    say(byId('delete-title'), `Delete ${visible(target.title)}?`);
    say(byId('delete-said'), '');
    this.dialog.showModal();
  }

  close(): void {
    this.dialog.close();
  }

  private async confirm(): Promise<void> {
    const { target } = this;
    if (target === undefined) return;
    const propagationPolicy = byId<HTMLSelectElement>('delete-policy').value;
    const options = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy, preconditions: { uid: target.uid } };
    const yes = byId<HTMLButtonElement>('delete-yes');
    yes.disabled = true;
    const { object, message } = await write(this.means, { method: 'DELETE', path: target.path, body: JSON.stringify(options) });
    yes.disabled = false;
    if (this.target !== target || !this.dialog.open) return;
    if (object !== undefined) this.dialog.close();
    else say(byId('delete-said'), `Not deleted: ${visible(message)}.`);
  }
}
