// In what the codes of mutated.test.ts may differ, each with its reason.
import type { Mutated } from './mutations.ts';

/** A request, and what both servers answered. */
export interface Met {
  readonly request: Mutated;
  readonly theirs: { readonly code: number; readonly text: string };
  readonly ours: { readonly code: number; readonly text: string };
}

/** An explained difference. */
export interface Explained {
  readonly reason: string;
  readonly is: (met: Met) => boolean;
}

export const EXPLAINED: readonly Explained[] = [];
