/**
 * Reports failures when nobody listens: a class calls `onError` if there is one, and otherwise prints a line here. The rule is
 * the same everywhere:
 *
 *     first of a kind ---> a line ---> more of this kind: counted ---> another kind: a line ---> over: a line, if there was any
 *
 * A failure without an end, such as a handler that throws, is over when it has not happened for a minute. A kind gets at most one
 * line a minute, however often it comes and goes, so that no burst fills a log.
 *
 * Invariants
 * - Nothing here throws, or leaves a rejected promise behind, whatever the error is, and whatever the host's console does.
 * - It has no timer, so it keeps no process alive. Unless told otherwise, it uses nothing but `console.error`, so it works in pages
 *   and workers.
 * - A line is a line: no stack, and no character that a terminal would act on.
 */
import { type Clock, systemClock } from './clock.ts';
import { callable, isWatchError } from './errors.ts';

/** The least time between two lines of one kind, and the time after which a failure without an end is over. */
const QUIET_MS = 60_000;
/** How many kinds of one subject are told apart. All further ones count as one. */
const MAX_KINDS = 16;
const MAX_CHARS = 500;

/** One thing that may fail. */
class Subject {
  kind: string | undefined;
  /** Whether this kind has been reported since it came. */
  told: boolean = false;
  /** Whether anything has been reported since all was last well. */
  said: boolean = false;
  /** Failures since all was well, and failures that no line has reported. */
  count: number = 0;
  untold: number = 0;
  lastMs: number = -QUIET_MS; // clocks begin at 0, or later
  /** When each kind got its last line. */
  readonly lines: Map<string, number> = new Map();
  /** The message of the last failure, and its kind. */
  #last: { readonly message: string; readonly kind: string } | undefined;

  /** Reading a stack takes 30 microseconds, so a burst of one message is recognised by the message alone. */
  kindOf(error: unknown): string {
    const message = messageOf(error);
    if (message !== undefined && message === this.#last?.message) return this.#last.kind;
    const kind = kindOf(error);
    this.#last = message === undefined ? undefined : { message, kind };
    return kind;
  }

  /** It works, or nothing has happened for long enough. Failures that no line has reported are not reported any more. */
  well(): void {
    this.kind = undefined;
    this.told = this.said = false;
    this.count = 0;
  }
}

interface FailuresOptions {
  /** Gets every failure instead. What it throws is ignored, because there is nobody to report it to. */
  readonly onError?: ((error: unknown) => void) | undefined;
  readonly clock?: Clock | undefined;
  /** Where lines go; default `console.error`. `isGood`: something works again. What it throws is ignored. */
  readonly print?: ((line: string, isGood?: boolean) => void) | undefined;
}

/** The failures of one object. See the top of this file. */
export class Failures {
  readonly #who: string;
  readonly #onError: FailuresOptions['onError'];
  readonly #clock: Clock;
  readonly #print: NonNullable<FailuresOptions['print']>;
  readonly #subjects: Map<string, Subject> = new Map();

  /** `who` begins each line, after the name of the package. */
  constructor(who: string, { onError, clock = systemClock, print = (line) => console.error(line) }: FailuresOptions = {}) {
    this.#who = `watchmux ${who}: `;
    this.#onError = callable('onError', onError);
    this.#clock = clock;
    this.#print = print;
  }

  /** Reports a failure without an end. `what` is one of a few names; `more` may be anything. */
  failed(what: string, error: unknown, more: string = ''): void {
    const subject = this.#subject(what);
    if (this.#clock.now() - subject.lastMs >= QUIET_MS) subject.well();
    this.down(what, error, more);
  }

  /** Reports that something does not work, until {@link up} is called for it. */
  down(what: string, error: unknown, more: string = ''): void {
    this.#note(this.#subject(what), error, what && `${what} failed${more}: `);
  }

  /** Reports that it works. */
  up(what: string): void {
    const subject = this.#subjects.get(what);
    if (!subject?.kind) return;
    const { said, count } = subject;
    subject.well();
    if (!said) return;
    subject.untold = 0;
    this.#say(`${what} works again, after ${count > 1 ? `${count} failures` : 'one failure'}`, true);
  }

  #subject(what: string): Subject {
    const subject = this.#subjects.get(what) ?? new Subject();
    this.#subjects.set(what, subject);
    return subject;
  }

