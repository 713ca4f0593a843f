import { byId, say } from '../../page/elements.ts';

/**
 * Asks for the token of a server that requires one. It goes from the field to the code that uses it, and stays nowhere in the
 * page.
 */
export class TokenForm {
  private readonly field: HTMLInputElement = byId<HTMLInputElement>('token');

  /** `onToken` returns whether the text can be a token. */
  constructor(onToken: (text: string) => boolean) {
    byId('ask').addEventListener('submit', (event) => {
      event.preventDefault();
      const text = this.field.value.trim();
      this.field.value = '';
      this.fail(onToken(text) ? '' : 'A token has 1 to 1,000 visible ASCII characters, and no spaces.');
    });
  }

  get isShown(): boolean {
    return document.body.classList.contains('locked');
  }

  /** `wrong`: there was a token, and the server does not accept it. */
  show(wrong: boolean): void {
    this.fail(wrong ? 'The server does not accept this token.' : '');
    if (this.isShown) return;
    document.body.classList.add('locked');
    this.field.focus();
  }

  hide(): void {
    document.body.classList.remove('locked');
  }

  private fail(text: string): void {
    say(byId('ask-fault'), text);
    byId('ask-fault').toggleAttribute('hidden', text === '');
    this.field.setAttribute('aria-invalid', String(text !== ''));
  }
}
