import type { Work } from '../watch/fair-queue.ts';

/** A JSON object. */
export type Json = Readonly<Record<string, unknown>>;

/** A schema of OpenAPI v3, as a CustomResourceDefinition has it. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Who writes what, when. */
export interface WriteBy {
  /** The name of the field manager, such as `kubectl`. */
  readonly manager: string;
  /** The subresource that is written; empty for the object itself. */
  readonly subresource: string;
  /** The version of the kind in which it is written, such as `apps/v1`. */
  readonly apiVersion: string;
  /** When, as RFC 3339 in whole seconds. */
  readonly time: string;
}

export interface FieldManagerOptions {
  /** The schema of the kind in this version; undefined: types are deduced from values. */
  readonly schema: JsonSchema | undefined;
  readonly apiVersion: string;
  /** The members, as dotted paths, that a write of a subresource never owns, such as `status` for the object itself. */
  readonly reset?: ((subresource: string) => readonly string[]) | undefined;
  /** The other versions of the kind, with their schemas. */
  readonly versions?: Readonly<Record<string, JsonSchema | undefined>> | undefined;
  /** Converts an object to another version. Default: only its apiVersion changes. */
  readonly convert?: ((object: Json, apiVersion: string) => Json) | undefined;
}

/** A conflict: the manager, as upstream's messages name it, and the field. */
export interface Conflict {
  readonly manager: string;
  readonly field: string;
}

/** Thrown by an apply that would change what others own. */
export class ApplyConflict extends Error {
  override readonly name: string = 'ApplyConflict';
  readonly conflicts: readonly Conflict[];

  constructor(conflicts: readonly Conflict[]) {
    super(conflictMessage(conflicts));
    this.conflicts = conflicts;
  }
}

/** The message of upstream's 409. */
export function conflictMessage(conflicts: readonly Conflict[]): string {
  return `Apply failed with ${conflicts.length} conflicts`;
}

/** The causes of upstream's 409. */
export function conflictCauses(conflicts: readonly Conflict[]): readonly { reason: string; message: string; field: string }[] {
  return conflicts.map(({ manager, field }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${manager}`,
    field,
  }));
}

export class FieldManager {
  readonly #options: FieldManagerOptions;

  constructor(options: FieldManagerOptions) {
    this.#options = options;
  }

  /** What is to be stored by a create, update or patch: `sent` with its `metadata.managedFields`. `live` is undefined for a create. */
  *updated(_live: Json | undefined, sent: Json, _by: WriteBy): Work<Json> {
    void this.#options;
    yield;
    return sent;
  }

  /** What is to be stored by an apply. Throws {@link ApplyConflict}. `live` is undefined if there is no object yet. */
  *applied(live: Json | undefined, config: Json, _by: WriteBy & { readonly force: boolean }): Work<Json> {
    yield;
    return { ...live, ...config };
  }
}
