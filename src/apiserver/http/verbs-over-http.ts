/** The verbs over HTTP: parameters and bodies become terms, and results become answers. Upstream: `endpoints/handlers`. */

import { streamHeaders } from '../../bridge/transport/http-head.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import type { NamespacedName, PatchType } from '../../cache/resource-client.ts';
import { PROPAGATIONS } from '../../cache/resource-client.ts';
import { refused } from '../../storage/statuses.ts';
import type { StorageEvent } from '../../storage/storage.ts';
import { isPromise } from '../../watch/abort.ts';
import { isRecord, isWatchError } from '../../watch/errors.ts';
import { inPieces, type Pace, paceOf, type Soon, type Work } from '../../watch/fair-queue.ts';
import { fromAsyncIterable } from '../../watch/pull-watch.ts';
import type { Watch } from '../../watch/watch.ts';
import { badRequest, hasCode, invalidOptions, methodNotAllowed, noSuchPath, notFound, statusOf } from '../api-status.ts';
import type { FieldCause } from '../definition.ts';
import { isKubernetesGroup, RETURNED_WHEN_GONE } from '../kinds/common.ts';
import type { Asker } from '../kinds/reviews.ts';
import { shapeOf, typed } from '../kinds/tables.ts';
import { toPatchType } from '../patch/patch.ts';
import { type FieldPaths, parsingBody } from '../request/json.ts';
import { mediaType, type ResourcePath, type Verb } from '../request/path.ts';
import { mayBeProtobuf, PROTOBUF, readDeleteOptions, readProtobuf } from '../request/protobuf.ts';
import { type ListParameters, readFlag, readListQuery } from '../request/query.ts';
import { loadYaml, looksLikeJson, readYaml } from '../request/yaml.ts';
import type { ResourceContext, ResourceInfo } from '../resource-info.ts';
import { rowOf, type SeenKind, type Subresource } from '../subresources.ts';
import { FieldCheck, type FieldFaults, readFieldValidation } from '../validation/field-check.ts';
import { applyObject, replaceObject } from '../verbs/apply.ts';
import { evictObject } from '../verbs/evict.ts';
import { managerCauses, type Writer } from '../verbs/managed-fields.ts';
import { normalized, shown } from '../verbs/metadata.ts';
import { getObject, listObjects, presenting, watchObjects } from '../verbs/read.ts';
import { type DeleteTerms, deleteObject, deleteObjects, deletionWarning } from '../verbs/remove.ts';
import { createObject, toChange, updateObject } from '../verbs/write.ts';
import { EventStream, type Presentation } from './event-encoder.ts';
import { choosePresentation, PLAIN, type Subject, wantsEventStream } from './presentation.ts';
import { PiecesSource, WatchSource } from './sources.ts';
import { type Answer, jsonAnswer, type WireRequest } from './wire.ts';

/** Bodies: their types and their contents. */

interface Parsing {
  readonly signal: AbortSignal;
  /** Called with the members that are sent more than once. */
  readonly again?: ((duplicates: FieldPaths) => void) | undefined;
}

/** A hint for clients that send protobuf of a kind whose fields are not known. */
const NO_PROTOBUF = '; here, this kind is JSON or YAML: set ContentType and AcceptContentTypes of the client to application/json';

function unsupported(given: string, supported: readonly string[], hint: string = ''): Error {
  const message = `the body of the request was in an unknown format (${shown(given)}): accepted media types include: ${supported.join(', ')}${hint}`;
  return refused(415, 'UnsupportedMediaType', message);
}

/**
 * The type of a body. A page of another origin can send texts and forms without a preflight, so these are refused. It can also
 * leave out the type, as old clients do, such as kubectl 1.20 when it deletes; but they are not browsers, and send no origin.
 */
function typeOf(request: WireRequest): string {
  const given = request.header('content-type');
  return given === undefined && request.origin === undefined ? JSON_TYPE : mediaType(given);
}

