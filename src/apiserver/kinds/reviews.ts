/**
 * Reviews: objects whose creation asks a question. They are returned with the answer in their status, and never stored.
 *
 *     kubectl auth can-i create orders ---> SelfSubjectAccessReview ---> `authorize` ---> status: { allowed }
 *     kubectl auth can-i --list        ---> SelfSubjectRulesReview  ---> `authorize`, for each verb of each resource
 *     kubectl auth whoami              ---> SelfSubjectReview       ---> what `authenticate` has returned
 *     a server about its clients       ---> TokenReview             ---> `authenticateToken`
 *                                      ---> SubjectAccessReview     ---> `authorize`, for what `identityOf` returns
 *                                           (and LocalSubjectAccessReview)
 */

import type { KubernetesObject } from '../../cache/object.ts';
import { isRecord } from '../../watch/errors.ts';
import { badRequest, hasCode, invalidObject, statusOf } from '../api-status.ts';
import type { FieldCause, ResourceDefinition } from '../definition.ts';
import { shown } from './common.ts';
import type { NamedKind } from './tables.ts';

const AUTHORIZATION = { group: 'authorization.k8s.io', version: 'v1', namespaced: false } as const;
const AUTHENTICATION = { group: 'authentication.k8s.io', version: 'v1', namespaced: false } as const;

