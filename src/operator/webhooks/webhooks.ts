/**
 * Webhooks of a kube-apiserver: the hooks of an `ApiServer`, over HTTP.
 *
 *     kube-apiserver -- POST /mutate, AdmissionReview ---> limits ---> read ---> mutate(review) ---> the patch of what it changed
 *                    -- POST /validate ------------------> limits ---> read ---> validate(review) -> allowed, or why not
 *                    -- POST /convert, ConversionReview -> limits ---> read ---> convert(object, version)
 *
 * Invariants
 * - Every request is answered within `timeoutMs`, or `timeout` of its URL, whatever its client, the network or a hook does.
 * - Anything but a review is refused before a hook is called.
 * - A hook that throws refuses the write, as in an `ApiServer`; one that takes too long is a failure of the webhook: 504.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AdmissionHooks } from '../../apiserver/admission.ts';
import { badRequest, noSuchPath, statusOf, TIMED_OUT } from '../../apiserver/api-status.ts';
import type { Convert } from '../../apiserver/definition.ts';
import { Deadline } from '../../apiserver/http/deadline.ts';
import { serveFetch } from '../../apiserver/http/fetch-host.ts';
import { type HostDeps, serveNode } from '../../apiserver/http/node-host.ts';
import { type Answer, JSON_HEADERS, refusal, type WireRequest } from '../../apiserver/http/wire.ts';
import type { UserInfo } from '../../apiserver/kinds/reviews.ts';
import { MAX_DEPTH, MAX_PARTS, parsingBody } from '../../apiserver/request/json.ts';
import { splitTarget } from '../../apiserver/request/path.ts';
import { DEFAULTS } from '../../bridge/protocol.ts';
import { toSharedTimer } from '../../bridge/transport/stall.ts';
import { stringifying } from '../../storage/json.ts';
import { refused, tooManyRequests } from '../../storage/statuses.ts';
import { type Clock, systemClock, upkeepClock } from '../../watch/clock.ts';
import { callable, checkOptions, invalid, namesOf, refusedBy, type Wholes, wholeNumbers } from '../../watch/errors.ts';
import { reporter } from '../../watch/failures.ts';
import { inPieces } from '../../watch/fair-queue.ts';
import { answeredAdmission, answeredConversion, type ReviewDeps } from './reviews.ts';

/** Options of {@link Webhooks}. `mutate` and `validate` are those of `admission`, an `ApiServer`'s option. */
export interface WebhooksOptions extends AdmissionHooks<UserInfo> {
  /** Turns an object into one of another version of its kind, as for an `ApiServer`. An error that it throws is a failure. */
  readonly convert?: Convert | undefined;
  /** How long an answer may take, in ms, if the request's own `timeout` is not shorter; default 10,000, as upstream. */
  readonly timeoutMs?: number | undefined;
  /** The longest body, in bytes; default 7 MiB: a review may have two objects. A list is converted as a whole, and may be 16 times as long. */
  readonly maxBodyBytes?: number | undefined;
  /** Concurrent requests; default 400. More are refused with 429. */
  readonly maxConcurrentRequests?: number | undefined;
  /** Called with errors of hooks. The client only gets a 500. Default: `console.error`, once per kind. */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Default: the host's. */
  readonly clock?: Clock | undefined;
}

const LIMITS: Wholes<keyof Limits> = {
  timeoutMs: [10_000, 1],
  maxBodyBytes: [7 * 1_048_576, 1],
  maxConcurrentRequests: [400, 1],
};
const HOOKS = ['mutate', 'validate', 'convert', 'onError'] as const;
/** A list is converted as a whole: how many times as long as another review it may be. */
const LIST = 16;
/** How many objects of the largest size that an `ApiServer` accepts are in a review, and how deep. */
const EXTENT = {
  mutate: { maxDepth: MAX_DEPTH + 2, maxParts: 2 * MAX_PARTS },
  validate: { maxDepth: MAX_DEPTH + 2, maxParts: 2 * MAX_PARTS },
  convert: { maxDepth: MAX_DEPTH + 3, maxParts: LIST * MAX_PARTS },
} as const;

/** The last segment of a path says what is asked. The rest of it is up to the caller, as in the paths of kubebuilder. */
const ASKED = /\/(mutate|validate|convert)(?:-[^/]*)?$/;

/**
 * Serves the hooks of an `ApiServer`, and its conversions, to a kube-apiserver, over node:http and to `fetch` handlers. The last
 * segment of the path says what is asked, whatever is before it: it is `mutate`, `validate` or `convert`, or begins with one of them
 * and a hyphen, such as `/validate-websites`.
 *
 *     const hooks = { validate({ object, deny }) { if (object?.spec.replicas > 9) deny('at most 9 replicas'); } };
 *     const webhooks = new Webhooks(hooks);                                       // behind a kube-apiserver: see WebhookServer
 *     const server = new ApiServer({ storage, resources, admission: hooks });     // in a test, the same
 */
