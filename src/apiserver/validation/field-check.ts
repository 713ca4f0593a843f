/**
 * Reports fields of a write that are unknown, or were sent twice. Upstream: `fieldValidation` of `endpoints/handlers`, whose
 * words these are.
 *
 *     body ----> sent twice --.
 *                             +--> Strict: 400, or 422 for a patch's result    Warn: reported, and stored
 *     object --> unknown -----'
 */
import { FIELD_VALIDATIONS, type FieldValidation } from '../../cache/resource-client.ts';
import type { Work } from '../../watch/fair-queue.ts';
import { badRequest, invalidObject, invalidOptions } from '../api-status.ts';
import { schemaOf } from '../openapi/schemas.ts';
import type { FieldPaths } from '../request/field-paths.ts';
import type { SeenKind } from '../subresources.ts';
import { isOfKind } from '../verbs/metadata.ts';
import { shown } from '../verbs/names.ts';
import { type KnownFields, toKnownFields, unknownFields } from './known-fields.ts';
import { withPatterns } from './patterns.ts';

/** Reads the parameter of a write. Throws 422, which names the `options` of the verb. */
export function readFieldValidation(text: string, options: string): FieldValidation {
  if (text === '') return 'Warn';
  const found = FIELD_VALIDATIONS.find((each) => each === text);
  if (found !== undefined) return found;
  const supported = ['', ...FIELD_VALIDATIONS].map((each) => JSON.stringify(each)).join(', ');
  const message = `Unsupported value: ${shown(text)}: supported values: ${supported}`;
  throw invalidOptions(options, [{ field: 'fieldValidation', message }]);
}

/** What is wrong with the fields of a write. */
export interface FieldFaults {
  readonly texts: readonly string[];
  /** How many more there are. */
  readonly more: number;
}

/** Checks the fields of one write. */
export class FieldCheck {
  readonly #kind: SeenKind;
  readonly #known: KnownFields;
  readonly #warn: ((faults: FieldFaults) => void) | undefined;
  #twice: FieldPaths | undefined;

  private constructor(kind: SeenKind, known: KnownFields, warn: ((faults: FieldFaults) => void) | undefined) {
    this.#kind = kind;
    this.#known = known;
    this.#warn = warn;
  }

  /** `warn` is called with what is wrong after each check. Without it, anything wrong is refused. */
  static async of(seen: SeenKind, warn?: (faults: FieldFaults) => void): Promise<FieldCheck> {
    const known = await withPatterns(() => knownFieldsOf(seen)).catch((cause: unknown) => {
      // A schema that cannot be read is the server's error, not that of a client that writes an object.
      throw new Error((cause as Error).message, { cause });
    });
    return new FieldCheck(seen, known, warn);
  }

  /** Called by the reader of the body with the members that occur twice. */
  readonly again = (duplicates: FieldPaths): void => {
    this.#twice = duplicates;
  };

  /** Checks an object that was sent. Throws 400. An object of another kind is refused by its reader. */
  *object(sent: unknown): Work<void> {
    const { kind, version } = this.#kind;
    if (!isOfKind(this.#kind, sent)) return;
    const found: Found[] = [
      ['duplicate', this.#twice?.told, this.#twice?.more],
      ['unknown', ...sorted(yield* unknownFields(this.#known, sent))],
    ];
    this.#tell(found, (why) => badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: ${why}`));
  }

  /**
   * Checks the result of a patch. Fields that were unknown before are not reported: they are kept here, and a patch of something
   * else must not fail because of them. Throws 422, as upstream.
   */
  *patched(patch: unknown, made: object, current: object): Work<void> {
    const of = Array.isArray(patch) ? 'json patch ' : '';
    const found: Found[] = [
      [`${of}duplicate`, this.#twice?.told, this.#twice?.more],
      ...(of ? [[`${of}unknown`, ...sorted(yield* unknownFields(OPERATIONS, patch))] as const] : []),
      ['unknown', ...sorted(yield* unknownFields(this.#known, made, current))],
    ];
    this.#tell(found, (why) => invalidPatch(made, why));
  }

  #tell(found: readonly Found[], refusal: (why: string) => Error): void {
    const texts = found.flatMap(([what, paths = []]) => paths.map((path) => `${what} field ${shown(path)}`));
    const more = found.reduce((sum, [, , each = 0]) => sum + each, 0);
    if (this.#warn !== undefined) this.#warn({ texts, more });
    else if (texts.length > 0) {
      throw refusal(`strict decoding error: ${[...texts, ...(more > 0 ? [`and ${more} more`] : [])].join(', ')}`);
    }
  }
}

/** What is wrong with fields, with which, and with how many more. */
type Found = readonly [what: string, paths?: readonly string[] | undefined, more?: number | undefined];

/** Sorted, with those of the metadata first. */
function sorted({ told, more }: FieldPaths): readonly [readonly string[], number] {
  const rank = (path: string): number => (path.startsWith('metadata.') ? 0 : 1);
  return [told.sort((one, other) => rank(one) - rank(other) || (one < other ? -1 : 1)), more];
}

/** 422: what is wrong with the result of a patch, which has no name yet. */
export function invalidPatch(made: object, why: string): Error {
  return invalidObject(NOTHING, '', [{ field: 'patch', message: `Invalid value: ${shown(JSON.stringify(made))}: ${why}` }]);
}

const NOTHING = { group: '', plural: '', kind: '', resourceName: '', kindName: '' } as const;

/** The fields of the operations of a JSON patch. */
const OPERATIONS = toKnownFields({ items: { properties: { op: {}, path: {}, from: {}, value: {} } } });

const knownFields: WeakMap<SeenKind, KnownFields> = new WeakMap();

/** The fields that a kind has by its schema, as `kubectl explain` shows them. */
function knownFieldsOf(kind: SeenKind): KnownFields {
  const known = knownFields.get(kind) ?? toKnownFields(schemaOf(kind));
  knownFields.set(kind, known);
  return known;
}
