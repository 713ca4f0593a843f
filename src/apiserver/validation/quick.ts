/**
 * Whether an object is valid, without saying what is wrong: one function for each place of a schema, made when first needed,
 * which hardly allocates and never yields. An object that it does not accept is checked again by values.ts, which says why.
 *
 * It gives up on objects of many parts: these get the slower check, which can be interrupted.
 */

import { Recent } from '../../storage/shared.ts';
import { getOrMake, isContainer, isRecord } from '../../watch/errors.ts';
import { atOnce } from '../../watch/fair-queue.ts';
import { headCauses } from './embedded.ts';
import { formatCheck } from './formats.ts';
import { toPattern } from './patterns.ts';
import { isPartOfStored, isTextFormat, type Structural } from './structural.ts';
import { isMultiple, isSame, keyOfItem, lengthOf, mapKeys } from './values.ts';

type Accepts = (value: unknown) => boolean;

/** The most values that are checked: about a millisecond. */
const MAX_VALUES = 8_192;

/** The check of a label takes as long as that of so many values. */
const VALUES_OF_LABEL = 4;

let left = 0;
const made: WeakMap<Structural, Accepts> = new WeakMap();

/** Parts of stored objects that have been accepted in a place. They are never changed. */
const accepted: Recent<Structural> = new Recent();
/** How many values make a part worth remembering. */
const MANY = 16;

/** Whether an object certainly fits, with the sets, maps and objects in it. Rules are not checked. */
export function fitsQuickly(tree: Structural, object: unknown): boolean {
  left = MAX_VALUES;
  return acceptsOf(tree)(object) && left >= 0;
}

function acceptsOf(tree: Structural): Accepts {
  return getOrMake(made, tree, () => toAccepts(tree));
}

function toAccepts(tree: Structural): Accepts {
  const { types, format, nullable, source } = tree;
  const has = (type: string): boolean => types.length === 0 || types.includes(type);
  // Oddities of types and formats are left to the slower check.
  const [texts, wholes, numbers, flags] = [has('string'), has('integer') || has('number'), has('number'), has('boolean')];
  const isOdd = types.length === 0 && format !== '';
  const text = texts ? textOf(tree) : undefined;
  const number = wholes ? numberOf(tree) : undefined;
  const list = has('array') ? listOf(tree) : undefined;
  const object = has('object') ? objectOf(tree) : undefined;
  const values = Array.isArray(source.enum) && source.enum.length > 0 ? (source.enum as readonly unknown[]) : undefined;
  const logic = tree.isPlain ? undefined : logicOf(tree);
  const isNull = types.length === 0 || nullable || types.includes('null');
  return (value) => {
    if (--left < 0 || isOdd) return false;
    if (value === null) return isNull && values === undefined;
    if (values !== undefined && !values.includes(value) && !values.some((each) => isSame(each, value))) return false;
    if (logic !== undefined && !logic(value)) return false;
    switch (typeof value) {
      case 'string':
        return text?.(value) === true;
      case 'number':
        return (Number.isSafeInteger(value) ? wholes : numbers) && number?.(value) === true;
      case 'boolean':
        return flags;
      default: {
        if (accepted.get(value as object) === tree) return true;
        const before = left;
        const isRight = (Array.isArray(value) ? list?.(value) : object?.(value as Record<string, unknown>)) === true;
        if (isRight && before - left > MANY && isPartOfStored(value as object)) accepted.set(value as object, tree);
        return isRight;
      }
    }
  };
}

function textOf({ source, format }: Structural): (value: string) => boolean {
  const { maxLength, minLength, pattern } = source;
  const most = typeof maxLength === 'number' ? maxLength : undefined;
  const least = typeof minLength === 'number' ? minLength : undefined;
  const form = typeof pattern === 'string' && pattern !== '' ? pattern : undefined;
  const isFormatted = isTextFormat(format) ? formatCheck(format) : undefined;
  return (value) => {
    if (most !== undefined && value.length > most && lengthOf(value) > most) return false;
    if (least !== undefined && lengthOf(value) < least) return false;
    // A long text is left to the slower check, which can refuse it.
    if (form !== undefined && (value.length > MAX_VALUES || !toPattern(form).test(value))) return false;
    return isFormatted === undefined || (value.length <= MAX_VALUES && isFormatted(value));
  };
}