/** Reads the object that was sent, and checks its fields. */
async function readObject(task: Task, options: 'CreateOptions' | 'UpdateOptions'): Promise<unknown> {
  const { request, signal, kind } = task;
  const check = fieldCheckOf(task, options);
  const fields = isPromise(check) ? await check : check;
  const means = { signal, again: fields?.again };
  const type = typeOf(request);
  if (type !== JSON_TYPE) {
    const supported = mayBeProtobuf(kind) ? [JSON_TYPE, YAML_TYPE, PROTOBUF] : [JSON_TYPE, YAML_TYPE];
    if (!supported.includes(type)) throw unsupported(type, supported, type === PROTOBUF ? NO_PROTOBUF : '');
  }
  const bytes = await bodyInTurn(task);
  const sent =
    type === PROTOBUF
      ? await done(readProtobuf(bytes, kind), signal)
      : await (type === YAML_TYPE ? parsedYaml : parsed)(bytes, means);
  const pause = paceOf(signal).pause();
  if (pause) await pause;
  checkType(sent, task);
  if (fields) await done(fields.object(sent), signal);
  return sent;
}

/** A custom resource has to say of what kind it is. For kinds in Kubernetes' own groups, as upstream, the path is enough. */
function checkType(sent: unknown, { row, context }: Task): void {
  const { group, kind, apiVersion, definition } = context.info;
  const isCustom = row.kind === undefined && (definition !== undefined || !isKubernetesGroup(group));
  if (!isRecord(sent) || !isCustom) return;
  if (!sent.kind) throw badRequest(`the object provided is unrecognized (must be of type ${kind}): Object 'Kind' is missing`);
  if (sent.apiVersion === undefined || sent.apiVersion === '')
    throw badRequest(`the API version in the data () does not match the expected API version (${apiVersion})`);
}

const parsed = (bytes: Uint8Array, { signal, again }: Parsing): Soon<unknown> => done(parsingBody(bytes, { again }), signal);

/** Reads YAML. JSON is a subset of it: a body that looks like JSON is parsed without the package `yaml`. */
async function parsedYaml(bytes: Uint8Array, means: Parsing): Promise<unknown> {
  const { signal, again } = means;
  let refusal: unknown;
  if (looksLikeJson(bytes)) {
    try {
      return await parsed(bytes, means);
    } catch (error) {
      if (!hasCode(error, 400)) throw error;
      refusal = error;
    }
  }
  const yaml = await loadYaml().catch((error: unknown) => {
    throw refusal ?? error;
  });
  return done(readYaml(bytes, { yaml, again }), signal);
}

/** The longest body that is parsed without a turn of its own, in bytes: it takes less than a millisecond. */
const SMALL_BYTES = 32_768;

/** The longest body, in bytes, that does not count as large: see `Heavy`. */
const LARGE_BYTES = 262_144;

/** Resolves with the body when it may be parsed. Parsing and storing a long one take turns of their own. */
async function bodyInTurn({ request, signal, maxBodyBytes }: Task, mostBytes: number = maxBodyBytes): Promise<Uint8Array> {
  const bytes = await request.body(Math.min(maxBodyBytes, mostBytes), signal);
  const pace = paceOf(signal);
  if (bytes.length > LARGE_BYTES) await pace.heavy?.(signal);
  // Many small ones can come in the same moment.
  const wait = bytes.length > SMALL_BYTES ? pace.turn() : pace.pause();
  if (wait) await wait;
  return bytes;
}

const JSON_TYPE = 'application/json';
const YAML_TYPE = 'application/yaml';

/** The options of a write that are the same for all. */
interface WriteOptions {
  readonly dryRun: boolean;
  readonly writer: Writer;
  /** For an apply only. */
  readonly force: boolean;
}

