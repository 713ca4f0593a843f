/** Bodies: their types and their contents. */
import type { PatchType } from '../../cache/resource-client.ts';
import { refused } from '../../storage/statuses.ts';
import type { Soon } from '../../watch/fair-queue.ts';
import { inPieces, paceOf } from '../../watch/fair-queue.ts';
import { badRequest, invalidOptions } from '../api-status.ts';
import type { FieldCause } from '../definition.ts';
import { type PatchedKind, toPatchType } from '../patch/patch.ts';
import { hasProtobuf, PROTOBUF, readDeleteOptions, readProtobuf } from '../protobuf/kinds.ts';
import { mediaType } from '../request/accept.ts';
import type { FieldPaths } from '../request/field-paths.ts';
import { isRecord, parseJson, parsingBody } from '../request/json.ts';
import { shown } from '../verbs/names.ts';
import type { DeleteTerms } from '../verbs/remove.ts';
import type { WireRequest } from './wire.ts';

/** What is needed to read a body. */
export interface BodyOptions {
  readonly maxBodyBytes: number;
  readonly signal: AbortSignal;
}

/** What is needed to read the body of a write. */
export interface WrittenBodyMeans extends BodyOptions {
  readonly kind: PatchedKind;
  /** Called with the members that are sent more than once. */
  readonly again?: ((duplicates: FieldPaths) => void) | undefined;
}

function unsupported(given: string, supported: readonly string[]): Error {
  const message = `the body of the request was in an unknown format (${shown(given)}): accepted media types include: ${supported.join(', ')}`;
  return refused(415, 'UnsupportedMediaType', message);
}

/**
 * The type of a body. A page of another origin can send texts and forms without asking for permission, so those are refused. It
 * can also leave out the type, as old clients do, such as a deletion of kubectl 1.20; these are not browsers, and send no origin.
 */
function typeOf(request: WireRequest): string {
  const given = request.header('content-type');
  return given === undefined && request.origin === undefined ? JSON_TYPE : mediaType(given);
}

/** Reads an object of a kind. */
export async function readObject(
  request: WireRequest,
  { maxBodyBytes, signal, kind, again }: WrittenBodyMeans,
): Promise<unknown> {
  const type = typeOf(request);
  const supported = hasProtobuf(kind) ? [JSON_TYPE, PROTOBUF] : [JSON_TYPE];
  if (!supported.includes(type)) throw unsupported(type, supported);
  const bytes = await bodyInTurn(request, { maxBodyBytes, signal });
  return type === JSON_TYPE ? await parsed(bytes, { signal, again }) : readProtobuf(bytes, kind);
}

function parsed(bytes: Uint8Array, { signal, again }: Pick<WrittenBodyMeans, 'signal' | 'again'>): Soon<unknown> {
  return inPieces(parsingBody(bytes, again), { pace: paceOf(signal), signal });
}

/** The longest body that is read without a turn of its own, in bytes: what comes within a millisecond. */
const SMALL_BYTES = 32_768;

/** The longest body of which any number is worked on at a time. */
const LARGE_BYTES = 262_144;

/** A body when it may be read. A long one is read and stored in turns of their own. */
async function bodyInTurn(request: WireRequest, { maxBodyBytes, signal }: BodyOptions): Promise<Uint8Array> {
  const bytes = await request.body(maxBodyBytes, signal);
  if (bytes.length > LARGE_BYTES) await paceOf(signal).heavy?.(signal);
  if (bytes.length > SMALL_BYTES) await paceOf(signal).turn();
  return bytes;
}

const JSON_TYPE = 'application/json';

/** Reads a patch for a kind. */
export async function readPatch(
  request: WireRequest,
  { maxBodyBytes, signal, kind, again }: WrittenBodyMeans,
): Promise<{ type: PatchType; patch: unknown }> {
  const type = toPatchType(mediaType(request.header('content-type')), kind);
  const bytes = await bodyInTurn(request, { maxBodyBytes, signal });
  return { type, patch: await parsed(bytes, { signal, again }) };
}

/** Whether a request is a dry run: `dryRun=All`. `kind` is that of its options. */
export function readDryRun(values: readonly string[], kind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions'): boolean {
  const causes = dryRunCauses(values);
  if (causes.length > 0) throw invalidOptions(kind, causes);
  return values.length > 0;
}

function dryRunCauses(values: readonly string[]): readonly FieldCause[] {
  if (values.every((value) => value === 'All')) return [];
  return [{ field: 'dryRun', message: `Unsupported value: [${values.map(shown).join(',')}]: supported values: "All"` }];
}

const POLICIES: readonly unknown[] = ['Foreground', 'Background', 'Orphan'];

function policyCauses(policy: unknown): readonly FieldCause[] {
  if (policy === undefined || policy === null || POLICIES.includes(policy)) return [];
  const supported = POLICIES.map((each) => JSON.stringify(each)).join(', ');
  return [{ field: 'propagationPolicy', message: `Unsupported value: ${shown(String(policy))}: supported values: ${supported}` }];
}

/** Reads the options of a deletion: from its body if it has one, and from its query. */
export async function readDeleteTerms(
  request: WireRequest,
  query: URLSearchParams,
  means: BodyOptions,
): Promise<Pick<DeleteTerms, 'dryRun' | 'preconditions'>> {
  const bytes = await request.body(means.maxBodyBytes, means.signal);
  const body = bytes.length === 0 ? {} : readOptions(bytes, typeOf(request));
  if (!isRecord(body) || (body.kind !== undefined && body.kind !== 'DeleteOptions'))
    throw badRequest('the body is not a DeleteOptions object');
  const { dryRun = [], preconditions, propagationPolicy = query.get('propagationPolicy') ?? undefined } = body;
  if (!Array.isArray(dryRun)) throw badRequest('dryRun: expected a list');
  const grace = body.gracePeriodSeconds ?? query.get('gracePeriodSeconds') ?? 0;
  if (!/^-?[0-9]{1,9}$/.test(String(grace))) throw badRequest('gracePeriodSeconds: expected a whole number');
  const tries = [...dryRun.map(String), ...query.getAll('dryRun')];
  const causes = [...policyCauses(propagationPolicy), ...dryRunCauses(tries)];
  if (causes.length > 0) throw invalidOptions('DeleteOptions', causes);
  return {
    dryRun: tries.length > 0,
    preconditions: toPreconditions(preconditions),
  };
}

function readOptions(bytes: Uint8Array, type: string): unknown {
  if (type === PROTOBUF) return readDeleteOptions(bytes);
  if (type !== JSON_TYPE) throw unsupported(type, [JSON_TYPE, PROTOBUF]);
  return parseJson(bytes);
}

function toPreconditions(value: unknown): DeleteTerms['preconditions'] {
  if (value === undefined || value === null) return undefined;
  if (!isRecord(value)) throw badRequest('preconditions: expected an object');
  const { uid, resourceVersion } = value;
  for (const each of [uid, resourceVersion]) {
    if (each !== undefined && each !== null && typeof each !== 'string') throw badRequest('preconditions: expected texts');
  }
  return { uid: (uid as string | null) ?? undefined, resourceVersion: (resourceVersion as string | null) ?? undefined };
}
