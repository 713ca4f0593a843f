/** Two announcements are at least so far apart. */
const PAUSE_MS = 3_000;

/**
 * Tells those who listen instead of looking. A screen reader reads out what changes in a polite live region, so it must change
 * seldom: of what comes within a pause only the last is said, when the pause is over.
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
