import type { HttpSettings } from '../../../cache/http/exchange.ts';
import { byId, say } from '../../elements.ts';
import { visible } from '../../words.ts';
import { write } from './requests.ts';

/** What is deleted. */
interface DeleteTarget {
  /** For people. */
  readonly title: string;
  readonly path: string;
  /** An object that has taken its name meanwhile is not meant. */
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
