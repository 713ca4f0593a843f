/** What is wrong with the metadata of an object: 422, with all causes at once. Upstream: the validation of `ObjectMeta`. */
import { faultOfKey, faultOfValue } from '../../selectors/label-text.ts';
import type { FieldCause } from '../definition.ts';
import type { Json } from '../request/json.ts';
import type { Meta } from './metadata.ts';
import { faultOfLabel, faultOfSubdomain, shown, utf8Bytes } from './names.ts';

const MAX_ANNOTATION_BYTES = 262_144;

/** What is wrong with metadata, in any write. */
export function metadataCauses(metadata: Meta): FieldCause[] {
  const causes: FieldCause[] = [];
  const at = (field: string, value: string, expected: string): void =>
    void causes.push({ field, message: `Invalid value: ${shown(value)}: expected ${expected}` });
  for (const [key, value] of Object.entries(metadata.labels ?? {})) {
    const keyFault = faultOfKey(key);
    if (keyFault) at('metadata.labels', key, keyFault.expected);
    const valueFault = faultOfValue(value);
    if (valueFault) at('metadata.labels', value, valueFault.expected);
  }
  let bytes = 0;
  for (const [key, value] of Object.entries(metadata.annotations ?? {})) {
    const fault = faultOfKey(key.toLowerCase());
    if (fault) at('metadata.annotations', key, fault.expected);
    bytes += utf8Bytes(key) + utf8Bytes(value);
  }
  if (bytes > MAX_ANNOTATION_BYTES) {
    causes.push({ field: 'metadata.annotations', message: `Too long: may not be more than ${MAX_ANNOTATION_BYTES} bytes` });
  }
  for (const finalizer of metadata.finalizers ?? []) {
    const fault = faultOfKey(finalizer);
    if (fault) at('metadata.finalizers', finalizer, fault.expected);
  }
  return [...causes, ...ownerCauses(metadata)];
}

/** Upstream: `ValidateOwnerReferences`. */
function ownerCauses({ ownerReferences = [] }: Meta): FieldCause[] {
  const references = ownerReferences as readonly (Json | null)[];
  const causes = references.flatMap((reference, at) =>
    ['apiVersion', 'kind', 'name', 'uid']
      .filter((member) => !reference?.[member])
      .map((member) => ({ field: `metadata.ownerReferences[${at}].${member}`, message: 'Required value: must not be empty' })),
  );
  const controllers = references.filter((reference) => reference?.controller === true);
  if (controllers.length < 2) return causes;
  const which = shown(controllers.map((reference) => String(reference?.name)).join(', '));
  const message = `Invalid value: ${which}: expected one reference with controller set to true`;
  return [...causes, { field: 'metadata.ownerReferences', message }];
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