/** Reads the options of a write. `kind` is the name of their kind. */
function readWriteOptions(
  { query, request, tell }: Task,
  kind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions',
  type?: PatchType,
): WriteOptions {
  const [tries, fieldManager, force] = [query.getAll('dryRun'), query.get('fieldManager') ?? '', query.get('force')];
  const causes: FieldCause[] = [];
  if (type === 'apply' && fieldManager === '')
    causes.push({ field: 'fieldManager', message: 'Required value: is required for apply patch' });
  if (kind === 'PatchOptions' && type !== 'apply' && force !== null)
    causes.push({ field: 'force', message: 'Forbidden: may not be specified for non-apply patch' });
  if (fieldManager !== '') causes.push(...managerCauses(fieldManager));
  if (tries.length > 0) causes.push(...dryRunCauses(tries));
  if (causes.length > 0) throw invalidOptions(kind, causes);
  const writer = { fieldManager, userAgent: request.header('user-agent'), warn: tell };
  return { dryRun: tries.length > 0, writer, force: readFlag(force) ?? false };
}

function dryRunCauses(values: readonly string[]): readonly FieldCause[] {
  if (values.every((value) => value === 'All')) return [];
  return [{ field: 'dryRun', message: `Unsupported value: [${values.map(shown).join(',')}]: supported values: "All"` }];
}

function policyCauses(policy: string | null | undefined, orphan: boolean | undefined): readonly FieldCause[] {
  if (policy === undefined || policy === null) return [];
  const field = 'propagationPolicy';
  const both = `Invalid value: ${shown(policy)}: orphanDependents and deletionPropagation cannot be both set`;
  const causes = orphan === undefined ? [] : [{ field, message: both }];
  if ((PROPAGATIONS as readonly unknown[]).includes(policy)) return causes;
  const supported = [...PROPAGATIONS, 'nil'].map((each) => JSON.stringify(each)).join(', ');
  return [...causes, { field, message: `Unsupported value: ${shown(policy)}: supported values: ${supported}` }];
}

/** `orphanDependents`, which older clients send instead of a policy. */
function readOrphan(sent: unknown, query: string | null): boolean | undefined {
  if (sent === undefined || sent === null) return readFlag(query);
  if (typeof sent !== 'boolean') throw badRequest('orphanDependents: expected true or false');
  return sent;
}

/**
 * Reads the options of a deletion: those of its body, and of its query what the body does not say. Upstream ignores the query if there
 * is a body; but nobody who asks for a dry run, or names a uid, wants more to be deleted.
 */
async function readDeleteTerms(task: Task): Promise<OwnDeleteTerms> {
  const bytes = await bodyInTurn(task, MAX_OPTIONS_BYTES);
  const sent = bytes.length === 0 ? null : await readOptions(bytes, typeOf(task.request), task.signal);
  const terms = toDeleteTerms(task, sent ?? {});
  const warning = deletionWarning(task.context, terms);
  if (warning !== undefined) task.tell(warning);
  return terms;
}

interface OwnDeleteTerms extends Pick<DeleteTerms, 'dryRun' | 'preconditions' | 'propagation' | 'gracePeriodSeconds'> {
  /** What older clients send instead of a policy. */
  readonly orphanDependents: boolean | undefined;
}

function toDeleteTerms(task: Task, body: unknown): OwnDeleteTerms {
  const { query } = task;
  if (!isRecord(body) || !isText(body.apiVersion ?? '') || (body.kind !== undefined && body.kind !== 'DeleteOptions'))
    throw badRequest('the body is not a DeleteOptions object');
  if (body[UNSAFE] === true || readFlag(query.get(UNSAFE)) === true) throw refused(409, 'Conflict', IS_READABLE);
  const { propagationPolicy = query.get('propagationPolicy') ?? undefined } = body;
  const dryRun = body.dryRun ?? [];
  if (!Array.isArray(dryRun) || !dryRun.every(isText)) throw badRequest('dryRun: expected a list of strings');
  if (!isText(propagationPolicy ?? '')) throw badRequest('propagationPolicy: expected a string');
  const grace = body.gracePeriodSeconds ?? query.get('gracePeriodSeconds') ?? undefined;
  if (isText(body.gracePeriodSeconds) || typeof grace === 'object' || !/^-?[0-9]{1,18}$/.test(String(grace ?? 0)))
    throw badRequest('gracePeriodSeconds: expected a whole number');
  const tries = [...dryRun, ...query.getAll('dryRun')];
  const orphan = readOrphan(body.orphanDependents, query.get('orphanDependents'));
  const causes = [...policyCauses(propagationPolicy as string | null | undefined, orphan), ...dryRunCauses(tries)];
  if (causes.length > 0) throw invalidOptions('DeleteOptions', causes);
  const asked = orphan === undefined ? propagationPolicy : orphan ? 'Orphan' : 'Background';
  return {
    dryRun: tries.length > 0,
    preconditions: toPreconditions(task, body.preconditions ?? {}),
    propagation: (asked as DeleteTerms['propagation'] | null) ?? undefined,
    orphanDependents: orphan,
    gracePeriodSeconds: grace === undefined ? undefined : Number(grace),
  };
}

