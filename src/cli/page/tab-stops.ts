/**
 * The buttons of a table as one stop of the tab key: arrow keys, Home and End move between them.
 */
export class TabStops {
  private readonly body: HTMLElement;

  constructor(body: HTMLElement) {
    this.body = body;
    body.addEventListener('keydown', (event) => this.onKey(event));
  }

  /** Makes one button reachable by the tab key: the one with the focus, or the first. Call it when rows have come or gone. */
  keep(chosen?: HTMLButtonElement): void {
    const { all } = this;
    const stop = chosen ?? all.find((each) => each === document.activeElement) ?? all[0];
    for (const each of all) each.tabIndex = each === stop ? 0 : -1;
  }

  private get all(): readonly HTMLButtonElement[] {
    return [...this.body.querySelectorAll<HTMLButtonElement>('button')];
  }

  private onKey(event: KeyboardEvent): void {
    const { all } = this;
    const at = all.indexOf(event.target as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const next = all[Math.max(0, Math.min(all.length - 1, to))];
    next?.focus();
    this.keep(next);
  }
}
