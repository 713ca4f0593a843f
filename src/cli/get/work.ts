import type { Source } from '../../pages/table.ts';
import type { Output } from '../output.ts';
import type { GetCommand } from './get-args.ts';
import type { Printer } from './printer.ts';

/** What to print: from where, how, and where to. */
export interface Work {
  readonly command: GetCommand;
  readonly source: Source;
  readonly printer: Printer;
  readonly output: Output;
  /** Aborts when nobody reads the output any more. */
  readonly signal: AbortSignal;
  /** Says something outside the output. */
  readonly note: (text: string) => void;
}
