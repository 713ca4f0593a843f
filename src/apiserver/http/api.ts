/**
 * A request's path through the server, whichever host it came from.
 *
 *     URL --> origin --> preflight --> path --> closing? --> place --> authenticate --> tenant --> verb --> authorize --> verbs --> answer
 *   414 400     403        204       404 400      503         429       401 403 503       429     404 405      403      4xx, 5xx
 *                                                                     (and impersonate)
 *
 * Everything but a watch has a deadline until its answer begins, and everything has a place until its answer has been sent: a
 * long one is sent bit by bit, so that a client that stops reading is noticed. Health checks are answered to everybody, at any
 * time, without a place.
 */

import { Origins } from '../../bridge/hub/admission/refusals.ts';
import { BAD_QUERY_TEXT, toParameters } from '../../bridge/hub/query.ts';
import { refused } from '../../storage/statuses.ts';
import { refusedBy, tried, WatchError } from '../../watch/errors.ts';
import { toStatus } from '../../watch/event.ts';
import { type Soon, setPace } from '../../watch/fair-queue.ts';
import type { ServedAnswer } from '../../watch/telemetry.ts';
import { forClient, warnInto } from '../admission.ts';
import {
  badRequest,
  LEAVING,
  methodNotAllowed,
  noSuchPath,
  noTokens,
  REVOKED,
  statusOf,
  TIMED_OUT,
  unfinished,
} from '../api-status.ts';
import { isReview } from '../kinds/common.ts';
import type { Asker } from '../kinds/reviews.ts';
import type { Settings } from '../options.ts';
import { type OtherPath, type ResourcePath, readPath, routeOf, splitTarget, toVerb, type Verb } from '../request/path.ts';
import { readFlag, readTimeout } from '../request/query.ts';
import type { Catalog, ResourceContext, ResourceInfo } from '../resource-info.ts';
import type { ApiCounts } from '../stats.ts';
import { rowOf } from '../subresources.ts';
import type { FieldFaults } from '../validation/field-check.ts';
import { Hooks, type RequestClient, type WatchClient, WatchClients } from './clients.ts';
import { Deadline, Deadlines } from './deadline.ts';
import { compressed } from './gzip.ts';
import { impersonates } from './impersonation.ts';
import { type Place, Quotas } from './quotas.ts';
import { CHUNK_BYTES, PiecesSource } from './sources.ts';
import { namedBy, perform } from './verbs-over-http.ts';
import { type Answer, refusal, type Slot, type StreamAnswer, type WholeAnswer, type WireRequest } from './wire.ts';

/** What is needed to answer requests. */
interface ApiDeps {
  readonly settings: Settings;
  readonly catalog: Catalog;
  readonly contextOf: (info: ResourceInfo) => ResourceContext;
  readonly counts: ApiCounts;
  /** Aborts when the server shuts down: requests that have not been admitted are refused. */
  readonly closing: AbortSignal;
  /** Aborts when the server no longer waits for admitted requests. */
  readonly cut: AbortSignal;
  /** Pending until it is known whether the stored objects can be served. */
  readonly checking: () => Promise<void> | undefined;
  /** Pending until the kinds that were defined at run time are known. */
  readonly loading: () => Promise<void> | undefined;
  /** Answers a path that is not a resource; undefined if it is unknown. */
  readonly other: (path: OtherPath, request: WireRequest) => Soon<WholeAnswer | undefined>;
  readonly isPublic: (path: OtherPath) => boolean;
}

/** How a client that left before it was answered is counted. */
const LEFT = {
  status: toStatus({ code: 499, reason: 'ClientClosedRequest', message: 'the client has left' }),
  unexpected: false,
} as const;

const timedOut = (): unknown => refusedBy(TIMED_OUT);

/** What is known of a request so far. */
interface Progress {
  address: string;
  /** Whether its origin may connect. */
  readonly isAllowed: boolean;
  verb?: Verb | undefined;
  path?: string;
  /** What is wrong with the fields of a written object. */
  faults?: FieldFaults;
  /** The warning for clients of this version of the kind. */
  deprecation?: string | undefined;
  /** Other warnings: of finalizers, and of the program's hooks. */
  readonly warnings: string[];
}

function schemeOf({ request }: WireRequest): 'http' | 'https' {
  const { url, socket } = request as { readonly url?: string; readonly socket?: { readonly encrypted?: boolean } };
  return socket?.encrypted || url?.startsWith('https:') ? 'https' : 'http';
}

