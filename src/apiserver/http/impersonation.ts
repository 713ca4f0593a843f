/**
 * Requests in the name of another user, by the headers `Impersonate-User`, `-Group`, `-Uid` and `-Extra-*`:
 *
 *     kubectl --as=jo --as-group=dev
 *       --> authorize('impersonate', 'users', undefined, 'jo', sender), then 'groups' 'dev': each must be allowed
 *       --> identityOf({ username: 'jo', groups: ['dev', 'system:authenticated'] }), for which the request is answered
 *
 * The limits of addresses and tenants remain the sender's. Upstream: `WithImpersonation`.
 */
import { badRequest } from '../api-status.ts';
import type { UserInfo } from '../kinds/reviews.ts';
import type { WireRequest } from './wire.ts';

const PREFIX = 'impersonate-';
const EXTRA = `${PREFIX}extra-`;
/** The most groups and further values: `authorize` is asked about each. */
const MAX_VALUES = 256;

/** One right that the sender needs: a resource, a namespace and a name, as `authorize` gets them. */
export type Ask = readonly [resource: string, namespace: string | undefined, name: string];

interface Impersonation {
  readonly user: UserInfo;
  readonly asks: readonly Ask[];
}

/** Whether a request has such headers. */
export const impersonates = ({ headerNames }: WireRequest): boolean => headerNames.some((name) => name.startsWith(PREFIX));

/** Whom a request names, and what its sender must be allowed. Throws 400 for headers that name no user. */
export function impersonationOf(request: WireRequest): Impersonation {
  const [username = ''] = valuesOf(request, `${PREFIX}user`);
  const named = valuesOf(request, `${PREFIX}group`);
  const [uid] = valuesOf(request, `${PREFIX}uid`);
  const extra = extraOf(request);
  if (username === '') throw badRequest('requested to impersonate without impersonating a user: Impersonate-User is missing');
  const values = extra.flatMap(([key, list]) =>
    list.map((value): Ask => [`userextras.authentication.k8s.io/${key}`, undefined, value]),
  );
  if (named.length + values.length > MAX_VALUES)
    throw badRequest(`more than ${MAX_VALUES} groups and extra values to impersonate`);
  const [, namespace, account] = /^system:serviceaccount:([a-z\d-]+):([a-z\d.-]+)$/.exec(username) ?? [];
  const who: Ask = account === undefined ? ['users', undefined, username] : ['serviceaccounts', namespace, account];
  return {
    user: {
      username,
      ...(uid && { uid }),
      groups: groupsOf(username, named, namespace),
      ...(extra.length > 0 && { extra: Object.fromEntries(extra) }),
    },
    asks: [
      who,
      ...named.map((group): Ask => ['groups', undefined, group]),
      ...values,
      ...(uid ? [['uids.authentication.k8s.io', undefined, uid] as const] : []),
    ],
  };
}

/** The groups that are named, or those of a service account, and everybody's. */
function groupsOf(username: string, named: readonly string[], namespace: string | undefined): readonly string[] {
  const own = namespace === undefined ? [] : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  const groups = named.length === 0 ? own : named;
  const all = ['system:unauthenticated', ...(username === ANONYMOUS ? [] : ['system:authenticated'])];
  return groups.some((group) => all.includes(group)) ? groups : [...groups, all.at(-1) as string];
}

/** The name of a client that nobody knows. */
const ANONYMOUS = 'system:anonymous';

function extraOf(request: WireRequest): [key: string, values: readonly string[]][] {
  const names = request.headerNames.filter((name) => name.startsWith(EXTRA));
  return names.map((name) => [unescaped(name.slice(EXTRA.length)), valuesOf(request, name)]);
}

function unescaped(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The characters of a header are bytes, which clients encode in UTF-8. */
function valuesOf(request: WireRequest, name: string): readonly string[] {
  try {
    return request.values(name).map((value) => utf8.decode(Uint8Array.from(value, (char) => char.charCodeAt(0))));
  } catch {
    throw badRequest(`the header ${name} is not UTF-8`);
  }
}
