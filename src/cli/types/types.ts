// `watchmux types`: writes TypeScript for kinds, from files or from a server.
import { writeFile } from 'node:fs/promises';
import { messageOf } from '../../bridge/client/transport.ts';
import { toObject, toRefused } from '../../cache/http/answer.ts';
import { Exchange, type HttpSettings, named, toHttpSettings } from '../../cache/http/exchange.ts';
import { loadCluster } from '../../kubernetes/cluster.ts';
import { createNodeFetch } from '../../kubernetes/node-fetch.ts';
import { dotted, excerpt } from '../../pages/words.ts';
import { byCodeUnit } from '../../selectors/syntax.ts';
import { isWatchError } from '../../watch/errors.ts';
import { CRD, CRD_API_VERSION, crdOf, documentsAt, type Fault, type FileDocument } from '../documents.ts';
import { said, withHeaders } from '../get/get.ts';
import { hinted, withoutSecret } from '../lines.ts';
import type { Output } from '../output.ts';
import { quote, UsageError } from '../usage.ts';
import { type Described, isOpenApi, kindsOfCrd, kindsOfOpenApi, recordOf, select, together } from './described.ts';
import type { TypesCommand, WantedKind } from './types-args.ts';
import { writeTypes } from './writer.ts';

/** Writes the types. Returns the exit code. */
export async function types(command: TypesCommand, output: Output): Promise<number> {
  const { from, kinds: wanted, out } = command;
  const isServer = from instanceof URL || from.length === 0;
  const where = from instanceof URL ? withoutSecret(from) : from.length === 0 ? 'the cluster' : from.join(', ');
  let described: Described;
  try {
    described = isServer ? await fromServer(command) : await fromFiles(from);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    process.stderr.write(`watchmux types: cannot read ${excerpt(where, 200)}: ${excerpt(hinted(messageOf(error)), 300)}\n`);
    return 1;
  }
  const text = toText(described, { wanted, where });
  if (out === undefined) {
    await output.write(text);
    return 0;
  }
  try {
    await writeFile(out, text);
  } catch (error) {
    process.stderr.write(`watchmux types: cannot write ${quote(out)}: ${excerpt(messageOf(error))}\n`);
    return 1;
  }
  return 0;
}

function toText(
  described: Described,
  { wanted, where }: { readonly wanted: readonly WantedKind[]; readonly where: string },
): string {
  const { kinds: known, components } = described;
  const missed = ({ text }: WantedKind): never => {
    const names = [...new Set(known.map(({ kind, group }) => (group === '' ? kind : `${kind}.${group}`)))];
    const shown = names.length > MAX_NAMES ? [...names.slice(0, MAX_NAMES), `${names.length - MAX_NAMES} others`] : names;
    throw new UsageError(
      `--kind ${quote(text)}: expected a kind of ${excerpt(where)}, which has ${shown.join(', ') || 'none'}`,
      'types',
    );
  };
  const kinds = select(known, { wanted, missed });
  try {
    return writeTypes({ kinds, known, components });
  } catch (error) {
    throw new UsageError(`${excerpt(where)}: ${(error as Error).message}`, 'types');
  }
}

const MAX_NAMES = 10;

/** Paths are long, and differ at their ends. */
const pathOf = (file: string): string => `"${dotted(file.slice(-1_000))}"`;

const fault: Fault = (file, why) => new UsageError(`${pathOf(file)}: ${why}`, 'types');

/** Reads definitions and OpenAPI documents. Ignores anything else. */
async function fromFiles(paths: readonly string[]): Promise<Described> {
  const parts: Described[] = [];
  for (const path of paths) {
    const own = (await documentsAt(path, fault))
      .map(describe)
      .filter(({ kinds, components }) => kinds.length + components.size > 0);
    if (own.every(({ kinds }) => kinds.length === 0)) {
      throw fault(
        path,
        `there is no ${CRD} of ${CRD_API_VERSION} with a version that is served, and no OpenAPI v3 document with kinds`,
      );
    }
    for (const each of own) parts.push(each);
  }
  try {
    return together(parts);
  } catch (error) {
    throw new UsageError((error as Error).message, 'types');
  }
}

