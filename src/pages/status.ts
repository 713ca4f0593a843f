// How both pages live, in the browser: the state of their connection, what has happened to it, and the numbers they poll.
import { type Clock, systemClock } from '../watch/clock.ts';
import { byId, make, say } from './elements.ts';
import { plural, timeOf } from './words.ts';

/** The colour of the state. */
type Light = 'live' | 'slow' | 'connecting' | 'off';

/** The state of the connection in the header: a light and a few words, or a countdown to the next attempt. */
export class StateLine {
  private timer: ReturnType<typeof setInterval> | undefined = undefined;

  /** `retry`: whether it makes sense to try at once. */
  show(light: Light, text: string, { retry = false }: { readonly retry?: boolean } = {}): void {
    clearInterval(this.timer);
    byId('state').dataset.state = light;
    byId('retry').toggleAttribute('hidden', !retry);
    say(byId('state'), text);
  }

  countDown(delayMs: number): void {
    const until = performance.now() + delayMs;
    const words = (): string => {
      const seconds = Math.ceil((until - performance.now()) / 1_000);
      return seconds > 0 ? `not connected, next attempt in ${plural(seconds, 'second')}` : 'not connected, trying';
    };
    this.show('off', words(), { retry: true });
    this.timer = setInterval(() => say(byId('state'), words()), 1_000);
  }
}

/** The kind of a history entry. */
export type HistoryKind = 'good' | 'cut' | 'loss' | 'note';

/** Entries in the history. */
const MAX_HISTORY = 30;

/** The minimum time between two announcements. */
const PAUSE_MS = 3_000;

/**
 * What has happened to this page's connection, newest first. It is announced to screen readers, too. They read out every change of a
 * polite live region, so it must change seldom: of several messages during a pause only the last is announced, when the pause is over.
 */
export class PageHistory {
  private repeats: { readonly text: string; readonly times: number } = { text: '', times: 0 };
  private next: string | undefined = undefined;
  private resting: boolean = false;

  add(text: string, kind: HistoryKind): void {
    const list = byId('history');
    const entry = make('li', { name: kind });
    const { repeats } = this;
    // While a server is away, every attempt fails: show one entry with a count.
    const times = repeats.text === text ? repeats.times + 1 : 1;
    if (times > 1) list.firstElementChild?.remove();
    this.repeats = { text, times };
    entry.append(make('time', { text: timeOf(new Date()) }), ` ${text}${times > 1 ? ` (${times} times)` : ''}`);
    list.prepend(entry);
    while (list.children.length > MAX_HISTORY) list.lastElementChild?.remove();
    this.next = text;
    if (!this.resting) this.announce();
  }

  private announce(): void {
    this.resting = this.next !== undefined;
    if (this.next === undefined) return;
    byId('announcer').textContent = this.next;
    this.next = undefined;
    setTimeout(() => this.announce(), PAUSE_MS);
  }
}

/** Options of a {@link Poller}. */
interface PollOptions<T> {
  readonly ask: (signal: AbortSignal) => Promise<T>;
  readonly onAnswer: (answer: T) => void;
  readonly onFault: () => void;
  readonly intervalMs: number;
  /** The longest pause after consecutive failures. */
  readonly maxIntervalMs: number;
  /** A request that takes longer has failed. */
  readonly timeoutMs: number;
  readonly clock?: Clock | undefined;
}

/**
 * Asks repeatedly, one request at a time. The pause doubles after each failure, up to its limit; an answer resets it. `stop`
 * aborts the current request; after that nothing is asked, called or scheduled any more.
 */
export class Poller<T> {
  private readonly options: PollOptions<T>;
  private readonly clock: Clock;
  private failures: number = 0;
  private round: AbortController | undefined = undefined;
  private cancelTimer: () => void = () => {};

  constructor(options: PollOptions<T>) {
    this.options = options;
    this.clock = options.clock ?? systemClock;
  }

  /** Asks now, and then at the configured interval. Also ends a pause early. */
  start(): void {
    this.stop();
    void this.ask();
  }

  stop(): void {
    this.cancelTimer();
    this.round?.abort();
    this.round = undefined;
  }

  private async ask(): Promise<void> {
    const round = new AbortController();
    this.round = round;
    const { ask, onAnswer, onFault, timeoutMs } = this.options;
    this.cancelTimer = this.clock.schedule(timeoutMs, () => round.abort());
    let answer: { readonly is: T } | undefined;
    try {
      answer = { is: await ask(round.signal) };
    } catch {
      // If the error persists, the next request will show it.
    }
    // Stopped or restarted while the request was pending.
    if (this.round !== round) return;
    this.cancelTimer();
    this.failures = answer === undefined ? this.failures + 1 : 0;
    this.cancelTimer = this.clock.schedule(this.pauseMs, () => void this.ask());
    if (answer === undefined) onFault();
    else onAnswer(answer.is);
  }

  private get pauseMs(): number {
    const { intervalMs, maxIntervalMs } = this.options;
    return Math.min(maxIntervalMs, intervalMs * 2 ** this.failures);
  }
}

/** Polls the numbers of a server. Old ones must not look like current ones, so they are marked while there is no answer. */
export function pollNumbers<T>({
  ask,
  onAnswer,
  onFault,
}: {
  readonly ask: (signal: AbortSignal) => Promise<T>;
  /** `wasAway`: there was no answer before. */
  readonly onAnswer: (answer: T, wasAway: boolean) => void;
  readonly onFault?: () => void;
}): Poller<T> {
  const { classList } = document.body;
  return new Poller<T>({
    ask,
    onAnswer: (answer) => {
      const wasAway = classList.contains('stale');
      classList.remove('stale');
      onAnswer(answer, wasAway);
    },
    onFault: () => {
      classList.add('stale');
      onFault?.();
    },
    ...{ intervalMs: 1_000, maxIntervalMs: 15_000, timeoutMs: 5_000 },
  });
}

/** What a page does when it is left, when it comes back from the back/forward cache, and when it becomes visible. */
export interface PageLife {
  readonly leave: () => void;
  readonly comeBack: () => void;
  /** Browsers throttle the timers of a hidden page: it catches up at once. */
  readonly seen: () => void;
}

export function onPageLife({ leave, comeBack, seen }: PageLife): void {
  addEventListener('pagehide', leave);
  addEventListener('pageshow', ({ persisted }) => persisted && comeBack());
  document.addEventListener('visibilitychange', () => document.hidden || seen());
}

/** The minimum time between two redraws of a table; a slow one is followed by a longer pause. */
const DRAW_MS = 120;
const DRAW_SHARE = 8;

/** Returns a function that draws soon, however often it is called. */
export function drawingSoon(draw: () => void): () => void {
  let waiting = false;
  let lastMs = 0;
  return () => {
    if (waiting) return;
    waiting = true;
    setTimeout(
      () => {
        waiting = false;
        const begun = performance.now();
        draw();
        lastMs = performance.now() - begun;
      },
      Math.max(DRAW_MS, lastMs * DRAW_SHARE),
    );
  };
}
