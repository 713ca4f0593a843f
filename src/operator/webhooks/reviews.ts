/**
 * A kube-apiserver's questions to a webhook, and the answers: `AdmissionReview` of `admission.k8s.io/v1`, and
 * `ConversionReview` of `apiextensions.k8s.io/v1`. Independent of HTTP.
 */

import {
  type AdmissionHooks,
  type AdmissionReview,
  checkSaid,
  Denied,
  deny,
  OPERATIONS,
  OPTIONS,
  warnInto,
} from '../../apiserver/admission.ts';
import { badRequest } from '../../apiserver/api-status.ts';
import type { Convert } from '../../apiserver/definition.ts';
import { toBase64 } from '../../apiserver/kinds/base64.ts';
import type { UserInfo } from '../../apiserver/kinds/reviews.ts';
import type { Json } from '../../apiserver/request/json.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { parsing, stringifying } from '../../storage/json.ts';
import { isAbortOf } from '../../watch/abort.ts';
import { isRecord, shownOf } from '../../watch/errors.ts';
import type { Soon, Work } from '../../watch/fair-queue.ts';
import { diffing } from './json-diff.ts';

/** What is needed to answer. */
export interface ReviewDeps {
  /** Does work in pieces. */
  readonly done: <R>(work: Work<R>) => Soon<R>;
  /** Aborts when nobody waits for the answer. */
  readonly signal: AbortSignal;
  /** Gets the errors that hooks throw: the client does not. */
  readonly onError: (error: unknown) => void;
}

/** Clients do not see what a hook throws. */
const FAILED = { code: 500, reason: 'InternalError', message: 'Internal error occurred' };

/** The answer to an AdmissionReview. Throws 400 for anything else, and the signal's reason if it aborts. */
export async function answeredAdmission(
  body: unknown,
  { hook, hooks, ...deps }: ReviewDeps & { readonly hook: 'mutate' | 'validate'; readonly hooks: AdmissionHooks<UserInfo> },
): Promise<object> {
  const { apiVersion, request } = reviewIn(body, 'AdmissionReview', 'admission.k8s.io/v1');
  const uid = text(request, 'uid');
  const facts = factsOf(request);
  const warnings: string[] = [];
  const { signal, onError } = deps;
  const answer = (response: object): object => {
    const told = warnings.length > 0 && { warnings };
    return { kind: 'AdmissionReview', apiVersion, response: { uid, ...response, ...told } };
  };
  // There is nothing to change in a deletion.
  if (hook === 'mutate' && facts.object === undefined) return answer({ allowed: true });
  const review = { ...facts, deny, warn: warnInto(warnings), signal };
  try {
    if (hook === 'validate') checkSaid(hook, facts.resource, await hooks.validate?.(review));
    else return answer({ allowed: true, ...(await patchBy(hooks, review as Writing, deps)) });
  } catch (error) {
    if (signal.aborted && !(error instanceof Denied) && !isAbortOf(signal, error))
      onError(new Error(`webhook: ${hook} of ${facts.resource} failed after its timeout`, { cause: error }));
    signal.throwIfAborted();
    if (error instanceof Denied) {
      const { code, reason, message } = error;
      return answer({ allowed: false, status: { code, ...(reason && { reason }), ...(message && { message }) } });
    }
    onError(new Error(`webhook: ${hook} of ${facts.resource} failed`, { cause: error }));
    return answer({ allowed: false, status: FAILED });
  }
  return answer({ allowed: true });
}

type Writing = AdmissionReview<UserInfo> & { readonly object: KubernetesObject };

/** What `mutate` changes, as a part of the answer. */
async function patchBy(hooks: AdmissionHooks<UserInfo>, review: Writing, { done }: ReviewDeps): Promise<object> {
  const before = await done(stringifying(review.object));
  const made = checkSaid('mutate', review.resource, await hooks.mutate?.(review)) ?? review.object;
  const after = await done(stringifying(made));
  if (after === before) return {};
  const [old, now] = [await done(parsing(before)), await done(parsing(after))] as [Json, Json];
  const operations = await done(diffing(old, now));
  if (operations.length === 0) return {};
  const patch = new TextEncoder().encode(await done(stringifying(operations)));
  return { patchType: 'JSONPatch', patch: await done(toBase64(patch)) };
}