  #note(subject: Subject, error: unknown, what: string): void {
    const onError = this.#onError;
    if (onError) {
      quietly(() => onError(error));
      return;
    }
    const nowMs = this.#clock.now();
    const { lines } = subject;
    const own = subject.kindOf(error);
    const kind = lines.has(own) || lines.size < MAX_KINDS ? own : 'other';
    if (kind !== subject.kind) subject.told = false;
    subject.kind = kind;
    subject.lastMs = nowMs;
    subject.count++;
    if (subject.told || nowMs - (lines.get(kind) ?? -QUIET_MS) < QUIET_MS) {
      subject.untold++;
      return;
    }
    subject.told = subject.said = true;
    lines.set(kind, nowMs);
    this.#say(`${what}${oneLine(error)}${subject.untold ? ` (and ${subject.untold} untold before)` : ''}`);
    subject.untold = 0;
  }

  #say(text: string, isGood?: boolean): void {
    quietly(() => this.#print(cleaned(this.#who + text), isGood));
  }
}

/** Calls a function that may throw, and may be async. `failed` gets its error; without `failed`, it is ignored. */
export function quietly(tell: () => unknown, failed: (error: unknown) => void = () => {}): void {
  try {
    (tell() as Partial<Promise<unknown>> | null | undefined)?.catch?.(failed);
  } catch (error) {
    failed(error);
  }
}

/** For a class whose failures have no end, and all have one subject: the function to call with each. */
export function reporter(who: string, options: FailuresOptions): (error: unknown) => void {
  const failures = new Failures(who, options);
  return (error) => failures.failed('', error);
}

/** An error, or whatever was thrown, in one line: what happened, why, and, if it is a programming error, where. */
export function oneLine(error: unknown): string {
  try {
    const { message = '', cause } = Object(error) as Partial<Error>;
    const why = (cause as Partial<Error> | undefined)?.message ?? '';
    const said = String(error);
    const own = said === '[object Object]' ? message || JSON.stringify(error) : said; // a Status has words
    const text = cleaned(own + (why && !message.includes(why) ? `: ${why}` : ''));
    const place = placeOf(error);
    return place ? `${text} (${place})` : text;
  } catch {
    return typeof error; // it cannot be converted to text
  }
}

/** Only for an error whose kind has to be read from its stack. */
function messageOf(error: unknown): string | undefined {
  const isOwn = error instanceof Error && !isWatchError(error) && !('code' in error) && error.cause === undefined;
  return isOwn ? `${error.name}: ${error.message}` : undefined;
}

/** What errors of one kind have in common. Not the text, which may name a different thing each time. */
function kindOf(error: unknown): string {
  try {
    const { name, code, status, cause } = Object(error) as Partial<Record<'name' | 'code', unknown>> & {
      readonly status?: { readonly code?: unknown };
      readonly cause?: { readonly code?: unknown };
    };
    return [typeof error, name, code, status?.code, cause?.code, placeOf(error)].join(' ').slice(0, MAX_CHARS);
  } catch {
    return typeof error;
  }
}

/** Where an error was thrown. Undefined for one that describes something outside the program. */
function placeOf(error: unknown): string | undefined {
  if (messageOf(error) === undefined) return undefined;
  const { stack, message } = error as Error;
  if (typeof stack !== 'string') return undefined;
  // V8 repeats the message before the frames; other engines do not.
  const at = stack.indexOf(message);
  const frames = stack.slice(at < 0 ? 0 : at + message.length, 10_000);
  return /^\s*(at .*:\d+:\d+\)?|\S*@\S+:\d+:\d+)$/m.exec(frames)?.[1];
}

/** Without line ends and other characters that a terminal would act on. */
function cleaned(text: string): string {
  return text.slice(0, MAX_CHARS).replace(/[\s\p{C}]+/gu, ' ') + (text.length > MAX_CHARS ? '…' : '');
}