/** Deletes what cannot be read, without its finalizers and whatever asks before a deletion. */
const UNSAFE = 'ignoreStoreReadErrorWithClusterBreakingPotential';
const IS_READABLE = `${UNSAFE}: unsafe deletion is not allowed because the object is decodable from storage`;

const isText = (value: unknown): value is string => typeof value === 'string';

/** The longest body of a deletion, in bytes: its options are a few short members. */
const MAX_OPTIONS_BYTES = 65_536;

function readOptions(bytes: Uint8Array, type: string, signal: AbortSignal): Soon<unknown> {
  if (type === PROTOBUF) return done(readDeleteOptions(bytes), signal);
  if (type === YAML_TYPE) return parsedYaml(bytes, { signal });
  if (type !== JSON_TYPE) throw unsupported(type, [JSON_TYPE, YAML_TYPE, PROTOBUF]);
  return parsed(bytes, { signal });
}

/** The preconditions of a deletion. In the URL of a collection, the version is that of its list. */
function toPreconditions({ path, query }: Task, sent: unknown): DeleteTerms['preconditions'] {
  if (!isRecord(sent)) throw badRequest('preconditions: expected an object');
  const { uid: ownUid, resourceVersion: ownVersion } = sent;
  if (!isText(ownUid ?? '') || !isText(ownVersion ?? '')) throw badRequest('preconditions: expected strings');
  const uid = ownUid ?? (query.get('uid') || undefined);
  const resourceVersion = ownVersion ?? ((path.name !== undefined && query.get('resourceVersion')) || undefined);
  const isNone = uid === undefined && resourceVersion === undefined;
  return isNone ? undefined : ({ uid, resourceVersion } as DeleteTerms['preconditions']);
}

/** A watch that delivers one error, and ends. */
function errorWatch(error: unknown): Watch<StorageEvent<KubernetesObject>> {
  async function* events(): AsyncGenerator<StorageEvent<KubernetesObject>> {
    yield { type: 'ERROR', object: statusOf(error).status };
  }
  return fromAsyncIterable(events());
}

/** What a path names: an object, or a subresource, which may have a kind of its own. */
interface Named {
  readonly row: Subresource;
  readonly kind: SeenKind;
}

/** The object or subresource that a request names. Throws 404 if there is no such subresource, and 405 if it does not have the verb. */
export function namedBy(path: ResourcePath, verb: Verb, info: ResourceInfo): Named {
  const row = rowOf(info, path.subresource);
  if (row === undefined) throw shapeOf(info) ? noSuchPath() : notFound(info, path.name as string);
  if (!row.verbs.includes(verb)) throw methodNotAllowed(shapeOf(info) ? undefined : info);
  return { row, kind: row.kind ?? info };
}

