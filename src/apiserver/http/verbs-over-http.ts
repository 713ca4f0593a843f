/** The verbs over HTTP: parameters and bodies become terms, and results become answers. Upstream: `endpoints/handlers`. */

import { streamHeaders } from '../../bridge/transport/http-head.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { encoding } from '../../storage/values.ts';
import { isPromise } from '../../watch/abort.ts';
import { isWatchError } from '../../watch/errors.ts';
import { inPieces, type Pace, paceOf, type Soon, type Work } from '../../watch/fair-queue.ts';
import { hasCode, methodNotAllowed, noSuchPath } from '../api-status.ts';
import type { ResourcePath, Verb } from '../request/path.ts';
import { type ListParameters, readListQuery } from '../request/query.ts';
import type { ResourceInfo } from '../resource-info.ts';
import { FieldCheck, type FieldFaults, readFieldValidation } from '../validation/field-check.ts';
import { toChange } from '../verbs/change.ts';
import { getObject, listObjects, presented, watchObjects } from '../verbs/read.ts';
import { deleteObject, deleteObjects } from '../verbs/remove.ts';
import type { NamespacedName, ResourceContext } from '../verbs/resource-context.ts';
import { createObject, type UpdateTerms, updateObject } from '../verbs/write.ts';
import { readDeleteTerms, readDryRun, readObject, readPatch, type WrittenBodyMeans } from './body.ts';
import { errorWatch } from './error-watch.ts';
import { EventStream } from './event-stream.ts';
import { choosePresentation, PLAIN, type Presentation, type Subject, wantsEventStream } from './presentation.ts';
import { Continued, PiecesSource, WatchSource } from './sources.ts';
import { type Answer, JSON_HEADERS, jsonAnswer, type WireRequest } from './wire.ts';

/** An admitted request for a resource. */
interface Task {
  readonly request: WireRequest;
  readonly path: ResourcePath;
  readonly verb: Verb;
  readonly query: URLSearchParams;
  readonly context: ResourceContext;
  readonly signal: AbortSignal;
  readonly maxBodyBytes: number;
  /** How long a watch lasts whose client asks for this many ms, or for none in particular (0); 0: for ever. */
  readonly watchTimeoutMs: (askedMs: number) => number;
  readonly onError: (error: unknown) => void;
  /** Called with what is wrong with the fields of a write, whether or not it succeeds. */
  readonly warn: (faults: FieldFaults) => void;
}

function presentationOf({ request, query, context, onError }: Task, subject: Subject): Presentation {
  return choosePresentation(request.header('accept'), { query, subject, now: context.now, onError });
}

/** Does what a request asks for. Rejects with the refusal. */
export async function perform(task: Task): Promise<Answer> {
  const { verb, signal } = task;
  const turn = paceOf(signal).turn();
  if (turn) {
    await turn;
    signal.throwIfAborted();
  }
  checkSubresource(task);
  if (verb === 'watch') return watch(task);
  if (verb === 'list') return list(task);
  const presentation = presentationOf(task, 'object');
  if (verb === 'get') {
    const resourceVersion = task.query.get('resourceVersion') ?? '';
    return shown(task, presentation, 200, await getObject(task.context, placeOf(task), { resourceVersion, signal: task.signal }));
  }
  if (verb === 'create') return create(task, presentation);
  if (verb === 'update' || verb === 'patch') return update(task, presentation);
  if (verb === 'delete') return remove(task, presentation);
  verb satisfies 'deletecollection';
  return removeMany(task);
}

/** The only subresource is `status`, and it can only be read and written. */
function checkSubresource({ path, verb, context }: Task): void {
  if (path.subresource === undefined) return;
  if (path.subresource !== 'status' || !context.info.status) throw noSuchPath();
  if (verb !== 'get' && verb !== 'update' && verb !== 'patch') throw methodNotAllowed();
}

/** The place of the one object of a request. A namespaced object is not found outside of a namespace. */
function placeOf({ path, context }: Task): NamespacedName {
  const { namespace, name = '' } = path;
  if (context.info.namespaced !== (namespace !== undefined)) throw noSuchPath();
  return { namespace, name };
}

function shown({ context, signal }: Task, presentation: Presentation, code: number, object: KubernetesObject): Soon<Answer> {
  const seen = presented(context.info, object);
  const answer = (): Answer => ({ code, headers: JSON_HEADERS, body: presentation.object(context.info, seen) });
  // What is not stored has no JSON yet.
  const bytes = presentation === PLAIN ? done(encoding(seen, true), signal) : undefined;
  return isPromise(bytes) ? bytes.then(answer) : answer();
}

/** Does work for a request in pieces. */
function done<R>(work: Work<R>, signal: AbortSignal): Soon<R> {
  return inPieces(work, { pace: paceOf(signal), signal });
}

/** The check of a write's fields; undefined: they are not checked. */
async function fieldCheckOf({ query, context, warn }: Task, options: string): Promise<FieldCheck | undefined> {
  const mode = readFieldValidation(query.get('fieldValidation') ?? '', options);
  return mode === 'Ignore' ? undefined : await FieldCheck.of(context.info, mode === 'Warn' ? warn : undefined);
}

/** What is needed to read a body. */
function bodyOf({ maxBodyBytes, signal, context }: Task, fields: FieldCheck | undefined): WrittenBodyMeans {
  return { maxBodyBytes, signal, kind: context.info, again: fields?.again };
}