export class Webhooks {
  readonly #options: WebhooksOptions;
  readonly #limits: Limits;
  readonly #clock: Clock;
  readonly #onError: (error: unknown) => void;
  #inWork: number = 0;
  /** The handler for node:http: `createServer(webhooks.handler)`. Works with frameworks such as Express, too. */
  readonly handler: (request: IncomingMessage, response: ServerResponse) => void;
  /** The handler for hosts with `fetch` handlers. */
  readonly fetch: (request: Request, host?: unknown) => Promise<Response>;

  /** @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option, and if there is nothing to serve. */
  constructor(options: WebhooksOptions) {
    const { mutate, validate, convert, clock = systemClock } = checkOptions(options, [...HOOKS, ...namesOf(LIMITS), 'clock']);
    for (const name of HOOKS) callable(name, options[name]);
    if (!mutate && !validate && !convert) throw invalid('options', options, 'at least one of mutate, validate and convert');
    this.#options = options;
    this.#limits = wholeNumbers(options, LIMITS);
    this.#clock = clock;
    this.#onError = reporter('webhooks', options);
    const deps: HostDeps = {
      answer: (request) => this.#answer(request),
      sessions: { stalls: toSharedTimer(DEFAULTS.stallTimeoutMs, upkeepClock(clock)), begin: noStreams },
      cutEarly: () => {},
      maxBufferedBytes: DEFAULTS.maxBufferedBytes,
      clock,
    };
    this.handler = (request, response) => void serveNode(deps, request, response).catch(this.#onError);
    this.fetch = (request, host) => serveFetch(deps, request, host);
  }

  /** Requests that are being answered. */
  get inWork(): number {
    return this.#inWork;
  }

  async #answer(request: WireRequest): Promise<Answer> {
    const { client } = request;
    let deadline: Deadline | undefined;
    this.#inWork++;
    try {
      const [asked, timeoutMs] = this.#admitted(request);
      const limit = new Deadline(timeoutMs, { clock: this.#clock, late: () => refusedBy(TIMED_OUT) });
      deadline = limit;
      if (client.gone) limit.end(refusedBy(TIMED_OUT));
      else client.tell((reason) => limit.end(reason));
      return { code: 200, headers: JSON_HEADERS, body: await limit.during(this.#review(asked, request, limit.signal)) };
    } catch (error) {
      const { status, unexpected } = statusOf(error);
      if (unexpected && !client.gone) this.#onError(error);
      return refusal(status);
    } finally {
      this.#inWork--;
      client.tell(undefined);
      deadline?.done();
    }
  }

  /** What is asked, and how long the answer is of use. Throws if the request is not admitted. */
  #admitted(request: WireRequest): readonly [Asked, number] {
    const { path, search } = splitTarget(request.target);
    const asked = ASKED.exec(path)?.[1] as Asked | undefined;
    if (asked === undefined || !this.#options[asked]) throw noSuchPath();
    if (request.method !== 'POST') throw refused(405, 'MethodNotAllowed', `expected POST, got ${request.method}`);
    const type = request.header('content-type') ?? '';
    if (!/^application\/json\s*(;|$)/i.test(type)) {
      throw refused(
        415,
        'UnsupportedMediaType',
        `expected the content type application/json, got ${JSON.stringify(type.slice(0, 80))}`,
      );
    }
    const { timeoutMs, maxConcurrentRequests } = this.#limits;
    if (this.#inWork > maxConcurrentRequests) throw tooManyRequests('too many concurrent requests', 1);
    return [asked, Math.min(timeoutMs, toTimeoutMs(new URLSearchParams(search).get('timeout')))];
  }

  async #review(asked: Asked, request: WireRequest, signal: AbortSignal): Promise<string> {
    const deps: ReviewDeps = {
      done: (work) => inPieces(work, { signal }),
      signal,
      onError: this.#onError,
    };
    const { maxBodyBytes } = this.#limits;
    const bytes = await request.body(asked === 'convert' ? LIST * maxBodyBytes : maxBodyBytes, signal);
    const body = await deps.done(parsingBody(bytes, EXTENT[asked]));
    const { convert } = this.#options;
    const answer =
      asked === 'convert'
        ? await answeredConversion(body, { ...deps, convert: convert as Convert })
        : await answeredAdmission(body, { ...deps, hook: asked, hooks: this.#options });
    return deps.done(stringifying(answer));
  }
}

type Limits = Readonly<Record<'timeoutMs' | 'maxBodyBytes' | 'maxConcurrentRequests', number>>;
type Asked = 'mutate' | 'validate' | 'convert';

/** The time that a kube-apiserver gives, such as `10s`; it sends nothing else. */
function toTimeoutMs(text: string | null): number {
  if (text === null) return Number.POSITIVE_INFINITY;
  const [, number = '', unit] = /^(\d{1,9})(ms|s|m)$/.exec(text) ?? [];
  const timeoutMs = Number(number) * ({ ms: 1, s: 1_000, m: 60_000 }[unit ?? ''] ?? Number.NaN);
  if (!(timeoutMs > 0)) throw badRequest(`timeout: expected a time such as 10s, got ${JSON.stringify(text.slice(0, 80))}`);
  return timeoutMs;
}

function noStreams(): never {
  throw new Error('a webhook has no streams');
}