function numberOf({ source, types, format }: Structural): (value: number) => boolean {
  const { multipleOf, maximum, minimum, exclusiveMaximum, exclusiveMinimum } = source;
  const isBounded = [multipleOf, maximum, minimum, exclusiveMaximum, exclusiveMinimum].some((each) => each !== undefined);
  const isInt32 = types.length === 1 && types[0] === 'integer' && format === 'int32';
  const isFloat = types.length === 1 && types[0] === 'number' && format === 'float';
  if (!isBounded) return (value) => !isFloat && (!isInt32 || (value | 0) === value);
  const number = (bound: unknown): number | undefined => (typeof bound === 'number' ? bound : undefined);
  const [factor, most, least] = [number(multipleOf), number(maximum), number(minimum)];
  const isSimple = [factor, most, least].every((each) => each === undefined || ((each | 0) === each && each !== 0) || each === 0);
  const isMarked = typeof exclusiveMaximum === 'number' || typeof exclusiveMinimum === 'number' || isFloat || (factor ?? 1) <= 0;
  if (!isSimple || isMarked) return () => false;
  const [isBelow, isAbove] = [exclusiveMaximum === true, exclusiveMinimum === true];
  return (value) => {
    if (isInt32 && (value | 0) !== value) return false;
    if (most !== undefined && (isBelow ? value >= most : value > most)) return false;
    if (least !== undefined && (isAbove ? value <= least : value < least)) return false;
    return factor === undefined || isMultiple(value, factor);
  };
}

function listOf({ source, items }: Structural): (list: readonly unknown[]) => boolean {
  const { minItems, maxItems, uniqueItems } = source;
  const [least, most] = [
    typeof minItems === 'number' ? minItems : 0,
    typeof maxItems === 'number' ? maxItems : Number.POSITIVE_INFINITY,
  ];
  const type = source['x-kubernetes-list-type'];
  const areApart = type === 'set' ? isSet : type === 'map' ? isMapOf(mapKeys(source)) : undefined;
  let accepts: Accepts | undefined;
  return (list) => {
    if (list.length < least || list.length > most || (uniqueItems === true && list.length > 1)) return false;
    if (items !== undefined) {
      accepts ??= acceptsOf(items);
      for (let at = 0; at < list.length; at++) if (!accepts(list[at])) return false;
    }
    return areApart === undefined || (list.length <= MAX_VALUES && areApart(list));
  };
}

/** Items that are objects or lists may differ only in the order of members, which takes longer to check. */
const isSet = (list: readonly unknown[]): boolean =>
  list.length < 2 || (list.every((each) => each === null || typeof each !== 'object') && new Set(list).size === list.length);

function isMapOf(names: readonly string[]): (list: readonly unknown[]) => boolean {
  const [first = '', ...others] = names;
  const keyOf = (item: unknown): string | undefined => {
    const own = others.length === 0 && isRecord(item) && Object.hasOwn(item, first) ? item[first] : undefined;
    return typeof own === 'string' ? own : keyOfItem(names, item);
  };
  return (list) => {
    if (list.length < 2) return list.every(isRecord);
    const keys = new Set<string>();
    for (const each of list) {
      const key = keyOf(each);
      if (key === undefined || keys.has(key)) return false;
      keys.add(key);
    }
    return true;
  };
}

/** Whether the head of an embedded object is valid; one that takes long to check is left to the slower check. */
function hasHead(object: Record<string, unknown>): boolean {
  const { metadata } = object;
  for (const part of Object.values(isRecord(metadata) ? metadata : {})) {
    if (isContainer(part)) left -= VALUES_OF_LABEL * Object.keys(part).length;
  }
  if (left < 0) return false;
  return atOnce(headCauses(object, '')).length === 0;
}

function objectOf({
  source,
  properties,
  additional,
  required,
  embedded,
}: Structural): (object: Record<string, unknown>) => boolean {
  const { minProperties, maxProperties } = source;
  const isCounted = typeof minProperties === 'number' || typeof maxProperties === 'number';
  const [least, most] = [Number(minProperties ?? 0), Number(maxProperties ?? Number.POSITIVE_INFINITY)];
  const members = new Map<string, Accepts>();
  let others: Accepts | undefined;
  return (object) => {
    for (const name of required) if (!Object.hasOwn(object, name)) return false;
    if (embedded && !hasHead(object)) return false;
    let count = 0;
    // The fastest way to read all members. Inherited ones are left to the slower check.
    for (const name in object) {
      count++;
      let accepts = members.get(name);
      if (accepts === undefined) {
        const known = properties?.get(name);
        if (known !== undefined) {
          accepts = acceptsOf(known);
          members.set(name, accepts);
        } else if (additional === false || --left < 0) return false;
        else if (typeof additional === 'object') {
          others ??= acceptsOf(additional);
          accepts = others;
        } else continue;
      }
      if (!accepts(object[name])) return false;
    }
    return !isCounted || (count >= least && count <= most);
  };
}

function logicOf({ allOf, anyOf, oneOf, not }: Structural): Accepts {
  /** Nothing passes here where the schema has rare keywords, so that the slower check decides. */
  if (not !== undefined || oneOf.length > 0) return () => false;
  const [every, some] = [allOf.map(acceptsOf), anyOf.map(acceptsOf)];
  return (value) => {
    for (const accepts of every) if (!accepts(value)) return false;
    return some.length === 0 || some.some((accepts) => accepts(value));
  };
}