function warned(answer: Answer, { deprecation, faults, warnings }: Progress): Answer {
  if (deprecation === undefined && !faults?.texts.length && warnings.length === 0) return answer;
  const first = deprecation === undefined ? [] : [deprecation];
  const warning = toWarning({ texts: [...first, ...(faults?.texts ?? []), ...warnings], more: faults?.more ?? 0 });
  return warning === undefined ? answer : { ...answer, headers: { ...answer.headers, warning } };
}

/** A request for a resource, and the place that it has taken. */
interface Entry {
  readonly path: ResourcePath;
  readonly progress: Progress;
  readonly isWatch: boolean;
  readonly place: Place;
}

interface Admitted {
  readonly info: ResourceInfo;
  readonly client: RequestClient;
}

const WRITES: Readonly<Record<Verb, boolean>> = {
  ...{ get: false, list: false, watch: false },
  ...{ create: true, update: true, patch: true, delete: true, deletecollection: true },
};

export class Api {
  private readonly deps: ApiDeps;
  private readonly origins: Origins<unknown>;
  private readonly hooks: Hooks;
  private readonly quotas: Quotas;
  readonly watchClients: WatchClients;
  private readonly untilClosing: Deadlines;
  private readonly untilCut: Deadlines;
  private hasToldUnheard: boolean = false;

  constructor(deps: ApiDeps) {
    const { settings, counts } = deps;
    this.deps = deps;
    this.origins = new Origins(settings.allowedOrigins, settings.onError);
    this.hooks = new Hooks(settings);
    this.quotas = new Quotas(settings, (reason) => counts.limited(reason));
    this.watchClients = new WatchClients(settings, this.hooks);
    // The reasons for closing are errors that say so.
    this.untilClosing = new Deadlines(deps.closing);
    this.untilCut = new Deadlines(deps.cut);
  }

  /** Answers a request. Never rejects. A caller that gets a stream must send it, or release its slot and close its source. */
  answer(request: WireRequest): Promise<Answer> {
    const { telemetry } = this.deps.settings;
    if (telemetry === undefined) return this.answered(request);
    const { path } = splitTarget(request.target);
    const header = (name: string): string | undefined => request.header(name);
    const served = { method: request.method, path, scheme: schemeOf(request), header };
    return telemetry.serve(served, (tell) => this.answered(request, tell));
  }

  private async answered(request: WireRequest, tell?: (answer: ServedAnswer) => void): Promise<Answer> {
    const { settings, counts } = this.deps;
    const begun = settings.clock.now();
    const progress: Progress = { address: request.address, isAllowed: this.origins.allows(request), warnings: [] };
    let answer: Answer;
    try {
      if (settings.clientAddress) progress.address = this.hooks.addressOf(request);
      answer = await this.proceed(request, progress);
    } catch (error) {
      const { status, unexpected } = request.client.gone ? LEFT : statusOf(error);
      if (unexpected) settings.onError(error);
      answer = refusal(status);
    }
    const durationMs = settings.clock.now() - begun;
    counts.answered(answer.code, { verb: progress.verb, durationMs });
    const { path = splitTarget(request.target).path } = progress;
    const { verb, address } = progress;
    const report = { method: request.method, path, verb, code: answer.code, durationMs, address };
    settings.onRequest(report);
    tell?.({ ...report, route: routeOf(path, report) });
    const told = warned(answer, progress);
    return request.origin !== undefined && progress.isAllowed ? this.withCors(told, request) : told;
  }

  private withCors(answer: Answer, request: WireRequest): Answer {
    const { headers } = answer;
    const cors = this.origins.corsHeaders(request) as Readonly<Record<string, string>>;
    const vary = [headers.vary, cors.vary].filter(Boolean).join(', ');
    return { ...answer, headers: { ...headers, ...cors, ...(vary && { vary }) } };
  }

  private async proceed(request: WireRequest, progress: Progress): Promise<Answer> {
    const { settings } = this.deps;
    const { target, method } = request;
    if (target.length > settings.maxUrlBytes) {
      throw refused(414, 'RequestURITooLong', `the URL is longer than ${settings.maxUrlBytes} bytes`);
    }
    if (!progress.isAllowed) throw refusedBy(this.origins.refusal(request));
    if (method === 'OPTIONS') return this.preflight(request);
    if (settings.identityOf === undefined && impersonates(request)) throw refused(403, 'Forbidden', NOBODY_ELSE);
    if (request.isUnheard) throw this.unheard();
    const { path: text, search } = splitTarget(target);
    progress.path = text;
    const query = toParameters(search);
    if (query === undefined) throw badRequest(BAD_QUERY_TEXT);
    const path = readPath(text);
    if (!path.isResource) return this.answerOther(path, request, progress);
    if (this.deps.closing.aborted) throw refusedBy(LEAVING);
    return this.answerResource({ request, path, query }, progress);
  }

