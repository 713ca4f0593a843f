/**
 * What is wrong with a definition: 422, with upstream's fields and words. Upstream: `ValidateCustomResourceDefinition`.
 *
 * Upstream reads members that are the same in all versions as members of `spec`, and names them so: `spec.validation` is
 * `schema` of every version.
 */
import { comparing } from '../../storage/json.ts';
import { isRecord } from '../../watch/errors.ts';
import { inPieces, type Work } from '../../watch/fair-queue.ts';
import { COLUMN_TYPES, type FieldCause, type JsonSchema } from '../definition.ts';
import {
  duplicateCause,
  forbiddenCause,
  invalidCause,
  jsonStart,
  requiredCause,
  tooManyCause,
  unsupportedCause,
} from '../validation/causes.ts';
import { label1035Faults, subdomainFaults } from '../validation/formats.ts';
import { structuralFaults } from '../validation/structural-faults.ts';
import { type Crd, type CrdColumn, type CrdNames, type CrdSpec, type CrdVersion, isTrue, SINGLE_NAMES } from './crd.ts';

const APPROVED = 'api-approved.kubernetes.io';
const MAX_SELECTABLE_FIELDS = 8;
const MAX_WARNING_CHARS = 256;

/** Whether the program converts the versions of a resource. */
type Converts = (resourceName: string) => boolean;

/** What a definition is checked against. */
interface Against {
  readonly old: Crd | undefined;
  /** The subresource at which it is written. */
  readonly part: string | undefined;
  readonly converts: Converts;
}

/** Everything that is wrong, in upstream's order. */
export async function faultsOfCrd(crd: Crd, { old, part, converts }: Against): Promise<FieldCause[]> {
  const { metadata, spec, status } = crd;
  const expected = `${spec.names.plural}.${spec.group}`;
  const faults: FieldCause[] = [];
  if (metadata?.name !== expected && old === undefined) {
    faults.push(invalidCause('metadata.name', metadata?.name ?? '', 'must be spec.names.plural+"."+spec.group'));
  }
  faults.push(...(await specFaults(spec, converts(expected))));
  if (old) faults.push(...changeFaults(spec, old));
  faults.push(...namesFaults('status.acceptedNames', status.acceptedNames));
  // That subresource is where it is said that the objects have been migrated. Upstream:
  // `ValidateUpdateCustomResourceDefinitionStatus`.
  if (part !== 'status') faults.push(...storedFaults(crd));
  faults.push(...approvalFaults(crd, old));
  if (spec.preserveUnknownFields === true && old?.spec.preserveUnknownFields !== true) {
    const instead = 'set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
    faults.push(invalidCause('spec.preserveUnknownFields', true, `cannot set to true, ${instead}`));
  }
  return faults;
}

async function specFaults(spec: CrdSpec, isConverted: boolean): Promise<FieldCause[]> {
  const { group, scope, names, versions, conversion } = spec;
  const faults: FieldCause[] = [];
  if (group === '') faults.push(requiredCause('spec.group', ''));
  else if (subdomainFaults(group).length > 0) faults.push(invalidCause('spec.group', group, subdomainFaults(group).join(',')));
  else if (!group.includes('.')) faults.push(invalidCause('spec.group', group, 'should be a domain with at least one dot'));
  faults.push(...oneOf('spec.scope', scope, ['Cluster', 'Namespaced']));
  for (const [at, { schema }] of versions.entries()) {
    if (!isRecord(schema?.openAPIV3Schema)) faults.push(requiredCause(`spec.versions[${at}].schema.openAPIV3Schema`, ''));
  }
  const common = await inPieces(commonOf(versions));
  for (const [at, version] of versions.entries()) {
    const field = `spec.versions[${at}]`;
    const fault = labelFault(version.name);
    if (fault) faults.push(invalidCause(`${field}.name`, version.name, fault));
    faults.push(
      ...(await versionFaults(field, { ...version, ...common.without }, { schemaName: 'schema', status: hasStatus(version) })),
    );
  }
  faults.push(...listFaults(versions));
  // The first one is `spec.version` as well.
  const first = versions[0]?.name ?? '';
  if (first !== '' && labelFault(first)) faults.push(invalidCause('spec.version', first, labelFault(first)));
  for (const name of SINGLE_NAMES) {
    if (!names[name]) faults.push(requiredCause(`spec.names.${name}`, ''));
  }
  faults.push(...namesFaults('spec.names', names));
  faults.push(
    ...(await versionFaults('spec', common.shared as CrdVersion, { schemaName: 'validation', status: versions.some(hasStatus) })),
  );
  return [...faults, ...conversionFaults(conversion, isConverted)];
}

