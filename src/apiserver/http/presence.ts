/** Whether the client of a request is still there. A signal would say the same, but costs each request several times as much. */
export class Presence {
  gone: boolean = false;
  private onLeft: ((reason: unknown) => void) | undefined = undefined;

  /** The client has left. */
  leave(): void {
    if (this.gone) return;
    this.gone = true;
    this.onLeft?.(new Error('the client has left'));
  }

  /** Sets or clears the one callback for when the client leaves. If it has left already, nothing is called: check `gone`. */
  tell(onLeft: ((reason: unknown) => void) | undefined): void {
    this.onLeft = onLeft;
  }
}
