import { MAPS } from './requests.ts';

/** A part of an answer. */
export type Part = 'status' | 'type' | 'headers' | 'body';

/** What differs on purpose, and why. */
export interface Difference {
  readonly reason: string;
  readonly parts: readonly Part[];
  /** The titles of the requests, or what matches them. */
  readonly of: readonly (string | RegExp)[];
}

const BOTH: readonly Part[] = ['status', 'body'];

/** The words of a Status are each server's own, and are not compared. */
export const DIFFERENCES: readonly Difference[] = [
  {
    reason:
      'A version that is not a number is an error of the client (400), before anything else is looked at; upstream says 500 (FIX7.1)',
    parts: BOTH,
    of: [/resourceVersion=abc/, /"resourceVersion":"abc"/, `POST ${MAPS} {"metadata":{"name":"bad","resourceVersion":"1"}}`],
  },
  { reason: 'A deletion within a limit does not tell what is left', parts: ['body'], of: [/^DELETE \?limit=1 /] },
  {
    reason: 'A server without `authenticateToken` says so, instead of calling every token invalid',
    parts: ['body'],
    of: [/tokenreviews .*"token":"nobody"/],
  },
  { reason: 'null is no object', parts: BOTH, of: [`POST ${MAPS} null`] },
  { reason: 'A name with a slash cannot be one', parts: BOTH, of: [`GET ${MAPS}/a%2Fb`] },
  { reason: 'A single object can be watched (R7.1)', parts: ['body'], of: [`GET ${MAPS}/a?watch=true&timeoutSeconds=1`] },
  { reason: 'Every error is a Status', parts: ['type', 'body'], of: [/^GET \/(apis\/)?nothing/] },
  { reason: 'HEAD is GET without a body, as HTTP has it', parts: ['status'], of: [/^HEAD /] },
  { reason: 'Node knows no method of this name', parts: ['status', 'type', 'headers', 'body'], of: [/^TRACE2 /] },
  {
    reason: 'A watch takes either name of metadata',
    parts: ['body'],
    of: [/watch=true.* application\/json;as=PartialObjectMetadataList/],
  },
  {
    reason: 'Media types are compared as HTTP has it: ranges, any case, and q=0 excludes',
    parts: BOTH,
    of: [/ (application\/\*|APPLICATION\/JSON|application\/json;q=0)$/],
  },
  {
    reason: 'A version that was never given is from another life of the data: 410, so that clients list again at once',
    parts: ['status', 'headers', 'body'],
    of: [`GET ${MAPS}?resourceVersion=99999999`],
  },
  { reason: 'A parameter that cannot be decoded is 400; upstream does not see it', parts: BOTH, of: [/\?(watch=%|limit=%zz)$/] },
  { reason: 'A limit is a number that is not negative; empty is none', parts: BOTH, of: [/\?limit=(-1)?$/] },
  { reason: 'The uid is a precondition, wherever it is sent', parts: BOTH, of: [/^PATCH merge-patch a .*"uid":"x"/] },
  {
    reason: 'A patch that makes no sense is 400',
    parts: BOTH,
    of: [/"\$patch":"(nonsense|merge)"/, /"x.io\/b","x.io\/a"\],"\$setElementOrder/],
  },
  {
    reason: 'A schema takes nothing away: fields that it does not name are warned of, and kept',
    parts: ['body'],
    of: [/^FIELDS (Warn|Ignore)? keep:/],
  },
  { reason: 'A number is whole however it is written', parts: BOTH, of: [/^SCALE .*"replicas":2\.0/] },
  {
    reason: 'An event of events.k8s.io is refused under its own name',
    parts: ['body'],
    of: [
      /^KINDS POST \/apis\/events\.k8s\.io\S+ json \{"metadata":\{"name":"bad"/,
      /^KINDS PATCH \/apis\/events\.k8s\.io.*("count":1|"note"|"eventTime")/,
    ],
  },
  {
    reason: 'A refusal is JSON, which every client reads, whatever it prefers',
    parts: ['type'],
    of: [/^KINDS GET \/secrets\/none application\/vnd\.kubernetes\.protobuf/],
  },
  { reason: 'The paths are those that there are', parts: ['body'], of: ['GET /'] },
  { reason: 'A server does not know at which address it is reached', parts: ['body'], of: [/^GET \/api( |$)/] },
  {
    reason: 'A cause is told once; upstream checks the metadata of a custom resource two or three times',
    parts: ['body'],
    of: [/^FINALIZERS .*(a wrong label|a late finalizer)$/],
  },
  {
    reason: 'The options in the URL of a deletion count also if it has a body: nobody wants more to be deleted than he asked for',
    parts: BOTH,
    of: [/^(GET|DELETE) tried after .* and a body$/, /^DELETE \S+\/tried\?(uid|resourceVersion)=/],
  },
];

/** Headers that are others on purpose, wherever that is; `undefined`: not sent. */
export const OTHER_HEADERS: readonly {
  readonly name: string;
  readonly theirs: string | undefined;
  readonly ours: string | undefined;
  readonly reason: string;
}[] = [
  {
    name: 'cache-control',
    theirs: 'no-cache, private',
    ours: 'no-store, no-transform',
    reason: 'Proxies must not compress or store watches: many do not flush what they compress',
  },
  {
    name: 'cache-control',
    theirs: 'no-cache, private',
    ours: 'no-store',
    reason: 'Nobody keeps the answer of a health check',
  },
  {
    name: 'vary',
    theirs: undefined,
    ours: 'Accept',
    reason: 'Discovery has one document for each requested media type, and says so to caches',
  },
];

/** The difference of a request, if there is one on purpose. */
export function differenceOf(title: string): Difference | undefined {
  return DIFFERENCES.find(({ of }) => of.some((each) => (typeof each === 'string' ? each === title : each.test(title))));
}
