/**
 * Quick checks in one go, without allocation, that something is the same as before, as it usually is. Large or unusual values are
 * left to typed.ts, which works in pieces.
 */
import { put } from '../storage/json.ts';
import { Recent } from '../storage/shared.ts';
import { isContainer, isRecord } from '../watch/errors.ts';
import { type FieldSet, fieldElement, isNothing } from './field-set.ts';
import type { KnownFields } from './managers.ts';
import type { Type } from './types.ts';

type Members = Readonly<Record<string, unknown>>;

/** The most values that are checked: about a millisecond. */
const MAX_VALUES = 8_192;
let left = 0;

/** What is known about parts of stored objects, which never change. */
export class StoredParts {
  /** The types of parts that have enough values; items of their lists occur once. */
  readonly types: Recent<Type> = new Recent();
  /** The FieldsV1 of such a part. */
  readonly fields: Recent<unknown> = new Recent();
  /** FieldsV1 that have been read. */
  readonly owners: KnownFields = new Recent();
  readonly likened: typeof likened = likened;

  hasFields(type: Type, value: unknown, terms: Omit<Terms, 'known'>): boolean {
    return hasFields(type, value, { ...terms, known: this });
  }
}

/**
 * A value whose parts are replaced by those of another one where their JSON is equal, so that later code recognises them
 * immediately as the same.
 */
export function likened(one: unknown, other: unknown): unknown {
  left = MAX_VALUES;
  return likenedTo(one, other);
}

function likenedTo(one: unknown, other: unknown): unknown {
  if (one === other || --left < 0 || !isContainer(one) || !isContainer(other)) return other;
  return Array.isArray(other) ? listLike(one, other) : Array.isArray(one) ? other : mapLike(one as Members, other as Members);
}

function listLike(one: object, other: readonly unknown[]): unknown {
  if (!Array.isArray(one)) return other;
  let isSame = one.length === other.length;
  let made: unknown[] | undefined;
  for (let at = 0; at < other.length && left >= 0; at++) {
    const each = likenedTo(one[at], other[at]);
    if (each !== one[at]) isSame = false;
    if (each === other[at]) continue;
    made ??= [...other];
    made[at] = each;
  }
  return isSame && left >= 0 ? one : (made ?? other);
}

function mapLike(one: Members, other: Members): unknown {
  const names = Object.keys(one);
  left -= names.length;
  let at = 0;
  let isSame = true;
  let alike: Record<string, unknown> | undefined;
  for (const name in other) {
    // The others are only counted, as copying an object with many members takes long.
    if (--left < -MAX_VALUES) return other;
    if (left < 0) continue;
    if (name !== names[at++]) isSame = false;
    const before = Object.hasOwn(one, name) ? one[name] : undefined;
    const each = likenedTo(before, other[name]);
    if (each !== before) isSame = false;
    if (each === other[name]) continue;
    alike ??= {};
    put(alike, name, each);
  }
  if (isSame && at === names.length && left >= 0) return one;
  return alike ? { ...other, ...alike } : other;
}

/**
 * Whether the fields of a value of a type are certainly those in FieldsV1, apart from those that nobody owns: the members of
 * `but`, and everything in a member of `apart`.
 */
function hasFields(type: Type, value: unknown, terms: Terms): boolean {
  left = MAX_VALUES;
  const { fields, but, apart } = terms;
  known = terms.known;
  for (const child of apart.children?.values() ?? []) if (!child.isMember) return false;
  return isContainer(value) && hasNode(type, value, { fields, but, apart, isMember: false });
}

interface Terms {
  readonly fields: Members;
  readonly but: FieldSet;
  readonly apart: FieldSet;
  readonly known: StoredParts;
}

let known: StoredParts;

/** The expectations of a node. */
interface Node {
  readonly fields: Members | undefined;
  readonly isMember: boolean;
  readonly but: FieldSet | undefined;
  readonly apart?: FieldSet | undefined;
}

function hasNode(type: Type, value: object, { fields, isMember, but, apart }: Node): boolean {
  const { map, list } = type;
  let count = 0;
  /** Whether one child is as expected. */
  const has = (element: string, below: Type | undefined, each: unknown, isOwn: boolean): boolean => {
    if (--left < 0) return false;
    const own = fields?.[element] as Members | undefined;
    if (apart?.has(element)) return own === undefined;
    const nobodys = but?.children?.get(element);
    if (own !== undefined) count++;
    if (below && isContainer(each) && !(Array.isArray(each) ? below.list : below.map)?.isAtomic) {
      if (own !== undefined && known.fields.get(each) === own) return true;
      const isSame = hasNode(below, each, { fields: own, isMember: isOwn && !nobodys?.isMember, but: nobodys });
      if (isSame && own && !nobodys && known.types.get(each) === below) known.fields.set(each, own);
      return isSame;
    }
    const isOwned = !nobodys?.isMember;
    return isOwned ? own !== undefined && isNothing(own) : own === undefined;
  };
  if (map && isRecord(value)) {
    for (const name in value) {
      const field = map.field(name);
      const each = value[name];
      const isOwn = !field || (isRecord(each) && isNothing(each));
      if (!has(field?.element ?? fieldElement(name), field?.type ?? map.element, each, isOwn)) return false;
    }
  } else if (list && Array.isArray(value)) {
    const elements = list.elementsOf(value);
    for (let at = 0; at < elements.length; at++) if (!has(elements[at] as string, list.element, value[at], true)) return false;
  } else return false;
  if (fields === undefined) return !isMember;
  let size = 0;
  for (const _ in fields) size++;
  if (count === 0) return isMember && size === 0;
  return '.' in fields === isMember && size === count + Number(isMember);
}
