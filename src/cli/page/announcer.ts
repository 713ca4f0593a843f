/** The minimum time between two announcements. */
const PAUSE_MS = 3_000;

/**
 * Announces changes to screen readers. They read out every change of a polite live region, so it must change seldom: of several
 * messages during a pause only the last is announced, when the pause is over.
 */
export class Announcer {
  private readonly region: Element;
  private next: string | undefined = undefined;
  private resting: boolean = false;

  constructor(region: Element) {
    this.region = region;
  }

  say(text: string): void {
    this.next = text;
    if (!this.resting) this.speak();
  }

  private speak(): void {
    this.resting = this.next !== undefined;
    if (this.next === undefined) return;
    this.region.textContent = this.next;
    this.next = undefined;
    setTimeout(() => this.speak(), PAUSE_MS);
  }
}
