/**
 * Conflicts: what an apply would take from others, found as sets of fields, and reported as a 409 with paths. There may be as
 * many as the object has fields, so some are named, and the rest counted.
 */
import type { Work } from '../watch/fair-queue.ts';
import { type FieldSet, pathsOf, shownPath, sizeOf } from './field-set.ts';
import { type Owner, shownOwner } from './managers.ts';

/** A conflict: the field, and its manager, as upstream's messages name it. */
export interface Conflict {
  readonly manager: string;
  readonly field: string;
}

/** The most conflicts that are named. */
const MAX_CONFLICTS = 100;

/** Thrown by an apply that would change what others own. */
export class ApplyConflict extends Error {
  override readonly name: string = 'ApplyConflict';
  /** The first 100 conflicts. Paths are cut after 256 characters. */
  readonly conflicts: readonly Conflict[];
  readonly more: number;

  constructor(conflicts: readonly Conflict[], more: number = 0) {
    super(conflictMessage(conflicts, more));
    this.conflicts = conflicts;
    this.more = more;
  }
}

/** The message of upstream's 409. */
function conflictMessage(conflicts: readonly Conflict[], more: number): string {
  const [first] = conflicts;
  if (conflicts.length + more === 1 && first) {
    return `Apply failed with 1 conflict: conflict with ${first.manager}: ${first.field}`;
  }
  const lines = conflicts.flatMap(({ manager, field }, at) =>
    manager === conflicts[at - 1]?.manager ? [`- ${field}`] : [`conflicts with ${manager}:`, `- ${field}`],
  );
  if (more > 0) lines.push(`and ${more} more`);
  return `Apply failed with ${conflicts.length + more} conflicts: ${lines.join('\n')}`;
}

/** The causes of upstream's 409. */
export function conflictCauses(conflicts: readonly Conflict[]): readonly { reason: string; message: string; field: string }[] {
  return conflicts.map(({ manager, field }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${manager}`,
    field,
  }));
}

/** What an apply would take from an owner. */
export interface Conflicting {
  readonly owner: Owner;
  readonly fields: FieldSet;
}

/** Thrown where conflicts are found. */
export class Conflicts extends Error {
  readonly found: readonly Conflicting[];

  constructor(found: readonly Conflicting[]) {
    super('conflicts');
    this.found = found;
  }
}

/** The error that reports them. */
export function* conflictOf(found: readonly Conflicting[]): Work<ApplyConflict> {
  const conflicts: Conflict[] = [];
  let all = 0;
  for (const { owner, fields } of found) {
    const manager = shownOwner(owner);
    for (const path of yield* pathsOf(fields, MAX_CONFLICTS - conflicts.length))
      conflicts.push({ manager, field: shownPath(path) });
    all += yield* sizeOf(fields);
  }
  return new ApplyConflict(conflicts, all - conflicts.length);
}