/** A user, as a kube-apiserver knows them. Upstream: `authentication.k8s.io` `UserInfo`. */
export interface UserInfo {
  /** Such as `system:serviceaccount:default:builder`. */
  readonly username?: string | undefined;
  readonly uid?: string | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

/**
 * What the asker may do, and what others may: `selfsubjectaccessreviews`, `selfsubjectrulesreviews`, `subjectaccessreviews` and
 * `localsubjectaccessreviews` of `authorization.k8s.io/v1`; who the asker is, and who has a token: `selfsubjectreviews` and
 * `tokenreviews` of `authentication.k8s.io/v1`.
 */
export const REVIEWS: readonly ResourceDefinition[] = [
  { ...AUTHORIZATION, plural: 'selfsubjectaccessreviews', kind: 'SelfSubjectAccessReview' },
  { ...AUTHORIZATION, plural: 'selfsubjectrulesreviews', kind: 'SelfSubjectRulesReview' },
  { ...AUTHORIZATION, plural: 'subjectaccessreviews', kind: 'SubjectAccessReview' },
  { ...AUTHORIZATION, plural: 'localsubjectaccessreviews', kind: 'LocalSubjectAccessReview', namespaced: true },
  { ...AUTHENTICATION, plural: 'selfsubjectreviews', kind: 'SelfSubjectReview' },
  { ...AUTHENTICATION, plural: 'tokenreviews', kind: 'TokenReview' },
];

/** A resource, as far as a review of rules tells of it. */
interface ServedResource {
  readonly plural: string;
  readonly group: string;
  readonly resourceName: string;
  readonly main: ServedPart;
  readonly subresources: readonly ServedPart[];
}

interface ServedPart {
  readonly name: string;
  readonly verbs: readonly string[];
}

/** Who asks. */
export interface Asker {
  /** What `authenticate` has returned; undefined: everybody is admitted. */
  readonly identity: unknown;
  /** Why a request is not allowed; undefined if it is. */
  readonly denial: (
    verb: string,
    resource: string,
    place: { readonly namespace: string | undefined; readonly name: string | undefined },
  ) => Promise<string | undefined>;
  /** What is served. */
  readonly resources: () => readonly ServedResource[];
  /** Another user, as if they asked. Rejects with 403 if there is no such user. */
  readonly as: (user: UserInfo) => Promise<Asker>;
  /** The identity of whoever has a token. Rejects with 401 if nobody has. Undefined: no token is known. */
  readonly holder: ((token: string) => Promise<unknown>) | undefined;
}

/** Answers a review. */
type Review = (spec: Readonly<Record<string, unknown>>, asker: Asker) => Promise<object>;

const ANSWERS: Readonly<Record<string, Review>> = {
  'authorization.k8s.io/v1/SelfSubjectAccessReview': access,
  'authorization.k8s.io/v1/SelfSubjectRulesReview': rules,
  'authorization.k8s.io/v1/SubjectAccessReview': accessOfAnother,
  'authorization.k8s.io/v1/LocalSubjectAccessReview': accessOfAnother,
  'authentication.k8s.io/v1/TokenReview': token,
  'authentication.k8s.io/v1/SelfSubjectReview': async (_, { identity }) => ({ userInfo: userOf(identity) }),
};

/** The answer to a review: the object that was sent, with its status. */
export async function reviewed(
  info: NamedKind,
  sent: KubernetesObject,
  { asker, namespace, now }: { asker: Asker; namespace: string | undefined; now: string },
): Promise<KubernetesObject> {
  const { apiVersion, kind, metadata = {}, spec } = sent as KubernetesObject & { spec?: unknown };
  const asked = isRecord(spec) ? spec : {};
  const faults = /^(Self|Local)?SubjectAccessReview$/.test(info.kind)
    ? faultsOf(info.kind, { metadata, namespace, spec: asked })
    : [];
  if (faults.length > 0) {
    // Upstream names neither the kind nor the object.
    const about = { ...AUTHORIZATION, plural: '', kind: '', resourceName: '', kindName: `.${AUTHORIZATION.group}` };
    throw invalidObject(about, '', faults);
  }
  const status = await (ANSWERS[`${info.group}/${info.version}/${info.kind}`] as Review)(asked, asker);
  const told = 'userInfo' in status ? { ...metadata, creationTimestamp: now } : { ...metadata, ...(namespace && { namespace }) };
  return { apiVersion, kind, metadata: told, ...(spec !== undefined && { spec }), status } as KubernetesObject;
}

/** The specification of an access review. */
interface Access {
  readonly resourceAttributes?: Readonly<Record<string, string>>;
  readonly nonResourceAttributes?: Readonly<Record<string, string>>;
  readonly user?: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** What is wrong with an access review. Upstream: `ValidateSubjectAccessReview` and those of the other two. */
function faultsOf(
  kind: string,
  { metadata, namespace, spec }: { metadata: object; namespace: string | undefined; spec: Access },
): FieldCause[] {
  const { resourceAttributes, nonResourceAttributes, user = '', groups = [] } = spec;
  const faults: FieldCause[] = [];
  const fault = (field: string, value: unknown, message: string): void => {
    faults.push({ field, message: `Invalid value: ${shown(value ?? null)}: ${message}` });
  };
  if ((resourceAttributes === undefined) === (nonResourceAttributes === undefined)) {
    const message = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
    fault('spec', nonResourceAttributes, message);
  }
  if (!kind.startsWith('Self') && user === '' && groups.length === 0) {
    fault('spec.user', user, 'at least one of user or group must be specified');
  }
  const isLocal = kind.startsWith('Local');
  const members = Object.keys(metadata).filter((each) => !isLocal || each !== 'namespace');
  if (members.length > 0) fault('metadata', metadata, isLocal ? 'must be empty except for namespace' : 'must be empty');
  if (!isLocal) return faults;
  const asked = resourceAttributes?.namespace ?? '';
  if (resourceAttributes && asked !== namespace)
    fault('spec.resourceAttributes.namespace', asked, 'must match metadata.namespace');
  if (nonResourceAttributes) fault('spec.nonResourceAttributes', nonResourceAttributes, 'disallowed on this kind of request');
  return faults;
}

/** What a TokenReview says of a token. */
async function token({ token = '' }: { readonly token?: string }, { holder }: Asker): Promise<object> {
  if (token === '') throw badRequest('token is required for TokenReview in authentication');
  if (holder === undefined) return { user: {}, error: 'this server knows no tokens: `authenticateToken` is not set' };
  try {
    return { authenticated: true, user: userOf(await holder(token)) };
  } catch (error) {
    if (!hasCode(error, 401) && !hasCode(error, 403)) throw error;
    return { user: {}, error: 'invalid bearer token' };
  }
}

/** Whether somebody else may do something. */
async function accessOfAnother(spec: Access, asker: Asker): Promise<object> {
  const { user: username, uid, groups, extra } = spec;
  try {
    return await access(spec, await asker.as({ username, uid, groups, extra }));
  } catch (error) {
    if (!hasCode(error, 401) && !hasCode(error, 403)) throw error;
    return { allowed: false, reason: statusOf(error).status.message };
  }
}

async function access({ resourceAttributes, nonResourceAttributes }: Access, asker: Asker): Promise<object> {
  const {
    verb = '',
    path = '',
    group = '',
    resource = '',
    subresource = '',
    namespace = '',
    name = '',
  } = resourceAttributes ?? nonResourceAttributes ?? {};
  const asked = resourceAttributes ? nameOf(resource, group, subresource) : path;
  const reason = await asker.denial(verb.toLowerCase(), asked, { namespace: namespace || undefined, name: name || undefined });
  return reason === undefined ? { allowed: true } : { allowed: false, reason };
}

/** The name of a resource as `authorize` gets it. */
const nameOf = (plural: string, group: string, subresource: string): string =>
  `${plural}${group && `.${group}`}${subresource && `/${subresource}`}`;

/** The most questions for one review. */
const MAX_QUESTIONS = 2_000;

async function rules({ namespace }: { readonly namespace?: string }, asker: Asker): Promise<object> {
  if (!namespace) throw badRequest('no namespace on request');
  const resourceRules: object[] = [];
  let left = MAX_QUESTIONS;
  for (const { plural, group, resourceName, main, subresources } of asker.resources()) {
    for (const { name, verbs } of [main, ...subresources]) {
      left -= verbs.length;
      if (left < 0) break;
      const part = name && `/${name}`;
      const allowed: string[] = [];
      for (const verb of verbs) {
        const denied = await asker.denial(verb, resourceName + part, { namespace, name: undefined });
        if (denied === undefined) allowed.push(verb);
      }
      if (allowed.length > 0) resourceRules.push({ verbs: allowed, apiGroups: [group], resources: [plural + part] });
    }
  }
  return { resourceRules, nonResourceRules: [], incomplete: left < 0 };
}

/** The known parts of an identity. A client without one is `system:anonymous`. */
export function userOf(identity: unknown): object {
  if (typeof identity === 'string') return { username: identity, groups: ['system:authenticated'] };
  if (!isRecord(identity)) return { username: 'system:anonymous', groups: ['system:unauthenticated'] };
  const { username = identity.name, uid, groups, extra } = identity;
  const further = isRecord(extra) ? Object.entries(extra).filter(([, values]) => isTexts(values)) : [];
  return {
    ...(isText(username) && { username }),
    ...(isText(uid) && { uid }),
    groups: Array.isArray(groups) ? groups.filter(isText).slice(0, 1_000) : ['system:authenticated'],
    ...(further.length > 0 && { extra: Object.fromEntries(further.slice(0, 1_000)) }),
  };
}

const isText = (value: unknown): value is string => typeof value === 'string';
const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText);