/** The answer to a ConversionReview. Throws 400 for anything else. */
export async function answeredConversion(
  body: unknown,
  { convert, done, signal, onError }: ReviewDeps & { readonly convert: Convert },
): Promise<object> {
  const { apiVersion, request } = reviewIn(body, 'ConversionReview', 'apiextensions.k8s.io/v1');
  const uid = text(request, 'uid');
  const version = text(request, 'desiredAPIVersion');
  const { objects } = request;
  if (!Array.isArray(objects)) throw expected('request.objects', objects, 'a list');
  const answer = (response: object): object => ({ kind: 'ConversionReview', apiVersion, response: { uid, ...response } });
  try {
    const convertedObjects = await done(converting(objects, version, convert));
    return answer({ result: { status: 'Success' }, convertedObjects });
  } catch (error) {
    signal.throwIfAborted();
    onError(new Error(`webhook: convert to ${version} failed`, { cause: error }));
    return answer({ result: { status: 'Failure', ...FAILED } });
  }
}

function* converting(objects: readonly unknown[], version: string, convert: Convert): Work<readonly object[]> {
  const converted: object[] = [];
  for (const object of objects) {
    converted.push(convert(object as KubernetesObject, version));
    yield;
  }
  return converted;
}

/** The review in a body, with its kind and version. */
function reviewIn(body: unknown, kind: string, apiVersion: string): { readonly apiVersion: string; readonly request: Json } {
  if (!isRecord(body)) throw expected('the body', body, `an object of the kind ${kind}`);
  if (body.kind !== kind) throw expected('kind', body.kind, kind);
  if (body.apiVersion !== apiVersion) throw expected('apiVersion', body.apiVersion, apiVersion);
  if (!isRecord(body.request)) throw expected('request', body.request, 'an object');
  return { apiVersion, request: body.request };
}

/** What the request says, without the functions. */
function factsOf(request: Json): Omit<AdmissionReview<UserInfo>, 'deny' | 'warn' | 'signal'> {
  const { operation, resource, dryRun = false, userInfo = {}, options } = request;
  if (!isOperation(operation)) throw expected('request.operation', operation, `one of ${OPERATIONS.join(', ')}`);
  if (!isRecord(resource)) throw expected('request.resource', resource, 'an object');
  if (typeof dryRun !== 'boolean') throw expected('request.dryRun', dryRun, 'true or false');
  if (!isRecord(userInfo)) throw expected('request.userInfo', userInfo, 'an object');
  const group = text(resource, 'group', '');
  const plural = text(resource, 'resource');
  return {
    operation,
    resource: group === '' ? plural : `${plural}.${group}`,
    subresource: text(request, 'subResource', '') || undefined,
    namespace: text(request, 'namespace', '') || undefined,
    name: text(request, 'name', ''),
    object: objectIn(request, 'object'),
    oldObject: objectIn(request, 'oldObject'),
    dryRun,
    user: userInfo,
    options: optionsOf(options),
  };
}

function isOperation(value: unknown): value is AdmissionReview['operation'] {
  return (OPERATIONS as readonly unknown[]).includes(value);
}

/** The options in a review, as texts. */
function optionsOf(options: unknown): Readonly<Record<string, string>> {
  if (!isRecord(options)) return {};
  const given = OPTIONS.filter((name) => ['string', 'number', 'boolean'].includes(typeof options[name]));
  return Object.fromEntries(given.map((name) => [name, String(options[name])]));
}

function objectIn(request: Json, name: 'object' | 'oldObject'): KubernetesObject | undefined {
  const value = request[name] ?? undefined;
  if (value !== undefined && !isRecord(value)) throw expected(`request.${name}`, value, 'an object');
  return value;
}

/** A member that is a text, which may be left out if there is a fallback. */
function text(object: Json, name: string, fallback?: string): string {
  const value = object[name] ?? fallback;
  if (typeof value !== 'string' || (fallback === undefined && value === '')) throw expected(name, value, 'a text');
  return value;
}

function expected(name: string, value: unknown, what: string): Error {
  return badRequest(`${name}: expected ${what}, got ${shownOf(value).slice(0, 80)}`);
}