const COMMON = ['subresources', 'schema', 'additionalPrinterColumns', 'selectableFields'] as const;

/** The members that are the same in all versions, and what each version is without them. */
function* commonOf(versions: readonly CrdVersion[]): Work<{ shared: Partial<CrdVersion>; without: Partial<CrdVersion> }> {
  const [first, ...others] = versions;
  const same: (typeof COMMON)[number][] = [];
  for (const name of COMMON) {
    let isSame = true;
    for (const each of others) isSame &&= yield* comparing(each[name] ?? null, first?.[name] ?? null);
    if (isSame) same.push(name);
  }
  const pick = (value: (name: (typeof COMMON)[number]) => unknown): Partial<CrdVersion> =>
    Object.fromEntries(same.map((name) => [name, value(name)]));
  return { shared: pick((name) => first?.[name]), without: pick(() => undefined) };
}

async function versionFaults(
  field: string,
  version: CrdVersion,
  { schemaName, status }: { readonly schemaName: 'schema' | 'validation'; readonly status: boolean },
): Promise<FieldCause[]> {
  const { schema, subresources, additionalPrinterColumns = [], selectableFields = [] } = version;
  const faults = warningFaults(field, version);
  const own = schema?.openAPIV3Schema;
  if (isRecord(own)) faults.push(...(await structuralFaults(own, { path: `${field}.${schemaName}.openAPIV3Schema`, status })));
  faults.push(...scaleFaults(`${field}.subresources`, subresources));
  for (const [at, column] of additionalPrinterColumns.entries()) {
    faults.push(...columnFaults(`${field}.additionalPrinterColumns[${at}]`, column));
  }
  return [...faults, ...selectableFaults(`${field}.selectableFields`, selectableFields, own)];
}

const hasStatus = ({ subresources }: CrdVersion): boolean => subresources?.status !== undefined;

function warningFaults(field: string, { deprecated = false, deprecationWarning: text }: CrdVersion): FieldCause[] {
  if (text === undefined) return [];
  const said = (why: string): FieldCause[] => [invalidCause(`${field}.deprecationWarning`, text, why)];
  if (!deprecated) return said('can only be set for deprecated versions');
  if (text.length > MAX_WARNING_CHARS) return said(`must be <= ${MAX_WARNING_CHARS} characters long`);
  if (text === '') return said('must not be an empty string');
  const at = text.search(/[\p{C}\p{Zl}\p{Zp}]/u);
  if (at < 0) return [];
  return said(`must only contain printable UTF-8 characters; non-printable character found at index ${at}`);
}

function scaleFaults(field: string, subresources: CrdVersion['subresources']): FieldCause[] {
  const { scale } = subresources ?? {};
  if (!isRecord(scale)) return [];
  const paths = [
    ['specReplicasPath', ['.spec.'], '.spec'],
    ['statusReplicasPath', ['.status.'], '.status'],
    ['labelSelectorPath', ['.spec.', '.status.'], 'either .spec or .status'],
  ] as const;
  return paths.flatMap(([name, below, where]) => {
    const [place, path] = [`${field}.scale.${name}`, scale[name] as string | undefined];
    if (!path) return name === 'labelSelectorPath' ? [] : [requiredCause(place, '')];
    if (!path.startsWith('.')) return [invalidCause(place, path, 'must be a simple json path starting with .')];
    return below.some((each) => path.startsWith(each)) ? [] : [invalidCause(place, path, `should be a json path under ${where}`)];
  });
}

const TYPES: readonly string[] = [...COLUMN_TYPES].sort();
const FORMATS = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];