  /** Nobody listens for upgrades, so the client would wait forever for a WebSocket. The program is told once. */
  private unheard(): Error {
    if (!this.hasToldUnheard) {
      this.hasToldUnheard = true;
      const message =
        'a client asked for a WebSocket, but nothing passes upgrades on: expected http.on("upgrade", server.upgrade)';
      this.deps.settings.onError(new WatchError('INVALID_ARGUMENT', message));
    }
    return refused(501, 'NotImplemented', 'this server has no WebSockets: its program does not listen for upgrades');
  }

  private preflight(request: WireRequest): Answer {
    if (request.origin === undefined) throw methodNotAllowed();
    const asked = request.header('access-control-request-headers');
    const headers = {
      'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
      ...(asked ? { 'access-control-allow-headers': asked } : {}),
      'access-control-max-age': '600',
    };
    return { code: 204, headers, body: null };
  }

  private async answerOther(path: OtherPath, request: WireRequest, progress: Progress): Promise<Answer> {
    if (this.deps.isPublic(path)) return this.document(path, request);
    if (this.deps.closing.aborted) throw refusedBy(LEAVING);
    const place = this.quotas.enter('request', progress.address);
    const deadline = this.deadline(request, this.deps.settings.handshakeTimeoutMs, this.untilClosing);
    try {
      const { sender, identity } = await deadline.during(this.hooks.identify(request));
      place.join(this.hooks.tenantOf(sender));
      await deadline.during(this.hooks.allow(['get', `/${path.segments.join('/')}`, undefined, undefined, identity]));
      await deadline.during(Promise.resolve(place.turn()));
      const document = this.document(path, request);
      return this.held(await (this.deps.loading() ? deadline.during(document) : document), { request, place });
    } catch (error) {
      place.release();
      throw error;
    } finally {
      this.finish(request, deadline);
    }
  }

  private async document(path: OtherPath, request: WireRequest): Promise<WholeAnswer> {
    const answer = await this.deps.other(path, request);
    if (answer === undefined) throw noSuchPath();
    if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed();
    return answer;
  }

  /** An answer that gives its place back once it has been sent. */
  private held(answer: Answer, { request, place, verb }: { request: WireRequest; place: Place; verb?: Verb }): Answer {
    const accepted = request.header('accept-encoding');
    const sent = compressed(streamed(answer, request.waits ?? false), { accepted, minBytes: this.deps.settings.minGzipBytes });
    return {
      ...sent,
      slot: verb === undefined || sent.source === undefined ? place : place.hold({ target: request.target, verb }),
    };
  }

  /** The deadline for a request. Call `finish` with it. */
  private deadline({ client }: WireRequest, afterMs: number, until: Deadlines): Deadline {
    const deadline = new Deadline(afterMs, { clock: this.deps.settings.clock, late: timedOut });
    until.add(deadline);
    if (client.gone) deadline.end(undefined);
    else client.tell((reason) => deadline.end(reason));
    return deadline;
  }

  private finish({ client }: WireRequest, deadline: Deadline): void {
    client.tell(undefined);
    this.untilClosing.delete(deadline);
    this.untilCut.delete(deadline);
    deadline.done();
  }

