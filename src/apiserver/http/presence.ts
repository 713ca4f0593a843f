/** Whether the client of a request is still there. A signal says the same, and costs each request several times as much. */
export class Presence {
  gone: boolean = false;
  private onLeft: ((reason: unknown) => void) | undefined = undefined;

  /** The client has left. */
  leave(): void {
    if (this.gone) return;
    this.gone = true;
    this.onLeft?.(new Error('the client has left'));
  }

  /** Has somebody hear of it: one at a time, or nobody any more. Whoever comes too late looks at `gone`. */
  tell(onLeft: ((reason: unknown) => void) | undefined): void {
    this.onLeft = onLeft;
  }
}