function describe(document: FileDocument): Described {
  const { file, number, value } = document;
  const place = number === undefined ? '' : `document ${number}: `;
  const crd = crdOf(document, fault);
  try {
    if (crd !== undefined) return { kinds: kindsOfCrd(crd, pathOf(file)), components: new Map() };
    return isOpenApi(value) ? kindsOfOpenApi(value, pathOf(file)) : { kinds: [], components: new Map() };
  } catch (error) {
    throw fault(file, `${place}${(error as Error).message}`);
  }
}

const INDEX = 'openapi/v3';
const VERSION = /^(?:api\/([^/]+)|apis\/([^/]+)\/([^/]+))$/;
const MAX_DOCUMENT_BYTES = 67_108_864;
const MAX_DOCUMENTS = 10_000;
const AT_ONCE = 4;

/** Asks a server for the OpenAPI documents that may have the kinds. */
async function fromServer({ from, kinds, headers, responseTimeoutMs, file, context }: TypesCommand): Promise<Described> {
  const { server, fetch } =
    from instanceof URL
      ? { server: from, fetch: createNodeFetch(() => ({})) }
      : await clusterOf({ file, context, responseTimeoutMs });
  const means = toHttpSettings({ fetch: withHeaders(fetch, headers), responseTimeoutMs, maxFrameBytes: MAX_DOCUMENT_BYTES });
  const read = async (path: string): Promise<Record<string, unknown>> => {
    const url = new URL(server);
    url.pathname = `${server.pathname.replace(/\/(openapi(\/v3)?\/?)?$/, '')}/${path}`;
    url.search = '';
    return recordOf(await readJson(means, url));
  };
  const { paths } = await read(INDEX);
  const wanted = Object.keys(recordOf(paths))
    .filter((path) => mayHave(path, kinds))
    .sort(byCodeUnit);
  if (wanted.length > MAX_DOCUMENTS) throw new Error(`it has more than ${MAX_DOCUMENTS} versions of groups`);
  const parts: Described[] = [];
  for (let at = 0; at < wanted.length; at += AT_ONCE) {
    const some = wanted.slice(at, at + AT_ONCE);
    parts.push(...(await Promise.all(some.map(async (path) => kindsOfOpenApi(await read(`${INDEX}/${path}`), path)))));
  }
  return together(parts);
}

/** Reads JSON whatever its content type: a kube-apiserver calls the index plain text. */
async function readJson(means: HttpSettings, url: URL): Promise<object | undefined> {
  const exchange = new Exchange(means, undefined);
  try {
    const response = await exchange.send(url);
    const limit = { what: 'the document', option: 'maxFrameBytes', bytes: MAX_DOCUMENT_BYTES } as const;
    const text = await exchange.text(response, limit);
    if (response.status !== 200) throw toRefused(response, text, url);
    return toObject(text);
  } catch (error) {
    throw named(error, url, undefined);
  } finally {
    exchange.end();
  }
}

/** Whether a document, such as `apis/apps/v1`, may have one of these kinds. */
function mayHave(path: string, kinds: readonly WantedKind[]): boolean {
  const [isVersion, core, group = '', version = core] = VERSION.exec(path) ?? [];
  if (isVersion === undefined) return false;
  return kinds.length === 0 || kinds.some((kind) => (kind.group ?? group) === group && (kind.version ?? version) === version);
}

async function clusterOf(options: Pick<TypesCommand, 'file' | 'context' | 'responseTimeoutMs'>) {
  try {
    return await loadCluster(options);
  } catch (error) {
    if (isWatchError(error, 'INVALID_ARGUMENT')) throw new UsageError(said(error.message, 'types'), 'types');
    throw error;
  }
}
