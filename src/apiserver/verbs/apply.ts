/**
 * Server-side apply: a configuration has the fields that its manager wants; others are left alone. A missing object is created.
 *
 *     config ---> update with the FieldManager's result --- 404 -----------> create with its result for no object
 *                    ^                                                         |
 *                    '---------------------- 409, it exists by now ------------'
 */
import type { KubernetesObject } from '../../cache/object.ts';
import { inPieces } from '../../watch/fair-queue.ts';
import { badRequest, conflict, hasCode } from '../api-status.ts';
import type { Json } from '../request/json.ts';
import type { ResourceContext } from '../resource-info.ts';
import type { FieldCheck } from '../validation/field-check.ts';
import { type Applying, toApply } from './managed-fields.ts';
import type { Mutable } from './metadata.ts';
import { presented } from './read.ts';
import { createObject, type UpdateTerms, updateObject } from './write.ts';

interface ApplyTerms extends Omit<UpdateTerms, 'make' | 'applied' | 'writer'>, Applying {
  /** The check of the configuration's fields; undefined: they are not checked. */
  readonly fields: FieldCheck | undefined;
  /** Rejects if the client may not create the missing object. */
  readonly mayCreate?: (() => Promise<void>) | undefined;
}

/** How often others may create or delete the object in between. */
const MAX_ATTEMPTS = 8;

/** Applies a configuration. `created`: the object did not exist. */
export async function applyObject(
  context: ResourceContext,
  terms: ApplyTerms,
): Promise<{ readonly object: KubernetesObject; readonly created: boolean }> {
  const { place, row, signal, fields } = terms;
  const apply = toApply(context, terms);
  const make = function* (current?: KubernetesObject): ReturnType<typeof apply> {
    const made = yield* apply(current && (presented(context.info, current) as Mutable));
    fields?.applied();
    return made;
  };
  for (let attempt = 1; ; attempt++) {
    try {
      return { object: await updateObject(context, { ...terms, applied: true, make }), created: false };
    } catch (error) {
      if (row.name !== '' || !hasCode(error, 404, 'NotFound')) throw error;
    }
    const made = await inPieces(make(), { signal });
    checkNew(context, made, terms);
    await terms.mayCreate?.();
    try {
      const created = { ...terms, applied: true, namespace: place.namespace };
      return { object: await createObject(context, withoutVersion(made), created), created: true };
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !hasCode(error, 409, 'AlreadyExists')) throw error;
    }
  }
}

/** Upstream: `patcher.applyPatch` and `checkName`. */
function checkNew({ info }: ResourceContext, made: Json, { place }: ApplyTerms): void {
  const { uid, name } = (made.metadata ?? {}) as Json;
  const [shownUid, shownName] = [uid, name].map((each) => (typeof each === 'string' ? each.slice(0, 300) : ''));
  if (uid) {
    const why = `uid mismatch: the provided object specified uid ${shownUid}, and no existing object was found`;
    throw conflict(info, place.name, why);
  }
  if (name === place.name) return;
  const url = `the name of the object (${shownName || `${place.name} based on URL`})`;
  throw badRequest(
    shownName ? `${url} does not match the name on the URL (${place.name})` : `${url} was undeterminable: name must be provided`,
  );
}

/** Upstream accepts a version for a missing object, and ignores it. */
function withoutVersion(made: Json): Json {
  const { resourceVersion: _, ...metadata } = (made.metadata ?? {}) as Json;
  return { ...made, metadata };
}