  private async answerResource(
    { request, path, query }: { request: WireRequest; path: ResourcePath; query: URLSearchParams },
    progress: Progress,
  ): Promise<Answer> {
    const { settings, contextOf } = this.deps;
    const watching = path.forcedWatch || ((path.subresource === undefined && readFlag(query.get('watch'))) ?? false);
    const isWatch = watching && (request.method === 'GET' || request.method === 'HEAD');
    const timeoutMs = settings.requestTimeoutMs;
    const own = isWatch ? 0 : readTimeout(query.get('timeout')) || Number(query.get('timeoutSeconds')) * 1_000;
    const place = this.quotas.enter(isWatch ? 'watch' : 'request', progress.address);
    // Admitted requests are finished, but a watch would end at once.
    const deadline = this.deadline(
      request,
      own > 0 && own < timeoutMs ? own : timeoutMs,
      isWatch ? this.untilClosing : this.untilCut,
    );
    setPace(deadline.signal, place);
    let hasBegun = false;
    let slot: Slot = place;
    try {
      const { disconnects } = this.watchClients;
      const { info, client } = await this.admitInTime(deadline, [request, { path, progress, isWatch, place }]);
      // The hooks may have decided before the client was disconnected: it has to come again.
      if (isWatch && disconnects !== this.watchClients.disconnects) throw refusedBy(REVOKED);
      const { identity, sender, asks } = client;
      if (isWatch) slot = this.watchClients.add({ client: clientOf(path, { info, client, progress }), asks, place, deadline });
      const checking = this.deps.checking();
      if (checking) await deadline.during(checking);
      progress.deprecation = info.warning;
      hasBegun = WRITES[progress.verb as Verb];
      const context = contextOf(info);
      const { row, kind } = namedBy(path, progress.verb as Verb, info);
      const task = {
        request,
        path,
        row,
        kind,
        query,
        context: context.admission ? forClient(context, { user: identity, query, warnings: progress.warnings }) : context,
        verb: progress.verb as Verb,
        signal: deadline.signal,
        maxBodyBytes: settings.maxBodyBytes,
        watchTimeoutMs: (askedMs: number) => endingBy(this.drawTimeout(askedMs), this.watchClients.leftMs(identity, sender)),
        onError: settings.onError,
        asker: () => this.hooks.asker(identity, () => this.deps.catalog.all),
        mayCreate: async () => {
          if (!settings.authorize) return;
          await deadline.during(this.hooks.allow(['create', info.resourceName, path.namespace, path.name, identity]));
        },
        warn: (faults: FieldFaults) => {
          progress.faults = faults;
        },
        tell: warnInto(progress.warnings),
      };
      return { ...this.held(await deadline.during(perform(task), closeLate), { request, place, verb: task.verb }), slot };
    } catch (error) {
      slot.release();
      throw hasBegun ? unfinished(error) : error;
    } finally {
      place.lighten();
      this.finish(request, deadline);
    }
  }

  /** Who asks by a review in the same process, for whom nothing is checked. */
  readonly trusted = (): Asker => {
    const resources = (): readonly ResourceInfo[] => this.deps.catalog.all;
    return { ...this.hooks.asker(undefined, resources), denial: async () => undefined };
  };

  /** If no code of the application is called, there is nothing to wait for. */
  private admitInTime(deadline: Deadline, args: Parameters<Api['admit']>): Promise<Admitted> {
    const { authenticate, authorize, handshakeTimeoutMs, clock } = this.deps.settings;
    if (authenticate === undefined && authorize === undefined && !this.hooks.isForAnother(args[0])) {
      const admitted = this.admit(...args);
      return this.deps.loading() ? deadline.during(admitted) : admitted;
    }
    const handshake = new Deadline(handshakeTimeoutMs, { clock, late: timedOut });
    return deadline.during(handshake.during(this.admit(...args))).finally(() => handshake.done());
  }

  private async admit(request: WireRequest, { path, progress, isWatch, place }: Entry): Promise<Admitted> {
    const { authenticate, authorize } = this.deps.settings;
    const client = authenticate || this.hooks.isForAnother(request) ? await this.hooks.identify(request) : NOBODY_IN_PARTICULAR;
    const tenant = authenticate ? this.hooks.tenantOf(client.sender) : '';
    if (tenant !== '') place.join(tenant);
    let info = this.deps.catalog.find(path.apiVersion, path.plural);
    const loading = info === undefined ? this.deps.loading() : undefined;
    if (loading) {
      await loading;
      info = this.deps.catalog.find(path.apiVersion, path.plural);
    }
    if (info === undefined || !isPlace(info, path.namespace)) throw noSuchPath();
    const creates = request.method === 'POST' && path.subresource && rowOf(info, path.subresource)?.verbs.includes('create');
    const verb = creates ? 'create' : toVerb(request.method, path, isWatch);
    if (verb === undefined && info.resourceName === 'serviceaccounts' && path.subresource === 'token') throw noTokens();
    if (verb === undefined) throw methodNotAllowed(path.subresource === undefined ? undefined : info);
    progress.verb = verb;
    const resource = path.subresource === undefined ? info.resourceName : `${info.resourceName}/${path.subresource}`;
    if (authorize) await this.hooks.allow([verb, resource, path.namespace, path.name, client.identity]);
    if (tenant !== '' && WRITES[verb]) this.quotas.write(tenant);
    return { info, client };
  }

