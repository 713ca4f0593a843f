/**
 * One question to one webhook, over HTTPS, and its answer. Upstream: `webhook/request`, `util/webhook`.
 *
 *     AdmissionReview { request } ---> POST url?timeout=10s ---> AdmissionReview { response: { uid, allowed, patch, ... } }
 *                                                            '-> anything else, or nothing in time: it could not be asked
 */
import type { ClientRequest } from 'node:http';
import type { Agent, RequestOptions } from 'node:https';
import { parsing, stringifying } from '../../storage/json.ts';
import { whenAborted } from '../../watch/abort.ts';
import { type Clock, within } from '../../watch/clock.ts';
import { isRecord, isWatchError, tried, whyOf } from '../../watch/errors.ts';
import { inPieces } from '../../watch/fair-queue.ts';
import { fromBase64 } from '../kinds/base64.ts';
import type { ServiceAddress, WebhookService } from '../options.ts';
import type { Json } from '../request/json.ts';
import { jsonStart, quoted } from '../validation/causes.ts';
import { REVIEW_VERSIONS, type WebhookDefinition } from './configurations.ts';

/** What a webhook says. */
export interface WebhookAnswer {
  readonly allowed: boolean;
  /** Why it is not allowed. */
  readonly status: Readonly<Record<string, unknown>>;
  readonly warnings: readonly string[];
  /** The operations of a JSON patch, as they were sent; undefined: nothing changes. */
  readonly patch: readonly unknown[] | undefined;
}

/** A webhook that could not be asked, or has not answered. Upstream: `ErrCallingWebhook`. */
export class CallFailed extends Error {
  constructor(webhook: WebhookDefinition, why: string, cause?: unknown) {
    super(`failed calling webhook ${quoted(webhook.name)}: ${why}`, { cause });
  }
}

interface CallsDeps {
  readonly clock: Clock;
  readonly uid: () => string;
  readonly serviceAddress: ServiceAddress | undefined;
}

interface Question {
  readonly isMutating: boolean;
  readonly signal: AbortSignal | undefined;
}

/** The most bytes of an answer: a patch may replace an object. Without one, there is little to say. */
const MAX_ANSWER_BYTES = { mutating: 6_291_456, validating: 1_048_576 } as const;

export class Calls {
  private readonly deps: CallsDeps;
  private agent: Agent | undefined;
  private isStopped: boolean = false;

  constructor(deps: CallsDeps) {
    this.deps = deps;
  }

  /** Resolves with the answer to a request. Rejects with {@link CallFailed}, or with the signal's reason. */
  async ask(webhook: WebhookDefinition, request: object, { isMutating, signal }: Question): Promise<WebhookAnswer> {
    const version = webhook.admissionReviewVersions?.find((each) => REVIEW_VERSIONS.includes(each));
    const uid = this.deps.uid();
    const review = { kind: 'AdmissionReview', apiVersion: `admission.k8s.io/${version}`, request: { uid, ...request } };
    const body = await inPieces(stringifying(review), { signal });
    const text = await this.answer(webhook, body, { isMutating, signal });
    try {
      const answer = await inPieces(parsing(text), { signal });
      const response = checkAnswer(answer, { uid, version: version as string, isMutating });
      const { patch } = response;
      return { ...response, patch: patch === undefined ? undefined : await inPieces(operationsIn(patch), { signal }) };
    } catch (error) {
      signal?.throwIfAborted();
      throw new CallFailed(webhook, `received invalid webhook response: ${whyOf(error)}`);
    }
  }

  /** Closes idle connections, and opens no more. */
  stop(): void {
    this.isStopped = true;
    this.agent?.destroy();
  }

