import type { Fault } from './lines.ts';

/** Bytes of reports that may wait for the reader of stderr. */
const MAX_WAITING_BYTES = 65_536;
/** If as many lines are skipped before there is an event, they are likely to be text. */
const TEXT_LINES = 10;

/** The part of stderr that {@link Reports} needs. */
export interface ReportOutput {
  write(text: string): unknown;
  readonly writableLength: number;
}

/**
 * What `watchmux pipe` says on stderr. The program that reads it may have stopped, and input may consist of nothing but bad lines:
 * reports that do not fit are only counted.
 */
export class Reports {
  /** Lines that were skipped. */
  skipped: number = 0;
  private untold: number = 0;
  /** A hint about the kind of input was given. */
  private hinted: boolean = false;
  private readonly output: ReportOutput;

  constructor(output: ReportOutput) {
    this.output = output;
  }

  say(text: string): void {
    this.tellUntold();
    this.output.write(`watchmux pipe: ${text}\n`);
  }

  /** Reports a line that is skipped. `events` is the number of events before it. */
  skip({ number, fault, opens = false }: { number: number } & Fault, events: number): void {
    this.skipped++;
    if (this.output.writableLength >= MAX_WAITING_BYTES) this.untold++;
    else this.say(`line ${number} skipped: ${fault}`);
    if (this.hinted) return;
    const isText = this.skipped >= TEXT_LINES && events === 0;
    this.hinted = opens || isText;
    if (opens) this.say(`line ${number} begins a value of several lines; for one line per value, use jq -c`);
    else if (isText) this.say('no line is an event so far; to serve lines of text, use --raw');
  }

  private tellUntold(): void {
    const { untold } = this;
    this.untold = 0;
    if (untold > 0) this.say(`${untold} more skipped: nobody has read these reports`);
  }
}
