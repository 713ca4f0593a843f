// The definitions of `--crd`: read before anything else happens, and stored when the server has started.
import type { ApiServer } from '../../apiserver/server.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import type { WriteOptions } from '../../cache/resource-client.ts';
import { type Condition, findCondition, isConditionTrue, type WithConditions } from '../../operator/conditions.ts';
import { equals } from '../../operator/equals.ts';
import { isWatchError } from '../../watch/errors.ts';
import { CRD, CRD_API_VERSION, crdOf, documentsAt } from '../documents.ts';
import { quote, UsageError } from '../usage.ts';
import type { ServeLog } from './log.ts';
import type { Identity } from './reload.ts';

/** A definition, and the file it comes from. */
export interface CrdFile {
  readonly file: string;
  readonly crd: KubernetesObject;
}

const fault = (file: string, why: string): UsageError => new UsageError(`--crd ${quote(file)}: ${why}`, 'serve');

/**
 * Reads files, and all YAML and JSON files in folders. Ignores anything but definitions, because manifests also contain roles
 * and programs. Throws {@link UsageError}.
 */
export async function readCrdFiles(paths: readonly string[]): Promise<readonly CrdFile[]> {
  const found: CrdFile[] = [];
  for (const path of paths) {
    const own = (await documentsAt(path, fault)).flatMap((document): CrdFile[] => {
      const crd = crdOf(document, fault);
      return crd ? [{ file: document.file, crd }] : [];
    });
    if (own.length === 0) throw fault(path, `there is no ${CRD} of ${CRD_API_VERSION} in it`);
    for (const each of own) if (isNew(each, found)) found.push(each);
  }
  return found;
}

/** Whether a definition is not among these. Duplicates must be the same: otherwise one of them would be lost, now or later. */
function isNew({ file, crd }: CrdFile, found: readonly CrdFile[]): boolean {
  const before = found.find((each) => each.crd.metadata?.name === crd.metadata?.name);
  if (before === undefined) return true;
  if (equals(before.crd, crd)) return false;
  throw fault(file, `${quote(crd.metadata?.name ?? '')} is in it and, with other content, in ${before.file}`);
}

/** Creates what is absent, and updates what differs. Resolves when all are served, or cannot be. */
export async function applyCrds(api: ApiServer<Identity>, crds: readonly CrdFile[], log: Pick<ServeLog, 'warn'>): Promise<void> {
  if (crds.length === 0) return;
  for (const each of crds) {
    await applyCrd(api, each, log).catch((error: unknown) => {
      throw fault(each.file, messageOf(error));
    });
  }
  const waiting = new Map(crds.map(({ crd, file }) => [crd.metadata?.name, file]));
  for await (const event of await definitionsOf(api).watch()) {
    if (event.type === 'ERROR' || event.type === 'BOOKMARK') continue;
    const { name } = event.object.metadata ?? {};
    const file = waiting.get(name);
    const said = file === undefined ? undefined : verdictOf(event.object);
    if (said === undefined) continue;
    if (said !== '') log.warn('crd-not-served', { file, definition: name, message: said });
    waiting.delete(name);
    if (waiting.size === 0) return;
  }
}

const definitionsOf = (api: ApiServer<Identity>) =>
  api.resource<KubernetesObject>(`customresourcedefinitions.${CRD_API_VERSION}`);

const messageOf = (error: unknown): string => (isWatchError(error) ? (error.status?.message ?? error.message) : String(error));

/**
 * Other servers may start at the same time: a definition that has changed or gone meanwhile is read again. Fields that definitions do
 * not have, such as misspelt ones, are dropped with a warning.
 */
async function applyCrd(api: ApiServer<Identity>, file: CrdFile, log: Pick<ServeLog, 'warn'>): Promise<void> {
  let fieldValidation: 'Strict' | undefined = 'Strict';
  for (let left = MAX_ATTEMPTS; ; left--) {
    try {
      return await applyOnce(api, file, { fieldValidation });
    } catch (error) {
      if (fieldValidation !== undefined && isUnknownField(error)) {
        log.warn('crd-fields', { file: file.file, definition: file.crd.metadata?.name, message: messageOf(error) });
        fieldValidation = undefined;
        continue;
      }
      const isRaced = isWatchError(error) && ['Conflict', 'NotFound'].includes(error.status?.reason ?? '');
      if (!isRaced || left === 1) throw error;
    }
  }
}

const MAX_ATTEMPTS = 100;

const isUnknownField = (error: unknown): boolean =>
  isWatchError(error) && error.status?.reason === 'BadRequest' && messageOf(error).includes('strict decoding error');

async function applyOnce(
  api: ApiServer<Identity>,
  { crd }: CrdFile,
  options: Pick<WriteOptions, 'fieldValidation'>,
): Promise<void> {
  const definitions = definitionsOf(api);
  const { status: _, ...wanted } = crd as KubernetesObject & { status?: unknown };
  try {
    await definitions.create(wanted, options);
  } catch (error) {
    if (!isWatchError(error) || error.status?.reason !== 'AlreadyExists') throw error;
    const { name = '', labels, annotations } = crd.metadata ?? {};
    const { spec } = crd as KubernetesObject & { spec?: unknown };
    const { metadata, ...current } = await definitions.get(name);
    const merged = {
      ...metadata,
      labels: { ...metadata?.labels, ...labels },
      annotations: { ...metadata?.annotations, ...annotations },
    };
    await definitions.update({ ...{ ...current, spec }, metadata: merged }, options);
  }
}

/** Why a definition is not served; empty: it is; undefined: not known yet. */
function verdictOf(crd: WithConditions<Condition>): string | undefined {
  if (isConditionTrue(crd, 'Terminating')) return 'it is being deleted';
  if (isConditionTrue(crd, 'Established')) return '';
  const accepted = findCondition(crd, 'NamesAccepted');
  return accepted?.status === 'False' ? `${accepted.reason}: ${accepted.message}` : undefined;
}