/** An admitted request for a resource. */
interface Task extends Named {
  readonly request: WireRequest;
  readonly path: ResourcePath;
  readonly verb: Verb;
  readonly query: URLSearchParams;
  readonly context: ResourceContext;
  readonly signal: AbortSignal;
  readonly maxBodyBytes: number;
  /** How long a watch lasts, in ms, if its client asks for this many, or does not say (0). 0: forever. */
  readonly watchTimeoutMs: (askedMs: number) => number;
  readonly onError: (error: unknown) => void;
  /** Who sends it, for reviews. */
  readonly asker: () => Asker;
  /** Rejects if the client may not create the object of its path. */
  readonly mayCreate: () => Promise<void>;
  /** Called with what is wrong with the fields of a write, whether or not it succeeds. */
  readonly warn: (faults: FieldFaults) => void;
  /** Called with other warnings for the client. */
  readonly tell: (text: string) => void;
}

function presentationOf(task: Task, subject: Subject): Presentation {
  const { request, query, context, onError } = task;
  // Frames of WebSockets are texts.
  const kind = request.header('upgrade') === undefined ? task.kind : undefined;
  return choosePresentation(request.header('accept'), { query, subject, kind, now: context.now, onError });
}

/** Does what a request asks for. Rejects with the refusal. */
export async function perform(task: Task): Promise<Answer> {
  const { verb, signal } = task;
  const turn = paceOf(signal).turn();
  if (turn) {
    await turn;
    signal.throwIfAborted();
  }
  if (verb === 'watch') return watch(task);
  if (verb === 'list') return list(task);
  return OTHERS[verb](task, presentationOf(task, 'object'));
}

const OTHERS: Readonly<Record<Exclude<Verb, 'watch' | 'list'>, (task: Task, presentation: Presentation) => Promise<Answer>>> = {
  get,
  create,
  update,
  patch,
  delete: remove,
  deletecollection: removeMany,
};

async function get(task: Task, presentation: Presentation): Promise<Answer> {
  const { context, query, signal } = task;
  const place = placeOf(task);
  if (!['0', 'false', null].includes(query.get('export'))) throw badRequest(NO_EXPORT);
  const resourceVersion = query.get('resourceVersion') ?? '';
  return answerOf(task, presentation, 200, await getObject(context, place, { resourceVersion, signal }));
}

const NO_EXPORT = 'the export parameter, deprecated since v1.14, is no longer supported';

/** The place of the one object of a request. A namespaced object is not found outside of a namespace. */
function placeOf({ path, context }: Task): NamespacedName {
  const { namespace, name = '' } = path;
  if (context.info.namespaced !== (namespace !== undefined)) throw noSuchPath();
  return { namespace, name };
}

function answerOf(task: Task, presentation: Presentation, code: number, object: KubernetesObject): Soon<Answer> {
  return done(answering(task, presentation, { code, object }), task.signal);
}

function* answering(
  { kind, row, context }: Task,
  { headers, writing }: Presentation,
  { code, object }: { readonly code: number; readonly object: KubernetesObject },
): Work<Answer> {
  const seen = row.view(yield* presenting(context.info, object));
  return { code, headers, body: yield* writing(kind, seen) };
}

/** Does work for a request in pieces. */
function done<R>(work: Work<R>, signal: AbortSignal): Soon<R> {
  return inPieces(work, { signal });
}

/** The check of a write's fields; undefined: they are not checked. */
function fieldCheckOf(task: Task, options: string): Soon<FieldCheck | undefined> {
  const { query, warn } = task;
  const mode = readFieldValidation(query.get('fieldValidation') ?? '', options);
  return mode === 'Ignore' ? undefined : FieldCheck.of(task.kind, mode === 'Warn' ? warn : undefined);
}

async function create(task: Task, presentation: Presentation): Promise<Answer> {
  const { path, context, signal } = task;
  if (path.name !== undefined) return act(task);
  if (context.info.namespaced !== (path.namespace !== undefined)) throw methodNotAllowed();
  const { dryRun, writer } = readWriteOptions(task, 'CreateOptions');
  const terms = { dryRun, writer, signal, namespace: path.namespace, asker: task.asker };
  const sent = await readObject(task, 'CreateOptions');
  return answerOf(task, presentation, 201, await createObject(context, sent, terms));
}

