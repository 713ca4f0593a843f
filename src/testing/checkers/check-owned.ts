import { isRecord } from '../../watch/errors.ts';
import { type Finding, type Violation, violation } from './history.ts';

/** A write of one object by a field manager. */
export interface OwnedStep {
  readonly operation: 'Apply' | 'Update';
  readonly manager: string;
  readonly force?: boolean | undefined;
  /** The object before; undefined: there was none. */
  readonly before?: object | undefined;
  /** What was applied, or sent. */
  readonly sent: object;
  /** What was stored; undefined: it was refused. */
  readonly after?: object | undefined;
  /** What the write conflicts with: the managers and fields that the answer names. */
  readonly conflicts?: readonly { readonly manager: string; readonly field: string }[] | undefined;
}

/** The writes of one object, in their order. */
export interface OwnedHistory {
  readonly steps: readonly OwnedStep[];
}

interface Owned {
  readonly id: string;
  readonly manager: string;
  readonly operation: unknown;
  /** The paths of its fields, as the elements of FieldsV1 in JSON. */
  readonly paths: readonly string[];
}

/**
 * **Owned**: what somebody owns is in the object, and has the value that was applied; an apply without force leaves alone what others
 * own, and is refused only for that; a value that changes no longer belongs to its former owners. The checker reads objects and
 * their `managedFields`, but knows no schema: the project's own tests compare the rest with upstream.
 */
export function checkOwned({ steps }: OwnedHistory): Violation | undefined {
  const hollow: Hollow = new Map();
  for (const [at, step] of steps.entries()) {
    const found = step.after ? stored(step, step.after, hollow) : refusedRightly(step);
    if (found) return violation('Owned', { watcher: `${step.manager} in step ${at}`, ...found });
  }
  return undefined;
}

/**
 * By manager, the paths at which its last apply had an empty object or list. Upstream removes it when all its content is
 * pruned, but the manager still owns it.
 */
type Hollow = Map<string, readonly string[]>;

function refusedRightly({ operation, force, before, conflicts = [] }: OwnedStep): Finding | undefined {
  if (conflicts.length === 0) return undefined;
  if (operation === 'Update' || force) return { expected: 'a write', seen: `a conflict at ${conflicts[0]?.field}` };
  const owners = ownersOf(before);
  const stranger = conflicts.find(({ manager }) => !owners.some((owner) => manager.startsWith(JSON.stringify(owner.manager))));
  return stranger && owners.length > 0 ? { expected: 'conflicts with owners', seen: `one with ${stranger.manager}` } : undefined;
}

function stored(step: OwnedStep, after: object, hollow: Hollow): Finding | undefined {
  const { operation, manager, force, before, sent } = step;
  const owners = ownersOf(after);
  const own = owners.find((owner) => owner.operation === 'Apply' && owner.manager === manager);
  if (operation === 'Apply') hollow.set(manager, own?.paths.filter((path) => at(sent, path).some(isEmpty)) ?? []);
  for (const { id, manager: name, operation: by, paths } of owners) {
    const gone = paths.find((path) => at(after, path).length === 0 && !(by === 'Apply' && hollow.get(name)?.includes(path)));
    if (gone) return { expected: 'owned fields in the object', seen: `${id} owns ${gone}` };
  }
  if (operation === 'Apply') {
    const other = own?.paths.find((path) => differs(at(sent, path), at(after, path)));
    if (other) return { expected: 'the value that was applied', seen: `another one at ${other}` };
  }
  for (const { id, manager: name, operation: by, paths } of ownersOf(before)) {
    if (by === operation && name === manager) continue;
    const changed = paths.filter((path) => differs(at(before, path), at(after, path)));
    if (operation === 'Apply' && !force && changed[0]) return { expected: `what ${id} owns`, seen: `a change of ${changed[0]}` };
    const kept = owners.find((owner) => owner.id === id);
    const both = changed.find((path) => kept?.paths.includes(path));
    if (both) return { expected: `a new owner of ${both}`, seen: `it is still that of ${id}` };
  }
  return undefined;
}

const isEmpty = (value: unknown): boolean => typeof value === 'object' && value !== null && Object.keys(value).length === 0;
const isScalar = (value: unknown): boolean => typeof value !== 'object' && value !== undefined;
/** Whether two places have different scalars, if it is certain which these are. */
function differs(one: readonly unknown[], other: readonly unknown[]): boolean {
  const [[left], [right]] = [one, other];
  return one.length === 1 && other.length === 1 && isScalar(left) && isScalar(right) && left !== right;
}

function ownersOf(object: object | undefined): readonly Owned[] {
  const { metadata } = (object ?? {}) as { metadata?: { managedFields?: unknown } };
  const entries = Array.isArray(metadata?.managedFields) ? metadata.managedFields.filter(isRecord) : [];
  return entries.map(({ manager, operation, subresource, apiVersion, fieldsV1 }) => ({
    id: [manager, operation, subresource ?? '', operation === 'Update' ? apiVersion : ''].join(' '),
    manager: String(manager),
    operation,
    paths: pathsOf(fieldsV1, []),
  }));
}

function pathsOf(fields: unknown, above: readonly string[]): readonly string[] {
  if (!isRecord(fields)) return [];
  const elements = Object.keys(fields).filter((element) => element !== '.');
  const isMember = elements.length === 0 || '.' in fields;
  const own = isMember && above.length > 0 ? [JSON.stringify(above)] : [];
  return [...own, ...elements.flatMap((element) => pathsOf(fields[element], [...above, element]))];
}

/** What may be at a path: several items of a list may have the keys that an element names, because some may have more keys. */
function at(object: unknown, path: string): readonly unknown[] {
  let values: readonly unknown[] = [object];
  for (const element of JSON.parse(path) as readonly string[]) values = values.flatMap((value) => below(value, element));
  return values;
}

function below(value: unknown, element: string): readonly unknown[] {
  const text = element.slice(2);
  if (element.startsWith('f:')) return isRecord(value) && Object.hasOwn(value, text) ? [value[text]] : [];
  if (!Array.isArray(value)) return [];
  if (element.startsWith('i:')) return value.slice(Number(text), Number(text) + 1);
  const wanted: unknown = JSON.parse(text);
  return value.filter((item) => (isRecord(wanted) && element.startsWith('k:') ? fits(item, wanted) : item === wanted));
}

/** Whether an item has these keys; a missing key may have a default. */
function fits(item: unknown, keys: Readonly<Record<string, unknown>>): boolean {
  return isRecord(item) && Object.keys(keys).every((key) => !Object.hasOwn(item, key) || item[key] === keys[key]);
}
