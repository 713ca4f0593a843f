/**
 * What is seen at a stretch, without allocating: that something is the same as before, as it mostly is. Of what is large or odd, nothing
 * is said: that is found out by typed.ts, in pieces.
 */
import { isRecord } from '../watch/errors.ts';
import { type FieldSet, fieldElement } from './field-set.ts';
import { handledAs, kindOf, type Type } from './types.ts';

type Members = Readonly<Record<string, unknown>>;

/** The most values that are looked at: about a millisecond. */
const MAX_VALUES = 8_192;
let left = 0;

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Whether two values certainly have the same JSON. */
export function areAlike(one: unknown, other: unknown): boolean {
  left = MAX_VALUES;
  return isAlike(one, other);
}

function isAlike(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (--left < 0 || !isContainer(one) || !isContainer(other) || Array.isArray(one) !== Array.isArray(other)) return false;
  const [names, others] = [Object.keys(one), Object.keys(other)];
  left -= names.length;
  if (names.length !== others.length || left < 0) return false;
  return names.every((name, at) => name === others[at] && isAlike((one as Members)[name], (other as Members)[name]));
}

/**
 * Whether the fields of a value that is of a type are certainly those that FieldsV1 say, but for those that are nobody's: the members
 * of `but`, and all that is in a member of `apart`.
 */
export function hasFields(type: Type, value: unknown, terms: { fields: Members; but: FieldSet; apart: FieldSet }): boolean {
  left = MAX_VALUES;
  const { fields, but, apart } = terms;
  for (const child of apart.children?.values() ?? []) if (!child.isMember) return false;
  return isContainer(value) && hasNode(type, value, { fields, but, apart, isMember: false });
}

/** What is expected of a node. */
interface Node {
  readonly fields: Members | undefined;
  readonly isMember: boolean;
  readonly but: FieldSet | undefined;
  readonly apart?: FieldSet | undefined;
}

function hasNode(type: Type, value: object, { fields, isMember, but, apart }: Node): boolean {
  const kind = handledAs(type, kindOf(type, value));
  const { map, list } = type;
  let count = 0;
  /** Whether one of what is in it is as it should be. */
  const has = (element: string, below: Type | undefined, each: unknown, isOwn: boolean): boolean => {
    if (--left < 0) return false;
    const own = fields?.[element] as Members | undefined;
    if (apart?.has(element)) return own === undefined;
    const nobodys = but?.children?.get(element);
    if (own !== undefined) count++;
    if (below && isContainer(each) && !isLeaf(below, each))
      return hasNode(below, each, { fields: own, isMember: isOwn && !nobodys?.isMember, but: nobodys });
    const isOwned = !nobodys?.isMember;
    return isOwned ? own !== undefined && isNothing(own) : own === undefined;
  };
  if (map && kind === 'map' && isRecord(value)) {
    for (const name in value) {
      const field = map.field(name);
      const each = value[name];
      const isOwn = !field || (isRecord(each) && isNothing(each));
      if (!has(field?.element ?? fieldElement(name), field?.type ?? map.element, each, isOwn)) return false;
    }
  } else if (list && kind === 'list' && Array.isArray(value)) {
    const elements = list.elementsOf(value);
    for (let at = 0; at < elements.length; at++) if (!has(elements[at] as string, list.element, value[at], true)) return false;
  } else return false;
  if (fields === undefined) return count === 0 && !isMember;
  let size = 0;
  for (const _ in fields) size++;
  if (count === 0) return isMember && size === 0;
  return '.' in fields === isMember && size === count + Number(isMember);
}

/** Whether a value that is an object or a list is owned as a whole. */
function isLeaf(type: Type, value: object): boolean {
  const kind = handledAs(type, kindOf(type, value));
  return kind === 'scalar' || (kind === 'map' ? type.map : type.list)?.isAtomic === true;
}

function isNothing(value: Members): boolean {
  for (const _ in value) return false;
  return true;
}