/** A POST to a part of an object changes or deletes the object, and has no other result. */
async function act(task: Task): Promise<Answer> {
  const { context, signal, row, kind } = task;
  const place = placeOf(task);
  const { dryRun, writer } = readWriteOptions(task, 'CreateOptions');
  const sent = normalized(kind, await done(typed(kind, await readObject(task, 'CreateOptions')), signal));
  if (sent.metadata.name !== place.name) throw badRequest(`name in URL does not match name in ${kind.kind} object`);
  const fault = row.fault?.(sent);
  // Upstream says so with the code of a server's failure, before it looks for the object.
  if (fault !== undefined) return jsonAnswer(500, { ...RESULT, status: 'Failure', message: fault, code: 500 });
  const deletion = row.deletion && toDeleteTerms(task, row.deletion(sent));
  if (deletion) await evictObject(context, place, { ...deletion, signal, sent, row, writer });
  else await updateObject(context, { dryRun, writer, signal, place, row, make: () => sent });
  return jsonAnswer(201, { ...RESULT, status: 'Success', code: 201 });
}

const RESULT = { kind: 'Status', apiVersion: 'v1', metadata: {} } as const;

async function update(task: Task, presentation: Presentation): Promise<Answer> {
  const { context, signal, row, mayCreate } = task;
  const place = placeOf(task);
  const { dryRun, writer } = readWriteOptions(task, 'UpdateOptions');
  const sent = await readObject(task, 'UpdateOptions');
  await paceOf(signal).pause();
  const { object, created } = await replaceObject(context, sent, { dryRun, writer, signal, place, row, mayCreate });
  return answerOf(task, presentation, created ? 201 : 200, object);
}

async function patch(task: Task, presentation: Presentation): Promise<Answer> {
  const { context, request, signal, mayCreate, row } = task;
  const place = placeOf(task);
  const type = toPatchType(mediaType(request.header('content-type')), task.kind);
  const { force, ...options } = readWriteOptions(task, 'PatchOptions', type);
  const fields = await fieldCheckOf(task, 'PatchOptions');
  const read = type === 'apply' ? parsedYaml : parsed;
  const sent = await read(await bodyInTurn(task), { signal, again: fields?.again });
  await paceOf(signal).pause();
  const terms = { ...options, signal, place, row };
  if (type === 'apply') {
    const { object, created } = await applyObject(context, { ...terms, config: sent, force, fields, mayCreate });
    return answerOf(task, presentation, created ? 201 : 200, object);
  }
  const make = await done(toChange(sent, { type, info: context.info, row, fields }), signal);
  return answerOf(task, presentation, 200, await updateObject(context, { ...terms, make }));
}

async function remove(task: Task, presentation: Presentation): Promise<Answer> {
  const { context, signal } = task;
  const place = placeOf(task);
  const terms = await readDeleteTerms(task);
  const { object, gone } = await deleteObject(context, place, { ...terms, signal });
  // Only those who ask in this old way are told by the code that the object is still there.
  if (!gone) return answerOf(task, presentation, terms.orphanDependents === false ? 202 : 200, object);
  if (RETURNED_WHEN_GONE.has(context.info.resourceName)) return answerOf(task, presentation, 200, object);
  return jsonAnswer(200, success(context.info, object));
}

/** The answer that says that an object is gone. */
function success({ group, plural }: ResourceInfo, { metadata }: KubernetesObject): object {
  const details = { name: metadata?.name, ...(group && { group }), kind: plural, uid: metadata?.uid };
  return { ...RESULT, status: 'Success', details };
}

async function removeMany(task: Task): Promise<Answer> {
  const { context, path, query, signal } = task;
  // Objects of all namespaces can be read together, but not deleted: a client that forgets the namespace must not lose them all.
  if (context.info.namespaced !== (path.namespace !== undefined) || context.empty) throw methodNotAllowed();
  const terms = await readDeleteTerms(task);
  const asked = { ...readListQuery(query), watch: false };
  // The version is that of the first page; the `continue` of later pages contains it.
  const later = { ...asked, resourceVersion: '', resourceVersionMatch: '' };
  const items = await deleteObjects(context, path.namespace, {
    ...terms,
    signal,
    limit: asked.limit,
    list: (page) => {
      const parameters = page.continue === '' ? { ...asked, limit: page.limit } : { ...later, ...page };
      return listObjects(context, { namespace: path.namespace, parameters, signal });
    },
  });
  const resourceVersion = await context.storage.currentVersion({ signal });
  return await listAnswer(PLAIN.headers, PLAIN.list(context.info, { items, resourceVersion }), paceOf(signal));
}