  private async answer(webhook: WebhookDefinition, body: string, { isMutating, signal }: Question): Promise<string> {
    const { clientConfig, timeoutSeconds } = webhook;
    const { href, to } = this.addressOf(webhook);
    const abort = new AbortController();
    const leave = whenAborted(signal, (reason) => abort.abort(reason));
    const limitMs = timeoutSeconds * 1_000;
    const failed = (why: string, cause?: unknown): CallFailed =>
      new CallFailed(webhook, `failed to call webhook: Post ${quoted(href)}: ${why}`, cause);
    try {
      if (to === undefined) throw failed(`service ${quoted((clientConfig.service as WebhookService).name)} not found`);
      const sent = this.sent(to.url, {
        body,
        options: to.options,
        signal: abort.signal,
        maxBytes: MAX_ANSWER_BYTES[isMutating ? 'mutating' : 'validating'],
      });
      const { status, text } = await within(sent, { limitMs, clock: this.deps.clock, what: () => 'the webhook' });
      if (status <= 299) return text;
      throw new CallFailed(webhook, `failed to call webhook: ${refusalIn(status, text)}`);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof CallFailed) throw error;
      throw failed(isWatchError(error, 'TIMEOUT') ? 'context deadline exceeded' : whyOf(error), error);
    } finally {
      leave();
      abort.abort();
    }
  }

  private addressOf(webhook: WebhookDefinition): ReturnType<typeof toAddress> {
    try {
      return toAddress(webhook, this.deps.serviceAddress);
    } catch (error) {
      throw new CallFailed(webhook, `serviceAddress: ${whyOf(error)}`, error);
    }
  }

  private async sent(url: URL, { options, ...letter }: Letter & { readonly options: RequestOptions }): Promise<Answered> {
    // Loaded late, and without anything of the package: other hosts, which have no such client, bundle this file.
    const { Agent: HttpsAgent, request } = await import('node:https');
    if (this.isStopped) throw new Error('the server has shut down');
    this.agent ??= new HttpsAgent({ keepAlive: true, maxFreeSockets: 16 });
    return posted(letter, (more) => request(url, { ...options, ...more, agent: this.agent })).catch(
      (error: NodeJS.ErrnoException) => {
        // The webhook may have closed an idle connection just now. What it has to do has no effects, so it can be asked again.
        if (error.code !== 'ECONNRESET' || letter.signal.aborted || this.isStopped) throw error;
        return posted(letter, (more) => request(url, { ...options, ...more, agent: false }));
      },
    );
  }
}

/** What is sent. */
interface Letter {
  readonly body: string;
  readonly signal: AbortSignal;
  /** The most bytes of an answer. */
  readonly maxBytes: number;
}

interface Answered {
  readonly status: number;
  readonly text: string;
}

/** Sends a request, and resolves with the whole answer. */
function posted({ body, signal, maxBytes }: Letter, open: (options: RequestOptions) => ClientRequest): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const bytes = new TextEncoder().encode(body);
    const type = 'application/json';
    const headers = { 'content-type': type, accept: type, 'content-length': bytes.length };
    const request = open({ method: 'POST', signal, headers });
    request.on('error', reject);
    // Without a listener, Node silently closes the connection.
    request.on('upgrade', (_, socket) => {
      socket.destroy();
      reject(new Error('the server switched to another protocol'));
    });
    request.on('response', (response) => {
      const decoder = new TextDecoder();
      let [text, left] = ['', maxBytes];
      response.on('data', (chunk: Uint8Array) => {
        left -= chunk.length;
        if (left < 0) response.destroy(new Error(`the answer is longer than ${maxBytes} bytes`));
        else text += decoder.decode(chunk, { stream: true });
      });
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode as number, text: text + decoder.decode() }));
    });
    request.end(bytes);
  });
}

/** Where a webhook is, as text for errors, and how to get there: nobody has to know, and the names of services are any text. */
function toAddress(
  { clientConfig: { url, service, caBundle }, timeoutSeconds }: WebhookDefinition,
  serviceAddress: ServiceAddress | undefined,
): { readonly href: string; readonly to?: { readonly url: URL; readonly options: RequestOptions } } {
  const ca = caBundle === undefined ? {} : { ca: atob(caBundle) };
  const search = `?timeout=${timeoutSeconds}s`;
  const at = (whole: URL, options: RequestOptions): ReturnType<typeof toAddress> => {
    whole.search = search;
    return { href: whole.href, to: { url: whole, options } };
  };
  if (service === undefined) return at(new URL(url as string), ca);
  const { namespace, name, port } = service;
  const path = service.path || '/';
  const servername = `${name}.${namespace}.svc`;
  const address = serviceAddress?.(service);
  if (address === undefined) return { href: `https://${servername}:${port}${path}${search}` };
  const whole = new URL(`https://${address}`);
  whole.pathname = path;
  return at(whole, { ...ca, servername });
}

/** The longest answer that can be a Status. */
const MAX_STATUS_CHARS = 65_536;

/** Why a webhook's server refuses. Upstream: `NewGenericServerResponse`. */
function refusalIn(status: number, text: string): string {
  const said = text.length > MAX_STATUS_CHARS ? undefined : tried(() => JSON.parse(text) as unknown);
  if (isRecord(said) && said.kind === 'Status' && typeof said.message === 'string') return said.message.slice(0, 1_000);
  if (status === 400) return 'the server rejected our request for an unknown reason';
  if (status === 404) return 'the server could not find the requested resource';
  if (status === 503) return 'the server is currently unable to handle the request';
  if (status < 500) return `the server responded with the status code ${status} but did not return more information`;
  return `an error on the server (${jsonStart(text.trim(), 300)}) has prevented the request from succeeding`;
}

interface Raw extends Omit<WebhookAnswer, 'patch'> {
  /** In base64. */
  readonly patch: string | undefined;
}

type Expected = readonly [what: string, is: (value: unknown) => boolean];

