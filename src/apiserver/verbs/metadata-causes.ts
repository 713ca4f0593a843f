/** What is wrong with the metadata of an object: 422, with all causes at once. Upstream: the validation of `ObjectMeta`. */
import { faultOfKey, faultOfValue } from '../../selectors/syntax.ts';
import type { Work } from '../../watch/fair-queue.ts';
import type { FieldCause } from '../definition.ts';
import type { Json } from '../request/json.ts';
import type { Meta } from './metadata.ts';
import { faultOfLabel, faultOfSubdomain, shown, utf8Bytes } from './names.ts';

/** The most bytes of all labels together, and of all annotations. Upstream: `TotalAnnotationSizeLimitB`. */
const MAX_MAP_BYTES = 262_144;
/** The most labels, and annotations. */
const MAX_MAP_ITEMS = 4_096;
/** Of which the check takes less than a millisecond. */
const FEW = 512;
const MAX_FINALIZERS = 50_000;
const MAX_OWNERS = 20_000;
/** Of further causes, an answer has the number, but not the text. */
const MAX_TEXTS = 100;

/** Collects causes. There may be a million. */
class Causes {
  readonly all: FieldCause[] = [];

  add(field: string, message: () => string): void {
    this.all.push(this.all.length < MAX_TEXTS ? { field, message: message() } : (this.all[0] as FieldCause));
  }

  invalid(field: string, value: string, expected: string | undefined): void {
    if (expected !== undefined) this.add(field, () => `Invalid value: ${shown(value)}: expected ${expected}`);
  }

  /** Whether a list or map is small enough to be looked at. */
  fits(field: string, count: number, most: number): boolean {
    if (count > most) this.add(field, () => `Too many: ${count}: must have at most ${most} items`);
    return count <= most;
  }
}

/** What is wrong with metadata, in any write. */
export function* metadataCauses(metadata: Meta): Work<FieldCause[]> {
  const causes = new Causes();
  yield* checkMap(causes, { field: 'metadata.labels', map: metadata.labels, fault: labelFault });
  yield* checkMap(causes, { field: 'metadata.annotations', map: metadata.annotations, fault: annotationFault });
  const { finalizers = [] } = metadata;
  if (causes.fits('metadata.finalizers', finalizers.length, MAX_FINALIZERS)) {
    for (const [at, finalizer] of finalizers.entries()) {
      causes.invalid('metadata.finalizers', finalizer, faultOfKey(finalizer)?.expected);
      if (at % FEW === FEW - 1) yield;
    }
  }
  yield* checkOwners(causes, metadata);
  return causes.all;
}

interface CheckedMap {
  readonly field: string;
  readonly map: Readonly<Record<string, string>> | undefined;
  readonly fault: (causes: Causes, key: string, value: string) => void;
}

function* checkMap(causes: Causes, { field, map = {}, fault }: CheckedMap): Work<void> {
  const keys = Object.keys(map);
  if (keys.length > FEW) yield;
  if (!causes.fits(field, keys.length, MAX_MAP_ITEMS)) return;
  let bytes = 0;
  for (const [at, key] of keys.entries()) {
    if (at % FEW === FEW - 1) yield;
    const value = map[key] as string;
    fault(causes, key, value);
    bytes += utf8Bytes(key) + utf8Bytes(value);
  }
  if (bytes > MAX_MAP_BYTES) causes.add(field, () => `Too long: may not be more than ${MAX_MAP_BYTES} bytes`);
}

function labelFault(causes: Causes, key: string, value: string): void {
  causes.invalid('metadata.labels', key, faultOfKey(key)?.expected);
  causes.invalid('metadata.labels', value, faultOfValue(value)?.expected);
}

function annotationFault(causes: Causes, key: string): void {
  causes.invalid('metadata.annotations', key, faultOfKey(key.toLowerCase())?.expected);
}

const OWNER_MEMBERS = ['apiVersion', 'kind', 'name', 'uid'] as const;

/** Upstream: `ValidateOwnerReferences`. */
function* checkOwners(causes: Causes, { ownerReferences = [] }: Meta): Work<void> {
  const references = ownerReferences as readonly (Json | null)[];
  if (!causes.fits('metadata.ownerReferences', references.length, MAX_OWNERS)) return;
  for (const [at, reference] of references.entries()) {
    if (at % FEW === FEW - 1) yield;
    for (const member of OWNER_MEMBERS) {
      if (reference?.[member]) continue;
      causes.add(`metadata.ownerReferences[${at}].${member}`, () => 'Required value: must not be empty');
    }
  }
  const controllers = references.filter((reference) => reference?.controller === true);
  if (controllers.length < 2) return;
  const which = shown(
    controllers
      .slice(0, MAX_TEXTS)
      .map((reference) => String(reference?.name))
      .join(', '),
  );
  const field = 'metadata.ownerReferences';
  causes.add(field, () => `Invalid value: ${which}: expected one reference with controller set to true`);
}

/** What is wrong with the name of an object, and with that of its namespace. */
export function nameCauses(name: string, namespace: string | undefined): FieldCause[] {
  const named = faultOfSubdomain(name);
  const spaced = namespace === undefined ? undefined : faultOfLabel(namespace);
  return [
    ...(named === undefined ? [] : [{ field: 'metadata.name', message: named }]),
    ...(spaced === undefined ? [] : [{ field: 'metadata.namespace', message: spaced }]),
  ];
}

/** What an update may not change. */
export function updateCauses(sent: Meta, old: Meta, next: Meta): FieldCause[] {
  const causes: FieldCause[] = [];
  // Other times are ignored: those in a file may be of another object. Upstream: `BeforeUpdate`.
  const { deletionTimestamp } = sent;
  if (deletionTimestamp !== undefined && old.deletionTimestamp === undefined) {
    const message = `Invalid value: ${shown(String(deletionTimestamp))}: field is immutable`;
    causes.push({ field: 'metadata.deletionTimestamp', message });
  }
  if (old.deletionTimestamp === undefined) return causes;
  const before = new Set(old.finalizers); // there may be a hundred thousand of each
  const added = (next.finalizers ?? []).filter((each) => !before.has(each));
  if (added.length > 0) {
    const why = 'no new finalizers can be added if the object is being deleted, found new finalizers';
    causes.push({ field: 'metadata.finalizers', message: `Forbidden: ${why} ${JSON.stringify(added)}` });
  }
  return causes;
}
