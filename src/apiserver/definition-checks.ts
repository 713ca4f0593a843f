/**
 * Checks a program's definition of a resource: what would only break discovery, tables or a write later is reported when the
 * server is created.
 */
import { callable, checkOptions, invalid, oneOf, wholeNumber } from '../watch/errors.ts';
import {
  COLUMN_TYPES,
  type JsonSchema,
  type PrinterColumn,
  type ResourceDefinition,
  type SchemaDefinition,
} from './definition.ts';
import { checkSchema } from './validation/schema-check.ts';

const LABEL = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/;
const SUBDOMAIN = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const KIND = /^[A-Za-z][A-Za-z0-9]{0,62}$/;
const COLUMN = ['name', 'type', 'value', 'description', 'priority'] as const;

/** Throws INVALID_ARGUMENT for a definition that could not be served. */
export function checkDefinition(definition: ResourceDefinition | SchemaDefinition): void {
  const { group, version, plural, kind, namespaced = true, status = false, ...more } = definition;
  if (group !== '') checkText('group', group, { form: SUBDOMAIN, expected: 'a name such as example.com, or an empty string' });
  checkText('version', version, { form: LABEL, expected: 'a version such as v1' });
  checkText('plural', plural, { form: LABEL, expected: 'a name in lower case, such as orders' });
  checkText('kind', kind, { form: KIND, expected: 'a name such as Order' });
  const { singular, listKind, shortNames = [], categories = [] } = more;
  if (singular !== undefined) checkText('singular', singular, { form: LABEL, expected: 'a name in lower case' });
  if (listKind !== undefined) checkText('listKind', listKind, { form: KIND, expected: 'a name such as OrderList' });
  for (const [name, list] of Object.entries({ shortNames, categories })) {
    checkList(name, list, 'an array of names in lower case');
    for (const [at, each] of list.entries()) checkText(`${name}[${at}]`, each, { form: LABEL, expected: 'a name in lower case' });
  }
  checkFlag('namespaced', namespaced);
  checkFlag('status', status);
  checkScale(more.scale);
  checkValidation(more);
  const { columns = [], fields = {} } = more;
  checkList('columns', columns, 'an array of columns');
  for (const [at, column] of columns.entries()) checkColumn(`resource.columns[${at}]`, column);
  if (!isObject(fields)) throw invalid('resource.fields', fields, 'an object of functions');
  for (const [name, read] of Object.entries(fields)) callable(`resource.fields.${name}`, read ?? null);
}

/** Whether the value given as the function `validate` is a schema. */
export function isSchema(validate: unknown): validate is JsonSchema {
  return isObject(validate);
}

function checkValidation({ validate, schema }: Pick<ResourceDefinition | SchemaDefinition, 'validate' | 'schema'>): void {
  if (schema !== undefined && !isObject(schema)) throw invalid('resource.schema', schema, 'a JSON schema, as an object');
  if (schema !== undefined) checkSchema('resource.schema', schema);
  if (validate === undefined || typeof validate === 'function') return;
  if (!isSchema(validate)) throw invalid('resource.validate', validate, 'a function, or a JSON schema as an object');
  if (schema !== undefined) throw invalid('resource.validate', validate, 'a function, as there is a schema');
  checkSchema('resource.validate', validate);
}

const SCALE = ['specReplicasPath', 'statusReplicasPath', 'labelSelectorPath'] as const;
const PATH = /^\.(?:spec|status)(?:\.[\w-]+)+$/;

function checkScale(scale: ResourceDefinition['scale']): void {
  if (scale === undefined) return;
  if (!isObject(scale)) throw invalid('resource.scale', scale, `an object: { ${SCALE.join(', ')} }`);
  checkOptions(scale, SCALE);
  const isBelow = (path: unknown, part: string): boolean =>
    typeof path === 'string' && PATH.test(path) && path.startsWith(`.${part}.`);
  const { specReplicasPath: spec, statusReplicasPath: status, labelSelectorPath: selector } = scale;
  if (!isBelow(spec, 'spec')) throw invalid('resource.scale.specReplicasPath', spec, 'a path such as .spec.replicas');
  if (!isBelow(status, 'status')) throw invalid('resource.scale.statusReplicasPath', status, 'a path such as .status.replicas');
  if (selector === undefined || isBelow(selector, 'spec') || isBelow(selector, 'status')) return;
  throw invalid('resource.scale.labelSelectorPath', selector, 'a path below .spec or .status, such as .status.selector');
}

function checkColumn(path: string, column: PrinterColumn): void {
  if (!isObject(column)) throw invalid(path, column, 'a column: { name, type, value }');
  const { name, type, value, description = '', priority = 0 } = column;
  if (typeof name !== 'string' || name === '') throw invalid(`${path}.name`, name, 'a non-empty string');
  oneOf(`${path}.type`, type, COLUMN_TYPES);
  if (typeof value !== 'function') throw invalid(`${path}.value`, value, 'a function of an object');
  if (typeof description !== 'string') throw invalid(`${path}.description`, description, 'a text');
  wholeNumber(`${path}.priority`, priority);
  checkOptions(column, COLUMN);
}

function checkText(name: string, text: unknown, { form, expected }: { form: RegExp; expected: string }): void {
  // A pattern alone would read a missing value as the text `undefined`.
  if (typeof text !== 'string' || !form.test(text)) throw invalid(`resource.${name}`, text, expected);
}

function checkList(name: string, list: unknown, expected: string): void {
  if (!Array.isArray(list)) throw invalid(`resource.${name}`, list, expected);
}

function checkFlag(name: string, flag: unknown): void {
  if (typeof flag !== 'boolean') throw invalid(`resource.${name}`, flag, 'true or false');
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
