/**
 * Reviews: objects whose creation asks a question. They are returned with the answer in their status, and never stored.
 *
 *     kubectl auth can-i create orders ---> SelfSubjectAccessReview ---> `authorize` ---> status: { allowed }
 *     kubectl auth can-i --list        ---> SelfSubjectRulesReview  ---> `authorize`, for each verb of each resource
 *     kubectl auth whoami              ---> SelfSubjectReview       ---> what `authenticate` has returned
 */

import type { KubernetesObject } from '../../cache/object.ts';
import { isRecord } from '../../watch/errors.ts';
import { badRequest, invalidObject } from '../api-status.ts';
import type { ResourceDefinition } from '../definition.ts';
import type { ResourceInfo } from '../resource-info.ts';
import { shown } from './common.ts';

const AUTHORIZATION = { group: 'authorization.k8s.io', version: 'v1', namespaced: false } as const;
const AUTHENTICATION = { group: 'authentication.k8s.io', version: 'v1', namespaced: false } as const;

/** `selfsubjectaccessreviews` and `selfsubjectrulesreviews` of `authorization.k8s.io/v1`, `selfsubjectreviews` of `authentication.k8s.io/v1`. */
export const REVIEWS: readonly ResourceDefinition[] = [
  { ...AUTHORIZATION, plural: 'selfsubjectaccessreviews', kind: 'SelfSubjectAccessReview' },
  { ...AUTHORIZATION, plural: 'selfsubjectrulesreviews', kind: 'SelfSubjectRulesReview' },
  { ...AUTHENTICATION, plural: 'selfsubjectreviews', kind: 'SelfSubjectReview' },
];

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
  readonly resources: readonly ResourceInfo[];
}

/** Callers in the same process, for whom nothing is checked. */
export const TRUSTED: Asker = { identity: undefined, denial: async () => undefined, resources: [] };

/** Answers a review. */
type Review = (spec: Readonly<Record<string, unknown>>, asker: Asker) => Promise<object>;

const ANSWERS: Readonly<Record<string, Review>> = {
  'authorization.k8s.io/v1/SelfSubjectAccessReview': access,
  'authorization.k8s.io/v1/SelfSubjectRulesReview': rules,
  'authentication.k8s.io/v1/SelfSubjectReview': async (_, { identity }) => ({ userInfo: userOf(identity) }),
};

/** The answer to a review: the object that was sent, with its status. */
export async function reviewed(
  info: ResourceInfo,
  sent: KubernetesObject,
  { asker, now }: { asker: Asker; now: string },
): Promise<KubernetesObject> {
  const { apiVersion, kind, metadata, spec } = sent as KubernetesObject & { spec?: unknown };
  if (metadata?.namespace)
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  const answer = ANSWERS[`${info.group}/${info.version}/${info.kind}`] as Review;
  // Upstream checks the metadata of these reviews only.
  if (info.kind === 'SelfSubjectAccessReview' && Object.keys(metadata ?? {}).length > 0) {
    throw refusal('metadata', `Invalid value: ${shown(metadata)}: must be empty`);
  }
  const status = await answer(isRecord(spec) ? spec : {}, asker);
  const told = 'userInfo' in status ? { ...metadata, creationTimestamp: now } : (metadata ?? {});
  return { apiVersion, kind, metadata: told, ...(spec !== undefined && { spec }), status } as KubernetesObject;
}

/** Upstream: `ValidateSelfSubjectAccessReviewSpec`. */
async function access(spec: Readonly<Record<string, unknown>>, asker: Asker): Promise<object> {
  const { resourceAttributes, nonResourceAttributes } = spec as {
    resourceAttributes?: Readonly<Record<string, string>>;
    nonResourceAttributes?: Readonly<Record<string, string>>;
  };
  if ((resourceAttributes === undefined) === (nonResourceAttributes === undefined)) {
    const given = nonResourceAttributes === undefined ? 'null' : shown(nonResourceAttributes);
    throw refusal(
      'spec',
      `Invalid value: ${given}: exactly one of nonResourceAttributes or resourceAttributes must be specified`,
    );
  }
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

/** Upstream names neither the kind nor the object. */
function refusal(field: string, message: string): Error {
  const { group } = AUTHORIZATION;
  const about = { group, plural: '', kind: '', resourceName: '', kindName: `.${group}` };
  return invalidObject(about, '', [{ field, message }]);
}

/** The name of a resource as `authorize` gets it. */
const nameOf = (plural: string, group: string, subresource: string): string =>
  `${plural}${group && `.${group}`}${subresource && `/${subresource}`}`;

/** The most questions for one review. */
const MAX_QUESTIONS = 2_000;

async function rules({ namespace }: Readonly<Record<string, unknown>>, asker: Asker): Promise<object> {
  if (typeof namespace !== 'string' || namespace === '') throw badRequest('no namespace on request');
  const resourceRules: object[] = [];
  let left = MAX_QUESTIONS;
  for (const { plural, group, resourceName, main, subresources } of asker.resources) {
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
function userOf(identity: unknown): object {
  if (typeof identity === 'string') return { username: identity, groups: ['system:authenticated'] };
  if (!isRecord(identity)) return { username: 'system:anonymous', groups: ['system:unauthenticated'] };
  const { username = identity.name, uid, groups } = identity;
  const isText = (value: unknown): value is string => typeof value === 'string';
  return {
    ...(isText(username) && { username }),
    ...(isText(uid) && { uid }),
    groups: Array.isArray(groups) ? groups.filter(isText).slice(0, 1_000) : ['system:authenticated'],
  };
}