async function list(task: Task): Promise<Answer> {
  const { context, path, query, signal } = task;
  const presentation = presentationOf(task, 'list');
  const list = await listObjects(context, { namespace: path.namespace, parameters: readListQuery(query), signal });
  if (presentation.prepareList) await done(presentation.prepareList(context.info, list), signal);
  return await listAnswer(presentation.headers, presentation.list(context.info, list), paceOf(signal));
}

async function listAnswer(headers: Presentation['headers'], pieces: Iterable<Uint8Array>, pace: Pace): Promise<Answer> {
  const source = new PiecesSource(pieces, { pace });
  const body = await source.whole();
  if (body !== undefined) return { code: 200, headers, body };
  return { code: 200, headers, source, isWatch: false, sse: false, timeoutMs: 0, slot: undefined };
}

async function watch(task: Task): Promise<Answer> {
  const { context, path, query, request, signal, onError } = task;
  if (path.name !== undefined) placeOf(task);
  // Negotiated first, so that a refusal opens no watch.
  const presentation = presentationOf(task, 'watch');
  const sse = wantsEventStream(request.header('accept'));
  const parameters = readListQuery(query, path.forcedWatch);
  const { asked, state, version } = sse ? await resumable(task, parameters) : { asked: parameters };
  const timeoutMs = task.watchTimeoutMs(asked.timeoutSeconds * 1_000);
  let refused = false;
  const watch = await watchObjects(context, {
    namespace: path.namespace,
    name: path.name,
    // The session ends it. The storage gets the timeout only for the last BOOKMARK, which it sends before that.
    parameters: { ...asked, timeoutSeconds: asked.allowWatchBookmarks ? Math.ceil(timeoutMs / 1_000) : 0 },
    signal,
  }).catch((error: unknown) => {
    // Clients expect these errors as an event, as a server with a cache sends them.
    refused = hasCode(error, 410) || (hasCode(error, 504) && isWatchError(error));
    if (refused) return errorWatch(error);
    throw error;
  });
  const events = presentation.events(context.info);
  const { allowWatchBookmarks: bookmarks } = parameters;
  const encoder = state === undefined ? events : new EventStream(events, { state, bookmarks });
  const source = new WatchSource(watch, encoder, { onError, version: refused ? undefined : version, pace: paceOf(signal) });
  const { resourceName: resource } = context.info;
  const { watchContentType: type } = presentation;
  const headers = { ...streamHeaders(sse), ...(type !== undefined && { 'content-type': type }) };
  return { code: 200, headers, source, isWatch: true, resource, sse, timeoutMs, slot: undefined };
}

/**
 * The request of a client of Server-Sent Events. It resumes after the last id that it got, whatever its URL says, and needs
 * BOOKMARKs for ids between events. `version` is where its stream starts, unless it begins with the state.
 */
async function resumable(
  { context, request, signal }: Task,
  parameters: ListParameters,
): Promise<{ asked: ListParameters; state: boolean; version?: string }> {
  const back = request.header('last-event-id');
  const resumed = back && { resourceVersion: back, sendInitialEvents: undefined, resourceVersionMatch: '' };
  const asked = { ...parameters, ...resumed, allowWatchBookmarks: true };
  const isUnset = asked.resourceVersion === '' || asked.resourceVersion === '0';
  if (asked.sendInitialEvents ?? isUnset) return { asked, state: true };
  const version = isUnset ? await context.storage.currentVersion({ signal }) : asked.resourceVersion;
  return { asked: { ...asked, resourceVersion: version }, state: false, version };
}
