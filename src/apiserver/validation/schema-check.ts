/**
 * Finds what is wrong with a schema before anything is checked against it: a misspelt keyword checks nothing, silently.
 *
 * A schema may have keywords that only other tools know, so an unknown one is refused only if it resembles a known one.
 */
import { distance, invalid, WatchError } from '../../watch/errors.ts';
import type { JsonSchema } from '../definition.ts';

/** Keywords with schemas as members, keywords with schemas as list elements, and keywords that are schemas themselves. */
const NAMED = ['properties', 'patternProperties', 'definitions', '$defs', 'dependentSchemas'] as const;
const LISTED = ['allOf', 'anyOf', 'oneOf', 'prefixItems'] as const;
const SINGLE = [
  ...(['items', 'additionalItems', 'unevaluatedItems', 'contains', 'not', 'if', 'then', 'else'] as const),
  ...(['additionalProperties', 'unevaluatedProperties', 'propertyNames', 'contentSchema'] as const),
] as const;

/** The keywords of JSON Schema, from draft 4 to 2020-12, and of OpenAPI v3. */
const KEYWORDS: readonly string[] = [
  ...NAMED,
  ...LISTED,
  ...SINGLE,
  ...['$id', 'id', '$schema', '$vocabulary', '$comment', '$ref', '$anchor', '$dynamicRef', '$dynamicAnchor'],
  ...['$recursiveRef', '$recursiveAnchor', 'title', 'description', 'default', 'deprecated', 'readOnly', 'writeOnly'],
  ...['example', 'examples', 'externalDocs', 'discriminator', 'xml', 'nullable', 'type', 'format', 'enum', 'const'],
  ...['multipleOf', 'maximum', 'exclusiveMaximum', 'minimum', 'exclusiveMinimum', 'maxLength', 'minLength', 'pattern'],
  ...['maxItems', 'minItems', 'uniqueItems', 'maxContains', 'minContains', 'maxProperties', 'minProperties', 'required'],
  ...['dependentRequired', 'dependencies', 'contentEncoding', 'contentMediaType'],
];

/**
 * Checks a schema of objects.
 *
 * @throws {WatchError} INVALID_ARGUMENT that names the place.
 */
export function checkSchema(name: string, schema: JsonSchema): void {
  const { type = 'object' } = schema;
  if (type !== 'object') throw invalid(`${name}.type`, type, '"object", as what is served are objects');
  check(name, schema);
}

function check(name: string, schema: unknown): void {
  if (typeof schema === 'boolean') return;
  if (!isObject(schema)) throw invalid(name, schema, 'a JSON schema, as an object');
  for (const keyword of Object.keys(schema)) checkKeyword(name, keyword);
  for (const keyword of NAMED) {
    const named = schema[keyword];
    if (named === undefined) continue;
    if (!isObject(named)) throw invalid(`${name}.${keyword}`, named, 'an object of schemas');
    for (const [each, below] of Object.entries(named)) check(`${name}.${keyword}.${each}`, below);
  }
  for (const keyword of LISTED) {
    const listed = schema[keyword];
    if (listed === undefined) continue;
    if (!Array.isArray(listed)) throw invalid(`${name}.${keyword}`, listed, 'an array of schemas');
    for (const [at, below] of listed.entries()) check(`${name}.${keyword}[${at}]`, below);
  }
  for (const keyword of SINGLE) {
    const below = schema[keyword];
    // Before 2020, `items` could be a list.
    if (below !== undefined && !(keyword === 'items' && Array.isArray(below))) check(`${name}.${keyword}`, below);
  }
}

function checkKeyword(name: string, keyword: string): void {
  if (KEYWORDS.includes(keyword) || keyword.startsWith('x-')) return;
  // A word resembles another one if at most a third of its letters are wrong.
  const near = KEYWORDS.find((each) => distance(keyword, each) <= keyword.length / 3);
  if (near === undefined) return;
  throw new WatchError('INVALID_ARGUMENT', `${name}: unknown keyword ${keyword.slice(0, 80)}: did you mean ${near}?`);
}

function isObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
