/**
 * What is wrong with objects within objects: what has `x-kubernetes-embedded-resource` has a kind and metadata like any other. Upstream:
 * `objectmeta` of apiextensions-apiserver.
 */
import { isContainer, isRecord } from '../../watch/errors.ts';
import { STRIDE, type Work } from '../../watch/fair-queue.ts';
import type { FieldCause } from '../definition.ts';
import type { Json } from '../request/json.ts';
import { ANY_NAME, embeddedMeta, metadataCauses, nameCauses } from '../verbs/metadata.ts';
import { childOf, invalidCause, MAX_CAUSES, requiredCause } from './causes.ts';
import { LABEL_1035 } from './formats.ts';
import type { Structural } from './structural.ts';
import { parts } from './values.ts';

const KIND = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;

/** What is wrong with embedded objects. */
export function* embeddedCauses(tree: Structural, value: unknown, path: string = ''): Work<FieldCause[]> {
  if (!isContainer(value) || !tree.looksInside) return [];
  yield;
  const found = tree.embedded && isRecord(value) ? yield* headCauses(value, path) : [];
  let steps = 0;
  for (const [below, each, where] of parts(tree, value, path)) {
    if (++steps % STRIDE === 0) yield;
    if (isContainer(each) && found.length < MAX_CAUSES) found.push(...(yield* embeddedCauses(below, each, where)));
  }
  return found;
}

/** What is wrong with the kind and metadata of an embedded object. */
export function* headCauses(value: Json, path: string): Work<FieldCause[]> {
  const found: FieldCause[] = [];
  for (const name of ['apiVersion', 'kind'] as const) {
    const at = childOf(path, name);
    const text = value[name];
    if (!Object.hasOwn(value, name)) found.push(requiredCause(at, ''));
    else if (typeof text !== 'string') found.push(invalidCause(at, text, 'must be a string'));
    else if (text === '') found.push(invalidCause(at, text, 'must not be empty'));
    else if (name === 'apiVersion' && text.split('/').length > 2) {
      found.push(invalidCause(at, text, `unexpected GroupVersion string: ${text.slice(0, 300)}`));
    } else if (name === 'kind' && (text.length > 63 || !KIND.test(text.toLowerCase()))) {
      const why = text.length > 63 ? 'must be no more than 63 characters' : LABEL_1035;
      found.push(invalidCause(at, text, `may have mixed case, but should otherwise match: ${why}`));
    }
  }
  const { metadata = null } = value;
  if (metadata !== null) found.push(...(yield* metaCauses(metadata, path)));
  return found;
}

function* metaCauses(metadata: unknown, path: string): Work<FieldCause[]> {
  const read = embeddedMeta(metadata);
  if (typeof read === 'string') return [invalidCause(childOf(path, 'metadata'), metadata, read)];
  yield; // there may be many labels
  const found = [...nameCauses(ANY_NAME, read), ...(yield* metadataCauses(read))];
  return found.map((cause) => ({ ...cause, field: childOf(path, cause.field) }));
}
