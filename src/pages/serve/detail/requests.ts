// The page's writes, and its questions about what it may write.
import { ask, type HttpSettings } from '../../../cache/http/exchange.ts';
import { isWatchError } from '../../../watch/errors.ts';
import { parseExactly } from '../../words.ts';
import { hasMembers, type Members, memberTexts } from './paths.ts';
import { type TextFormat, toText } from './text.ts';

interface WriteRequest {
  readonly method: 'PUT' | 'DELETE' | 'POST';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body: string;
  readonly format?: TextFormat;
}

/** What the server says is wrong; `field` is empty if it is not about a particular field. */
export interface Cause {
  readonly field: string;
  readonly message: string;
}

/** The answer to a write. */
export interface WriteAnswer {
  /** The resulting object. Undefined: the write was refused, or there was no answer. */
  readonly object?: Members | undefined;
  /** 0: there was no answer. */
  readonly code: number;
  /** Why it was refused; empty if it was not. */
  readonly message: string;
  readonly causes: readonly Cause[];
}

/** Causes that are shown. */
const MAX_CAUSES = 100;

/**
 * Sends a write. Never rejects. The type of its body is one that a page of another origin may send only if the server agrees, and
 * this server refuses other origins anyway.
 */
export async function write(
  means: HttpSettings,
  { method, path, query = {}, body, format = 'json' }: WriteRequest,
): Promise<WriteAnswer> {
  const url = new URL(path, location.origin);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  const question = { method, body, contentType: `application/${format}` };
  try {
    const object = await ask(means, url, { question, limit: 'maxListBytes', read: parseExactly });
    return { object: hasMembers(object) ? object : {}, code: 200, message: '', causes: [] };
  } catch (error) {
    return toRefusal(error);
  }
}

/** What an error says to users. Nothing about its content is certain. */
export function toRefusal(error: unknown): WriteAnswer {
  const status = isWatchError(error) ? error.status : undefined;
  if (status === undefined) return { code: 0, message: `no answer: ${(error as Error).message}`, causes: [] };
  const { causes } = (status.details ?? {}) as { causes?: unknown };
  const all = Array.isArray(causes) ? causes.slice(0, MAX_CAUSES).map((each) => memberTexts(each, 'field', 'message')) : [];
  return { code: status.code, message: status.message.slice(0, 2_000), causes: all.filter(({ message }) => message !== '') };
}

/** What may be done with an object. Undefined: the server does not say, so try it. */
export interface Allowed {
  readonly update: boolean | undefined;
  readonly delete: boolean | undefined;
  /** Whether the server reads YAML: it needs a package for that. */
  readonly yaml: boolean;
}

/** The object in question. */
interface Subject {
  readonly group: string;
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

/** Asks what may be done. The first question is in YAML, which also shows whether the server reads YAML. */
export async function askAllowed(means: HttpSettings, subject: Subject): Promise<Allowed> {
  const review = async (verb: string, format: TextFormat): Promise<WriteAnswer> => {
    const spec = { resourceAttributes: { ...subject, verb } };
    const body = toText({ apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec }, format);
    return write(means, { method: 'POST', path: REVIEWS, body, format });
  };
  const first = await review('update', 'yaml');
  const yaml = first.code !== 415;
  const answers = [yaml ? first : await review('update', 'json'), await review('delete', 'json')];
  const [update, remove] = answers.map(({ object }) => {
    const { allowed } = hasMembers(object?.status) ? object.status : {};
    return typeof allowed === 'boolean' ? allowed : undefined;
  });
  return { update, delete: remove, yaml };
}
