/**
 * The entry point `watchmux/apply`: server-side apply without a server, for operators and their tests. It runs anywhere.
 *
 *     live, config, manager -- applyConfiguration --> the object as an API server would store it, with its managedFields
 *     object, manager -- extractManaged --> the part that the manager has applied
 */
import { checkOptions, checkText, invalid, isRecord, toJson, WatchError } from '../watch/errors.ts';
import { atOnce } from '../watch/fair-queue.ts';
import { FieldManager } from './field-manager.ts';
import { type JsonSchema, TypedError } from './types.ts';

export { ApplyConflict, type Conflict } from './conflicts.ts';
export type { JsonSchema } from './types.ts';

/** Options of {@link extractManaged}. */
export interface ExtractOptions {
  /**
   * The schema of the kind, as in a CustomResourceDefinition. It says which lists are sets or maps, and which parts are owned as
   * a whole. Default: none, so objects are owned by field, and lists as a whole.
   */
  readonly schema?: JsonSchema | undefined;
  /** The subresource that was applied, such as `status`. Default: the object itself. */
  readonly subresource?: string | undefined;
}

/** Options of {@link applyConfiguration}. */
export interface ApplyOptions extends ExtractOptions {
  /** The name of the field manager. */
  readonly manager: string;
  /** Whether to take over fields for which other managers have set other values, instead of throwing. Default: false. */
  readonly force?: boolean | undefined;
  /** The time in `managedFields`. Default: now. */
  readonly time?: Date | undefined;
  /**
   * The schemas of the kind's other versions, by apiVersion; owners in versions that are missing are forgotten. Default: none.
   */
  readonly versions?: Readonly<Record<string, JsonSchema | undefined>> | undefined;
}

const EXTRACT_OPTIONS = ['schema', 'subresource'] as const;
const APPLY_OPTIONS = [...EXTRACT_OPTIONS, 'manager', 'force', 'time', 'versions'] as const;

/**
 * Applies a configuration to an object, as the API server does for `PATCH` with `application/apply-patch+yaml`. Returns the
 * object that would be stored, with its `metadata.managedFields`; `live` and `config` are not changed. What the manager applied
 * before but no longer does is removed, unless somebody else owns it. `live` is undefined if there is no object yet.
 *
 * Throws {@link ApplyConflict} if others own fields that would change, unless `force`; REFUSED with the API server's code and message
 * if the configuration cannot be applied, such as a field that is not in the schema; INVALID_ARGUMENT for wrong arguments.
 * Upstream: `managedfields.FieldManager.Apply`.
 */
export function applyConfiguration<T extends object>(live: T | undefined, config: object, options: ApplyOptions): T {
  const { manager, force = false, time = new Date(), schema, subresource = '', versions } = checkOptions(options, APPLY_OPTIONS);
  const given = sentOf('config', config);
  const apiVersion = checkText('config.apiVersion', given.apiVersion);
  if (checkText('options.manager', manager) === '') throw invalid('options.manager', manager, 'a name');
  if (!(time instanceof Date) || Number.isNaN(time.getTime())) throw invalid('options.time', time, 'a date');
  const before = live === undefined ? undefined : sentOf('live', live);
  if (before && before.apiVersion !== apiVersion) throw invalid('live.apiVersion', before.apiVersion, JSON.stringify(apiVersion));
  const by = { manager, subresource: checkText('options.subresource', subresource), apiVersion, time: toTime(time), force };
  const fields = new FieldManager({ schema: schemaOf(schema), apiVersion, versions });
  return atOnce(fields.applied(before, given, by)) as T;
}

/**
 * The part of an object that a manager has applied: its last configuration, except what others have taken over since, with the
 * object's identity, so that it can be changed and applied again. Undefined if the manager owns nothing by apply.
 *
 * Throws INVALID_ARGUMENT for wrong arguments, or an object that does not fit the schema. Upstream: `managedfields.ExtractInto`.
 */
export function extractManaged<T extends object>(object: T, manager: string, options: ExtractOptions = {}): T | undefined {
  const { schema, subresource = '' } = checkOptions(options, EXTRACT_OPTIONS);
  const given = sentOf('object', object);
  const apiVersion = checkText('object.apiVersion', given.apiVersion);
  checkText('options.subresource', subresource);
  const fields = new FieldManager({ schema: schemaOf(schema), apiVersion });
  try {
    const found = atOnce(fields.extracted(given, checkText('manager', manager), subresource));
    if (!found) return undefined;
    const { name, namespace } = isRecord(given.metadata) ? given.metadata : {};
    const identity = { ...(name !== undefined && { name }), ...(namespace !== undefined && { namespace }) };
    const metadata = { ...(isRecord(found.metadata) && found.metadata), ...identity };
    return { apiVersion, kind: given.kind, ...found, metadata } as unknown as T;
  } catch (error) {
    if (!(error instanceof TypedError)) throw error;
    throw new WatchError('INVALID_ARGUMENT', `object: ${error.message}`, { cause: error });
  }
}

const toTime = (time: Date): string => `${time.toISOString().slice(0, 19)}Z`;

function objectOf(name: string, value: unknown): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) throw invalid(name, value, 'an object');
  return value;
}

/** An object as a server would get it: JSON has no undefined members, which nobody can own. */
function sentOf(name: string, value: object): Readonly<Record<string, unknown>> {
  return objectOf(name, JSON.parse(toJson(name, objectOf(name, value))));
}

function schemaOf(schema: JsonSchema | undefined): JsonSchema | undefined {
  return schema === undefined ? undefined : objectOf('options.schema', schema);
}