function columnFaults(field: string, { name, type, format, jsonPath }: Partial<CrdColumn>): FieldCause[] {
  const faults: FieldCause[] = [];
  const ofTypes = `must be one of ${TYPES.join(',')}`;
  if (!name) faults.push(requiredCause(`${field}.name`, ''));
  if (!type) faults.push(requiredCause(`${field}.type`, ofTypes));
  else if (!TYPES.includes(type)) faults.push(invalidCause(`${field}.type`, type, ofTypes));
  if (format && !FORMATS.includes(format))
    faults.push(invalidCause(`${field}.format`, format, `must be one of ${FORMATS.join(',')}`));
  if (!jsonPath) faults.push(requiredCause(`${field}.JSONPath`, ''));
  else if (!jsonPath.startsWith('.')) {
    faults.push(invalidCause(`${field}.JSONPath`, jsonPath, 'must be a simple json path starting with .'));
  }
  return faults;
}

function selectableFaults(
  field: string,
  fields: NonNullable<CrdVersion['selectableFields']>,
  schema: JsonSchema | undefined,
): FieldCause[] {
  const faults: FieldCause[] = [];
  const paths = new Set<string>();
  for (const [at, { jsonPath }] of fields.entries()) {
    const place = `${field}[${at}].jsonPath`;
    if (!jsonPath) {
      faults.push(requiredCause(place, ''));
      continue;
    }
    const names = jsonPath.split('.').slice(1);
    const found = jsonPath.startsWith('.') ? schemaAt(schema, names) : undefined;
    if (jsonPath.includes('[')) faults.push(invalidCause(place, jsonPath, 'is an invalid path: array notation is not allowed'));
    else if (found === undefined)
      faults.push(invalidCause(place, jsonPath, 'is an invalid path: does not refer to a valid field'));
    else if (names[0] === 'metadata') faults.push(invalidCause(place, jsonPath, 'must not point to fields in metadata'));
    else if (!['string', 'boolean', 'integer'].includes(String(found.type))) {
      const which = 'type string, boolean or integer. Enum string fields and strings with formats are allowed.';
      faults.push(invalidCause(place, jsonPath, `must point to a field of ${which}`));
    } else if (paths.has(jsonPath)) faults.push(duplicateCause(place, jsonPath));
    paths.add(jsonPath);
  }
  if (paths.size > MAX_SELECTABLE_FIELDS) {
    faults.push(tooManyCause(field, paths.size, MAX_SELECTABLE_FIELDS));
  }
  return faults;
}