async function create(task: Task, presentation: Presentation): Promise<Answer> {
  const { path, context, query, signal } = task;
  if (context.info.namespaced !== (path.namespace !== undefined)) throw methodNotAllowed();
  const terms = { dryRun: readDryRun(query.getAll('dryRun'), 'CreateOptions'), signal, namespace: path.namespace };
  const fields = await fieldCheckOf(task, 'CreateOptions');
  const sent = await readObject(task.request, bodyOf(task, fields));
  await paceOf(signal).pause();
  if (fields) await done(fields.object(sent), signal);
  return shown(task, presentation, 201, await createObject(context, sent, terms));
}

async function update(task: Task, presentation: Presentation): Promise<Answer> {
  const { path, context, verb, query, signal } = task;
  const place = placeOf(task);
  const dryRun = readDryRun(query.getAll('dryRun'), verb === 'patch' ? 'PatchOptions' : 'UpdateOptions');
  const make = verb === 'patch' ? await readChange(task) : await readReplacement(task);
  await paceOf(signal).pause();
  const terms = { dryRun, signal, place, status: path.subresource === 'status', make };
  return shown(task, presentation, 200, await updateObject(context, terms));
}

/** Reads the object that replaces the stored one. */
async function readReplacement(task: Task): Promise<UpdateTerms['make']> {
  const fields = await fieldCheckOf(task, 'UpdateOptions');
  const sent = await readObject(task.request, bodyOf(task, fields));
  await paceOf(task.signal).pause();
  if (fields) await done(fields.object(sent), task.signal);
  return () => sent;
}

/** Reads the patch of an object. */
async function readChange(task: Task): Promise<UpdateTerms['make']> {
  const { info: kind } = task.context;
  const fields = await fieldCheckOf(task, 'PatchOptions');
  const { type, patch } = await readPatch(task.request, bodyOf(task, fields));
  await paceOf(task.signal).pause();
  return done(toChange(patch, { type, kind, fields }), task.signal);
}

async function remove(task: Task, presentation: Presentation): Promise<Answer> {
  const { context, request, query, signal } = task;
  const place = placeOf(task);
  const terms = await readDeleteTerms(request, query, task);
  const { object, gone } = await deleteObject(context, place, { ...terms, signal });
  if (!gone) return shown(task, presentation, 200, object);
  return jsonAnswer(200, success(context.info, object));
}

/** The answer that says that an object is gone. */
function success({ group, plural }: ResourceInfo, { metadata }: KubernetesObject): object {
  const details = { name: metadata?.name, ...(group && { group }), kind: plural, uid: metadata?.uid };
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
}

async function removeMany(task: Task): Promise<Answer> {
  const { context, path, query, request, signal } = task;
  // Objects of all namespaces can only be read together: a client that forgets a namespace, or its name, must not lose them all.
  if (context.info.namespaced !== (path.namespace !== undefined) || context.empty) throw methodNotAllowed();
  const terms = await readDeleteTerms(request, query, task);
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
  return await listAnswer(PLAIN.list(context.info, { items, resourceVersion }), paceOf(signal));
}

async function list(task: Task): Promise<Answer> {
  const { context, path, query, signal } = task;
  const presentation = presentationOf(task, 'list');
  const list = await listObjects(context, { namespace: path.namespace, parameters: readListQuery(query), signal });
  return await listAnswer(presentation.list(context.info, list), paceOf(signal));
}

/** A list may be longer than a string can be. */
async function listAnswer(pieces: Iterable<Uint8Array>, pace: Pace): Promise<Answer> {
  const source = new PiecesSource(pieces, pace);
  const first = await source.next();
  const second = first && (await source.next());
  if (second === undefined) return { code: 200, headers: JSON_HEADERS, body: first ?? null };
  const rest = new Continued(first as Uint8Array, new Continued(second, source));
  return { code: 200, headers: JSON_HEADERS, source: rest, isWatch: false, sse: false, timeoutMs: 0, slot: undefined };
}

async function watch(task: Task): Promise<Answer> {
  const { context, path, query, request, signal, onError } = task;
  // Negotiated first: a later refusal would have opened a watch for nothing.
  const presentation = presentationOf(task, 'watch');
  const sse = wantsEventStream(request.header('accept'));
  const parameters = readListQuery(query, path.forcedWatch);
  const { asked, state, version } = sse ? await resumable(task, parameters) : { asked: parameters };
  const timeoutMs = task.watchTimeoutMs(asked.timeoutSeconds * 1_000);
  let refused = false;
  const watch = await watchObjects(context, {
    namespace: path.namespace,
    name: path.name,
    // The session ends it. The storage gets the time only for the last BOOKMARK, which comes before that.
    parameters: { ...asked, timeoutSeconds: asked.allowWatchBookmarks ? Math.ceil(timeoutMs / 1_000) : 0 },
    signal,
  }).catch((error: unknown) => {
    // Clients expect these as an event, as a server with a cache sends them.
    refused = hasCode(error, 410) || (hasCode(error, 504) && isWatchError(error));
    if (refused) return errorWatch(error);
    throw error;
  });
  const events = presentation.events(context.info);
  const { allowWatchBookmarks: bookmarks } = parameters;
  const encoder = state === undefined ? events : new EventStream(events, { state, bookmarks });
  const source = new WatchSource(watch, encoder, { onError, version: refused ? undefined : version, pace: paceOf(signal) });
  const { resourceName: resource } = context.info;
  return { code: 200, headers: streamHeaders(sse), source, isWatch: true, resource, sse, timeoutMs, slot: undefined };
}

/**
 * The request of a client of Server-Sent Events. It resumes after the last id that it got, whatever its URL says, and needs
 * BOOKMARKs to get ids where no event has one. `version` is where its stream starts, unless it begins with the state.
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