const isText = (value: unknown): boolean => typeof value === 'string';
const isWhole = (value: unknown): boolean => Number.isInteger(value) && Math.abs(value as number) < 2 ** 31;
/** Those of Go: null is the same as nothing. */
const TEXT: Expected = ['a string', isText];
const WHOLE: Expected = ['a whole number', isWhole];
const OBJECT: Expected = ['an object', isRecord];
const TEXTS: Expected = ['a list of strings', (value) => Array.isArray(value) && value.every((each) => isText(each ?? ''))];
const ANNOTATIONS: Expected = [
  'an object of strings',
  (value) => isRecord(value) && Object.values(value).every((each) => isText(each ?? '')),
];
const isCause = (value: unknown): boolean =>
  isRecord(value ?? {}) && ['reason', 'message', 'field'].every((name) => isText((value as Json | null)?.[name] ?? ''));
const CAUSES: Expected = ['a list of causes', (value) => Array.isArray(value) && value.every(isCause)];

/** What the members of an answer are: one of another type would have no effect, or reach the client as it is. */
const SAID_BY_ALL = {
  ...{ allowed: ['true or false', (value) => typeof value === 'boolean'], patch: ['base64', isText], patchType: TEXT },
  ...{ auditAnnotations: ANNOTATIONS, warnings: TEXTS, status: OBJECT },
} as const satisfies Readonly<Record<string, Expected>>;
const SAID_OF_STATUS = { status: TEXT, message: TEXT, reason: TEXT, code: WHOLE, details: OBJECT } as const;
const SAID_OF_DETAILS = {
  ...{ name: TEXT, group: TEXT, kind: TEXT, uid: TEXT, retryAfterSeconds: WHOLE, causes: CAUSES },
} as const;

function refuse(given: object, members: Readonly<Record<string, Expected>>, path: string = ''): void {
  for (const [name, [what, is]] of Object.entries(members)) {
    const value = (given as Json)[name] ?? undefined;
    if (value !== undefined && !is(value))
      throw new Error(`response.${path}${name}: expected ${what}, got ${jsonStart(value, 100)}`);
  }
}

/** Upstream: `VerifyAdmissionResponse`. */
function checkAnswer(
  answer: unknown,
  { uid, version, isMutating }: { readonly uid: string; readonly version: string; readonly isMutating: boolean },
): Raw {
  const { kind, apiVersion, response } = (isRecord(answer) ? answer : {}) as Readonly<Record<string, unknown>>;
  if (!isRecord(response)) throw new Error('webhook response was absent');
  const { patch, patchType, status, warnings } = response;
  // Reviews of v1beta1 say nothing of these.
  if (version === 'v1') {
    if (response.uid !== uid) throw new Error(`expected response.uid=${quoted(uid)}, got ${jsonStart(response.uid ?? '', 100)}`);
    const expected = 'admission.k8s.io/v1, Kind=AdmissionReview';
    const got = `${apiVersion}, Kind=${kind}`;
    if (got !== expected) throw new Error(`expected webhook response of ${expected}, got ${got.slice(0, 200)}`);
    checkPatch({ patch, patchType, isMutating });
  }
  refuse(response, SAID_BY_ALL);
  const said = (status ?? {}) as WebhookAnswer['status'];
  refuse(said, SAID_OF_STATUS, 'status.');
  refuse((said.details ?? {}) as object, SAID_OF_DETAILS, 'status.details.');
  return {
    allowed: response.allowed === true,
    status: said,
    warnings: ((warnings ?? []) as (string | null)[]).filter((each): each is string => (each ?? '') !== ''),
    patch: isMutating && typeof patch === 'string' && patch !== '' ? patch : undefined,
  };
}

function checkPatch({ patch, patchType, isMutating }: { patch: unknown; patchType: unknown; isMutating: boolean }): void {
  const has = (value: unknown): boolean => value !== undefined && value !== null && value !== '';
  if (!isMutating) {
    for (const [name, value] of Object.entries({ patch, patchType }))
      if (has(value)) throw new Error(`validating webhook may not return response.${name}`);
    return;
  }
  if (has(patch) && !has(patchType)) throw new Error('webhook returned response.patch but not response.patchType');
  if (!has(patch) && has(patchType)) throw new Error('webhook returned response.patchType but not response.patch');
  if (has(patchType) && patchType !== 'JSONPatch') throw new Error(`unsupported patch type ${jsonStart(patchType, 100)}`);
}

function* operationsIn(patch: string): Generator<undefined, readonly unknown[]> {
  const undecodable = 'received undecodable patch in webhook response';
  // Some encoders break lines, and Go's decoder does not mind.
  const text = patch.replace(/[\r\n]/g, '');
  if (!/^[A-Za-z\d+/]*={0,2}$/.test(text)) throw new Error(`${undecodable}: it is not base64`);
  const operations = (yield* parsing(new TextDecoder().decode(yield* fromBase64(text)))) ?? [];
  if (!Array.isArray(operations)) throw new Error(`${undecodable}: it is not a list`);
  return operations;
}