function schemaAt(schema: JsonSchema | undefined, names: readonly string[]): JsonSchema | undefined {
  let at: unknown = schema;
  for (const name of names) {
    const properties: unknown = isRecord(at) ? at.properties : undefined;
    at = isRecord(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
  }
  return isRecord(at) ? at : undefined;
}

/** How much of all versions a message shows. */
const MAX_SHOWN_CHARS = 1_000;

function listFaults(versions: readonly CrdVersion[]): FieldCause[] {
  const faults: FieldCause[] = [];
  // As Go writes them, without what is long.
  const shownAs = versions.map(
    ({ name: Name, served: Served, storage: Storage, deprecated = false, deprecationWarning = null }) => ({
      ...{ Name, Served, Storage, Deprecated: deprecated, DeprecationWarning: deprecationWarning },
      ...{ Schema: null, Subresources: null, AdditionalPrinterColumns: null, SelectableFields: null },
    }),
  );
  // In the order in which Go declares them.
  const shown = jsonStart(shownAs, MAX_SHOWN_CHARS);
  const refused = (why: string): FieldCause => ({ field: 'spec.versions', message: `Invalid value: ${shown}: ${why}` });
  if (new Set(versions.map(({ name }) => name)).size < versions.length) {
    faults.push(refused('must contain unique version names'));
  }
  if (versions.filter(({ storage }) => storage).length !== 1) {
    faults.push(refused('must have exactly one version marked as storage version'));
  }
  return faults;
}

function namesFaults(field: string, names: CrdNames): FieldCause[] {
  const faults: FieldCause[] = [];
  const check = (place: string, name: string, isKind: boolean): void => {
    const rule = labelFault(isKind ? name.toLowerCase() : name);
    if (!rule) return;
    const why = isKind ? `may have mixed case, but should otherwise match: ${rule}` : rule;
    faults.push(invalidCause(`${field}.${place}`, name, why));
  };
  const { kind, listKind, shortNames = [], categories = [] } = names;
  // That a name is missing is told elsewhere, or it gets one.
  for (const name of ['plural', 'singular'] as const) if (names[name]) check(name, names[name], false);
  for (const name of ['kind', 'listKind'] as const) if (names[name]) check(name, names[name], true);
  for (const [at, name] of shortNames.entries()) check(`shortNames[${at}]`, name, false);
  if (kind !== '' && kind === listKind) {
    faults.push(invalidCause(`${field}.listKind`, listKind, 'kind and listKind may not be the same'));
  }
  for (const [at, name] of categories.entries()) check(`categories[${at}]`, name, false);
  return faults;
}

function conversionFaults(conversion: CrdSpec['conversion'], isOurs: boolean): FieldCause[] {
  const { strategy = '', webhook } = conversion ?? {};
  const field = 'spec.conversion';
  const faults = oneOf(`${field}.strategy`, strategy, ['None', 'Webhook']);
  if (strategy === 'Webhook' && !isOurs) {
    const why = 'this server calls no webhooks: use None, or convert in the program with the option convert of ApiServer';
    faults.push(invalidCause(`${field}.strategy`, strategy, why));
  } else if (strategy !== 'Webhook') {
    const why = 'should not be set when strategy is not set to Webhook';
    const set = [
      ...(webhook?.clientConfig ? ['webhookClientConfig'] : []),
      ...(webhook?.conversionReviewVersions?.length ? ['conversionReviewVersions'] : []),
    ];
    faults.push(...set.map((each) => forbiddenCause(`${field}.${each}`, why)));
  }
  return faults;
}

/** What cannot be changed. Upstream: `validateCustomResourceDefinitionSpecUpdate`. */
function changeFaults({ group, scope, names }: CrdSpec, old: Crd): FieldCause[] {
  const before = old.spec;
  const fixed = [
    ...(isTrue(old, 'Established')
      ? ([
          ['spec.scope', scope, before.scope],
          ['spec.names.kind', names.kind, before.names.kind],
        ] as const)
      : []),
    ['spec.group', group, before.group],
    ['spec.names.plural', names.plural, before.names.plural],
  ] as const;
  return fixed.flatMap(([field, now, then]) => (now === then ? [] : [invalidCause(field, now, 'field is immutable')]));
}

function storedFaults({ spec, status }: Crd): FieldCause[] {
  const { storedVersions } = status;
  const field = 'status.storedVersions';
  if (storedVersions.length === 0) return [invalidCause(field, null, 'must have at least one stored version')];
  const storage = spec.versions.find((each) => each.storage && !storedVersions.includes(each.name));
  const faults = storage ? [invalidCause(field, storedVersions, `must have the storage version ${storage.name}`)] : [];
  for (const [at, name] of storedVersions.entries()) {
    if (spec.versions.some((each) => each.name === name)) continue;
    const why = `was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`;
    faults.push(invalidCause(`${field}[${at}]`, name, `missing from spec.versions; ${name} ${why}`));
  }
  return faults;
}

/** Kubernetes' own groups are for Kubernetes. Upstream: `validateAPIApproval`. */
function approvalFaults({ spec, metadata }: Crd, old: Crd | undefined): FieldCause[] {
  if (!/(^|\.)(k8s|kubernetes)\.io$/.test(spec.group)) return [];
  const state = approvalOf(metadata?.annotations?.[APPROVED]);
  if (state === 'approved' || (old && approvalOf(old.metadata?.annotations?.[APPROVED]) === state)) return [];
  const field = `metadata.annotations[${APPROVED}]`;
  const see = 'see https://github.com/kubernetes/enhancements/pull/1111';
  const must = `protected groups must have approval annotation "${APPROVED}"`;
  if (state === 'missing') return [requiredCause(field, `${must}, ${see}`)];
  const how = 'with either a URL or a reason starting with "unapproved"';
  return [invalidCause(field, metadata?.annotations?.[APPROVED], `${must} ${how}, ${see}`)];
}

function approvalOf(text: string = ''): 'approved' | 'missing' | 'wrong' {
  if (text === '') return 'missing';
  return text.startsWith('unapproved') || (URL.canParse(text) && new URL(text).host !== '') ? 'approved' : 'wrong';
}

function oneOf(field: string, value: string, accepted: readonly string[]): FieldCause[] {
  if (value === '') return [requiredCause(field, '')];
  return accepted.includes(value) ? [] : [unsupportedCause(field, value, accepted)];
}

/** What is wrong with a name in a URL; empty if nothing is. */
const labelFault = (name: string): string => label1035Faults(name).join(',');
