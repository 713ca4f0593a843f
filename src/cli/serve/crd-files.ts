// The definitions of `--crd`: read before anything else happens, and stored when the server has started.
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ApiServer } from '../../apiserver/server.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { isRecord, isWatchError } from '../../watch/errors.ts';
import { quote, UsageError } from '../usage.ts';
import type { Log } from './log.ts';

/** A definition, and the file that it is from. */
export interface CrdFile {
  readonly file: string;
  readonly crd: KubernetesObject;
}

const KIND = 'CustomResourceDefinition';
const API_VERSION = 'apiextensions.k8s.io/v1';
const FILES = /\.(ya?ml|json)$/i;

const fault = (file: string, why: string): UsageError => new UsageError(`--crd ${quote(file)}: ${why}`, 'serve');

/**
 * Reads files, and all of their kind in folders, at any depth, in the order of their names. What is something else than a definition
 * is left out, as manifests have roles and programs beside them. Throws {@link UsageError}.
 */
export async function readCrdFiles(paths: readonly string[]): Promise<readonly CrdFile[]> {
  const found: CrdFile[] = [];
  for (const path of paths) {
    const own: CrdFile[] = [];
    for (const file of await filesAt(path)) own.push(...(await crdsIn(file)));
    if (own.length === 0) throw fault(path, `there is no ${KIND} of ${API_VERSION} in it`);
    found.push(...own);
  }
  return found;
}

async function filesAt(path: string): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const names = await readdir(path, { recursive: true });
    return names
      .filter((name) => FILES.test(name))
      .sort()
      .map((name) => join(path, name));
  } catch (error) {
    throw fault(path, (error as Error).message);
  }
}

async function crdsIn(file: string): Promise<CrdFile[]> {
  let documents: readonly unknown[];
  try {
    documents = await documentsIn(await readFile(file, 'utf8'));
  } catch (error) {
    throw fault(file, (error as Error).message);
  }
  return documents.flatMap(itemsOf).flatMap((each) => {
    if (!isRecord(each) || each.kind !== KIND) return [];
    if (each.apiVersion !== API_VERSION)
      throw fault(file, `apiVersion: expected ${API_VERSION}, not ${quote(String(each.apiVersion))}`);
    const { metadata } = each;
    if (!isRecord(metadata) || typeof metadata.name !== 'string')
      throw fault(file, 'metadata.name: expected the name of the definition');
    return [{ file, crd: each as KubernetesObject }];
  });
}

const itemsOf = (document: unknown): readonly unknown[] =>
  isRecord(document) && document.kind === 'List' && Array.isArray(document.items) ? document.items : [document];

/** JSON needs no package. */
async function documentsIn(text: string): Promise<readonly unknown[]> {
  try {
    return [JSON.parse(text)];
  } catch {
    const { parseAllDocuments } = await import('yaml').catch((cause: unknown) => {
      throw new Error('YAML needs the package yaml: npm install yaml', { cause });
    });
    const documents = [parseAllDocuments(text, { version: '1.1', logLevel: 'silent' })].flat();
    return documents.map((document) => {
      const [error] = document.errors;
      if (error) throw error;
      return document.toJS() as unknown;
    });
  }
}

/** Creates what is absent, and updates what differs. Resolves when all are served, or cannot be. */
export async function applyCrds(api: ApiServer<string>, crds: readonly CrdFile[], log: Pick<Log, 'warn'>): Promise<void> {
  if (crds.length === 0) return;
  for (const each of crds) {
    await applyCrd(api, each).catch((error: unknown) => {
      const message = isWatchError(error) ? (error.status?.message ?? error.message) : String(error);
      throw fault(each.file, message);
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

const definitionsOf = (api: ApiServer<string>) => api.resource<KubernetesObject>(`customresourcedefinitions.${API_VERSION}`);

/** Other servers may begin at the same time: what has changed or gone meanwhile is looked at again. */
async function applyCrd(api: ApiServer<string>, file: CrdFile): Promise<void> {
  for (let left = MAX_ATTEMPTS; ; left--) {
    try {
      return await applyOnce(api, file);
    } catch (error) {
      const isRaced = isWatchError(error) && ['Conflict', 'NotFound'].includes(error.status?.reason ?? '');
      if (!isRaced || left === 1) throw error;
    }
  }
}

const MAX_ATTEMPTS = 100;

async function applyOnce(api: ApiServer<string>, { crd }: CrdFile): Promise<void> {
  const definitions = definitionsOf(api);
  const { status: _, ...wanted } = crd as KubernetesObject & { status?: unknown };
  try {
    await definitions.create(wanted);
  } catch (error) {
    if (!isWatchError(error) || error.status?.reason !== 'AlreadyExists') throw error;
    const { name = '', labels, annotations } = crd.metadata ?? {};
    const { spec } = crd as KubernetesObject & { spec?: unknown };
    const { metadata, ...current } = await definitions.get(name);
    await definitions.update({
      ...{ ...current, spec },
      metadata: {
        ...metadata,
        labels: { ...metadata?.labels, ...labels },
        annotations: { ...metadata?.annotations, ...annotations },
      },
    });
  }
}

/** Why a definition is not served; empty: it is; undefined: nobody knows yet. */
function verdictOf(crd: KubernetesObject): string | undefined {
  const { conditions } = (crd as { status?: { conditions?: readonly Condition[] | null } }).status ?? {};
  const of = (type: string): Condition | undefined => conditions?.find((each) => each.type === type);
  if (of('Terminating')?.status === 'True') return 'it is being deleted';
  if (of('Established')?.status === 'True') return '';
  const accepted = of('NamesAccepted');
  return accepted?.status === 'False' ? `${accepted.reason}: ${accepted.message}` : undefined;
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}