  /** How long a watch lasts. Random if its client does not say, so that watches that began together do not end together. */
  private drawTimeout(askedMs: number): number {
    const { minRequestTimeoutMs, maxWatchMs, random } = this.deps.settings;
    if (askedMs > 0 && (maxWatchMs === 0 || askedMs <= maxWatchMs)) return askedMs;
    const share = 1 + random();
    const ownMs = askedMs > 0 ? 0 : Math.floor(minRequestTimeoutMs * share);
    return endingBy(ownMs, maxWatchMs === 0 ? Number.POSITIVE_INFINITY : Math.floor((maxWatchMs * share) / 2));
  }
}

function clientOf(
  { namespace, name }: ResourcePath,
  { info, client, progress }: Admitted & { readonly progress: Progress },
): WatchClient {
  const { identity, sender, asks } = client;
  return { identity, impersonator: asks && sender, address: progress.address, resource: info.resourceName, namespace, name };
}

/** Whether a resource is served in a namespace, or outside of all. Reviews are not listed, so those of a namespace are served there alone. */
function isPlace({ namespaced, group, plural }: ResourceInfo, namespace: string | undefined): boolean {
  return namespaced ? namespace !== undefined || !isReview(group, plural) : namespace === undefined;
}

/** A time limit that is not longer than another; 0: none. */
function endingBy(timeoutMs: number, mostMs: number): number {
  const shorter = Math.min(timeoutMs || Number.POSITIVE_INFINITY, Math.max(1, Math.ceil(mostMs)));
  return shorter === Number.POSITIVE_INFINITY ? 0 : shorter;
}

/** Closes a stream that comes too late. */
function closeLate(answer: Answer): void {
  tried(() => (answer as Partial<StreamAnswer>).source?.close()); // there is nobody to report an error to
}

const encoder = new TextEncoder();

/**
 * The same answer, as a stream if it is long, so that a client that stops reading is noticed, or if it must wait for earlier ones
 * on its connection, because nobody knows when the client will read those.
 */
export function streamed(answer: Answer, waits: boolean): Answer {
  if (answer.source !== undefined || answer.body === null || (!waits && answer.body.length <= CHUNK_BYTES)) return answer;
  const { code, headers, body } = answer;
  const source = new PiecesSource([], { ahead: [typeof body === 'string' ? encoder.encode(body) : body] });
  return { code, headers, source, isWatch: false, sse: false, timeoutMs: 0, slot: undefined };
}

/** A client of a server that asks nobody who they are. */
const NOBODY_IN_PARTICULAR: RequestClient = { sender: undefined, identity: undefined };

/** Answers with the rights of their sender might show, or do, what the one who is named may not. */
const NOBODY_ELSE = 'this server impersonates nobody, so it refuses requests with Impersonate-* headers';

/**
 * The limit for all warnings together. Proxies refuse an answer whose headers exceed their buffer, which may be 4 KiB: a
 * successful write would then seem to fail.
 */
const MAX_BYTES = 2_048;

/**
 * Warnings for a client, in the header that kubectl prints: its value; undefined if there are none. Those that do not fit are
 * counted. Upstream: `WithWarningRecorder` and `NewWarningHeader`.
 */
export function toWarning({ texts, more }: FieldFaults): string | undefined {
  if (texts.length === 0) return undefined;
  const warnings: string[] = [];
  let room = MAX_BYTES;
  for (const text of texts) {
    // What a hook says may be of any length, and is not even looked at if it cannot fit.
    const warning = text.length < room ? quoted(text) : undefined;
    if (warning === undefined || warning.length > room) break;
    room -= warning.length;
    warnings.push(warning);
  }
  const left = texts.length - warnings.length + more;
  if (left > 0) warnings.push(quoted(`and ${left} more warnings`));
  return warnings.join(', ');
}

/**
 * One warning. A character of a header is a byte: those beyond ASCII are encoded in UTF-8, which Kubernetes' clients expect. Control
 * characters cannot be in one.
 */
function quoted(text: string): string {
  const bytes = encoder.encode(text.replace(/\p{Cc}/gu, '.').replace(/[\\"]/g, '\\$&'));
  return `299 - "${String.fromCharCode(...bytes)}"`;
}
