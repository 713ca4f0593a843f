// In what the answers of mutated.test.ts may differ, each with its reason. A 500 of ours that upstream does not give, word for word, is never
// explained, nor is none at all.
import type { Mutated } from './mutations.ts';

/** A request, and what both servers answered. */
export interface Met {
  readonly request: Mutated;
  readonly theirs: { readonly code: number; readonly text: string };
  readonly ours: { readonly code: number; readonly text: string };
}

/** An explained difference. */
interface Explained {
  readonly reason: string;
  readonly is: (met: Met) => boolean;
}

type Is = (met: Met) => boolean;

/** A refusal of theirs, or of ours, has these words. */
const theySay =
  (text: RegExp): Is =>
  ({ theirs }) =>
    theirs.code >= 400 && text.test(theirs.text);
const weSay =
  (text: RegExp): Is =>
  ({ ours }) =>
    ours.code >= 400 && text.test(ours.text);
const both =
  (...all: Is[]): Is =>
  (met) =>
    all.every((is) => is(met));
const by =
  (...methods: string[]): Is =>
  ({ request }) =>
    methods.includes(request.method);
const at =
  (path: RegExp): Is =>
  ({ request }) =>
    path.test(request.path);
const either =
  (...all: Is[]): Is =>
  (met) =>
    all.some((is) => is(met));
const codes =
  (theirs: number, ours: number): Is =>
  (met) =>
    met.theirs.code === theirs && met.ours.code === ours;
const refusedByBoth: Is = ({ theirs, ours }) => theirs.code >= 400 && theirs.code < 500 && ours.code >= 400;
const header =
  (name: string, ...values: (string | undefined)[]): Is =>
  ({ request }) =>
    values.includes(request.headers[name]);
const PROTOBUF = 'application/vnd.kubernetes.protobuf';
const DEFINITIONS = /\/customresourcedefinitions/;
/** What tells of the kinds. */
const DOCUMENTS = /^\/(api(\/v1)?|apis(\/[^/?]+){0,2}|openapi(\/[^?]*)?|version)\/?(\?|$)/;
const APPLY = 'application/apply-patch+yaml';
const STRATEGIC = 'application/strategic-merge-patch+json';

export const EXPLAINED: readonly Explained[] = [
  {
    reason: 'A kube-apiserver fails (500) where the client is wrong',
    is: ({ theirs, ours }) => theirs.code === 500 && ours.code >= 400,
  },
  {
    reason: 'A kube-apiserver panics, and closes the connection, at protobuf of a custom resource and at keys that are no texts',
    is: both(
      ({ theirs, ours }) => theirs.code === 0 && [415, 422].includes(ours.code),
      header('content-type', PROTOBUF, STRATEGIC),
    ),
  },
  {
    reason:
      'A kube-apiserver panics, and closes the connection, at a definition with selectable fields and no schema, and at a list as items',
    is: both(
      ({ theirs, ours }) => theirs.code === 0 && [406, 422].includes(ours.code),
      ...[by('POST', 'PUT', 'PATCH'), at(DEFINITIONS)],
      ({ request: { body } }) => {
        const hasSchema = /openAPIV3Schema"?: *(\{|\n)/.test(String(body));
        return hasSchema ? /\bitems"?:(\[|\s*- )/.test(String(body)) : /\bselectableFields"?:/.test(String(body));
      },
    ),
  },
  {
    reason: 'A kube-apiserver panics, and closes the connection, at a test of the whole object that has no value',
    is: both(
      ...[header('content-type', 'application/json-patch+json'), weSay(/operation \d+, test, has no value/)],
      ({ theirs, ours, request: { body } }) =>
        theirs.code === 0 && ours.code === 422 && /\{"op":"test","path":""\}/.test(String(body)),
    ),
  },
  {
    reason: 'application/* includes JSON',
    is: both(header('accept', 'application/*'), ({ theirs }) => theirs.code === 406),
  },
  {
    reason: 'Of two faults, one of which is what the client accepts, either may be told',
    is: both(refusedByBoth, ({ theirs, ours }) => theirs.code === 406 || ours.code === 406),
  },
  {
    reason: 'A body without a type is refused: pages of other origins can send those',
    is: both(header('content-type', ''), ({ ours }) => ours.code === 415),
  },
  {
    reason: 'Custom resources and Leases can be replaced without a version',
    is: both(theySay(/must be specified for an update/), codes(422, 200)),
  },
  {
    reason: 'An object of another kind is 400, whatever else it is',
    is: both(by('POST', 'PUT'), refusedByBoth, ({ ours }) => ours.code === 400, weSay(/expected a \w+ of \S+, got /)),
  },
  {
    reason: 'A patch cannot make an object one of another kind',
    is: both(by('PATCH'), codes(200, 422), weSay(/expected a (\w+ of .+, got |Scale")/)),
  },
  { reason: 'A GET has no body, whatever it says of its type', is: both(by('GET'), at(DOCUMENTS), codes(415, 200)) },
  {
    reason: 'Documents that tell of the kinds are JSON',
    is: both(by('GET'), at(DOCUMENTS), codes(200, 406), weSay(/accepted: application\/json"/)),
  },
  {
    reason: 'A single object can be watched, whether it is there or not',
    is: both(by('GET'), at(/[?&]watch=|\/v1\/watch\//), codes(404, 200), theySay(/" not found"/)),
  },
  {
    reason: 'The same where a kube-apiserver tells it in YAML',
    is: both(by('GET'), at(/[?&]watch=|\/v1\/watch\//), codes(404, 200), theySay(/^message: '?[\w.]+ ".*" not found'?$/m)),
  },
  {
    reason:
      'A watch of a single object, or by the old path, is checked as others are; upstream reads the object, or looks at less',
    is: both(
      by('GET'),
      at(/\/v1\/watch\/|\/(configmaps|leases|ships|namespaces|customresourcedefinitions)\/[^/?]+\?.*watch=/),
      either(
        both(
          ({ theirs }) => [200, 404].includes(theirs.code),
          weSay(/ListOptions\.meta|(limit|timeoutSeconds): Invalid|selector|NotAcceptable/i),
        ),
        both(codes(400, 200), theySay(/the export parameter/)),
        both(codes(422, 200), theySay(/ListOptions.*is forbidden for list/)),
        both(codes(406, 200), theySay(/the requested object is not a list/)),
      ),
    ),
  },
  {
    reason: 'So are the names of its field selectors',
    is: both(
      ...[by('GET'), at(/[?&]fieldSelector=/), at(/\/[a-z]+s\/[^/?]+\?(.*&)?watch=/), weSay(/"field label not supported: /)],
      ({ theirs, ours }) => [200, 404].includes(theirs.code) && ours.code === 400,
    ),
  },
  {
    reason: 'A watch of a single object is one of a list',
    is: both(by('GET'), at(/[?&]watch=/), codes(500, 200), theySay(/content is not a list/)),
  },
  {
    reason: 'What is no YAML is told before that there is no such object',
    is: both(by('PATCH'), codes(404, 400), weSay(/"YAML: /)),
  },
  {
    reason: 'The generateName of a Lease is the beginning of a name in updates, too',
    is: both(by('PUT', 'PATCH'), at(/\/leases\//), codes(200, 422), weSay(/metadata\.generateName: Invalid value/)),
  },
  {
    reason: 'Outside of its namespace, no object is watched',
    is: both(by('GET'), at(/\/watch\/ships\/[^/?]+/), codes(200, 404)),
  },
  {
    reason: 'Outside of its namespace, no object is watched: that is told before other faults',
    is: both(by('GET'), at(/\/watch\/ships\/[^/?]+/), codes(400, 404)),
  },
  {
    reason: 'What is no JSON patch is 400, also for those who do not care for its fields',
    is: both(
      by('PATCH'),
      at(/fieldValidation=Ignore/),
      codes(422, 400),
      weSay(/error decoding patch: (path|from|op|value|a JSON patch)/i),
    ),
  },
  {
    reason: 'A custom resource is not created with a version, not even with one that is no number',
    is: both(by('POST'), codes(201, 400), weSay(/resourceVersion should not be set/)),
  },
  {
    reason: 'That a new custom resource has a version is told before what is wrong with the rest of it',
    is: both(by('POST'), codes(422, 400), weSay(/resourceVersion should not be set/)),
  },
  {
    reason: 'Unknown fields of a schema are also looked for within its items and additionalProperties',
    is: both(at(DEFINITIONS), weSay(/strict decoding error: .*openAPIV3Schema.*(items|additionalProperties|oneOf|anyOf|allOf)/)),
  },
  {
    reason:
      'YAML is that of version 1.2: a key in quotation marks needs no space before its value, and escapes are those of JSON',
    is: both(
      ...[header('content-type', 'application/yaml', APPLY), ({ theirs }: Met) => theirs.code === 400],
      theySay(/yaml: .*(did not find expected|found invalid Unicode)/),
    ),
  },
  {
    reason: 'What no named manager has written has no manager',
    is: both(
      by('PATCH'),
      header('content-type', APPLY),
      ({ theirs }) => theirs.code === 409,
      theySay(/conflict with \\"unknown\\"/),
    ),
  },
  {
    reason: 'That a new object has a version is told before that there is one of its name',
    is: both(by('POST'), codes(409, 400), theySay(/already exists/), weSay(/resourceVersion should not be set/)),
  },
  {
    reason: 'A limit is not negative',
    is: both(at(/[?&]limit=-/), codes(200, 400), weSay(/limit: Invalid value/)),
  },
  {
    reason: 'A JSON patch is as RFC 6902 has it: with values, with pointers that begin with /, and with decimal indices',
    is: both(
      ...[header('content-type', 'application/json-patch+json'), codes(200, 422)],
      weSay(/has no value|is not a JSON pointer|there is no element \\"[-+]?0*\d+\\"/),
    ),
  },
  {
    reason: 'A number beyond 32 bits is no int32, which upstream makes of it',
    is: both(
      ...[header('content-type', STRATEGIC), at(/\/leases\//), codes(200, 422), weSay(/patch: Invalid value/)],
      ({ request }) => /"lease(Transitions|DurationSeconds)":-?(\d{10}|\d+(\.\d+)?e\+?\d+)/.test(String(request.body)),
    ),
  },
  {
    reason: 'The uid is a precondition, wherever it is sent',
    is: both(by('PUT', 'PATCH'), codes(422, 409), theySay(/metadata\.uid: Invalid value/), weSay(/UID in precondition/)),
  },
  {
    reason: 'An apply of a definition does not tell of unknown fields in its schemas, but for fieldValidation=Strict',
    is: both(by('PATCH'), at(DEFINITIONS), codes(500, 200), theySay(/openAPIV3Schema.*: field not declared in schema/)),
  },
  {
    reason: 'A patch cannot take from an object of what kind it is',
    is: both(
      ...[by('PATCH'), either(codes(400, 200), codes(500, 200)), theySay(/was undeterminable|Object 'apiVersion' is missing/)],
      ({ request }) => /"?(apiVersion|kind)"?: ?null/.test(String(request.body)),
    ),
  },
  {
    reason: 'Nor is that told in place of other faults of the patch',
    is: both(
      by('PATCH'),
      ({ request }) => /"?(apiVersion|kind)"?: ?null/.test(String(request.body)),
      either(
        both(codes(422, 200), theySay(/Object 'Kind' is missing/)),
        both(codes(400, 422), theySay(/was undeterminable/), weSay(/metadata\.ownerReferences/)),
      ),
    ),
  },
  {
    reason: 'An integer that would lose digits is refused',
    is: both(
      ...[by('POST', 'PUT', 'PATCH', 'DELETE'), weSay(/"code":400.*cannot be kept as it is: send it as a string/)],
      ({ request }) => /\d{16}|\de\+?\d{2}/i.test(String(request.body)),
    ),
  },
  {
    reason: 'A number that is beyond 64 bits is no whole number',
    is: both(...[by('PATCH'), codes(200, 422), weSay(/expected a whole number/)], ({ request }) =>
      /\de\+?\d{2}/i.test(String(request.body)),
    ),
  },
  {
    reason: 'Nor is it applied: upstream makes the least number of 64 bits of it',
    is: both(...[by('PATCH'), header('content-type', APPLY), codes(200, 400), weSay(/expected a whole number/)], ({ request }) =>
      /\de\+?\d{2}/i.test(String(request.body)),
    ),
  },
  {
    reason: 'A version of more than 64 bits is one that was never given',
    is: both(at(/resourceVersion=9{20}/), either(codes(400, 410), both(codes(500, 200), at(/watch/)))),
  },
  {
    reason: 'What is less wanted, or not asked of this answer, is sent rather than nothing',
    is: both(
      codes(406, 200),
      either(
        both(by('DELETE'), header('accept', 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1')),
        both(
          at(/\/status(\?|$)/),
          header('accept', 'application/json;as=Table;g=meta.k8s.io;v=v1beta1', 'application/json;as=Table;g=meta.k8s.io;v=v1'),
        ),
        both(at(/watch/), header('accept', 'application/json;q=0.1,application/yaml;q=0.9', 'application/yaml')),
      ),
    ),
  },
  {
    reason: 'Tables and metadata are JSON',
    is: both(
      header('accept', 'application/yaml;as=Table;g=meta.k8s.io;v=v1'),
      ({ theirs, ours }) => theirs.code < 300 && ours.code === 406,
    ),
  },
  {
    reason: 'What a deletion answers has to be accepted, whatever that is',
    is: both(by('DELETE'), header('accept', 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'), codes(200, 406)),
  },
  {
    reason: 'Of two faults, one of which is how a Table is to be, either may be told',
    is: both(refusedByBoth, weSay(/Unable to convert to Table/)),
  },
  {
    reason: 'The version of the deletion of a collection is that of its list',
    is: both(
      by('DELETE'),
      at(/\/[a-z]+s\/?\?.*resourceVersion=/),
      codes(409, 200),
      theySay(/ResourceVersion in the precondition/),
    ),
  },
  {
    reason: 'A deletion is no watch',
    is: both(
      ...[by('DELETE'), at(/[?&]watch=/)],
      either(weSay(/ListOptions.*: Forbidden/), theySay(/ListOptions.*forbidden for watch/)),
    ),
  },
  {
    reason: 'What a patch at the status of a definition says of the rest of it is not looked at',
    is: both(
      by('PATCH'),
      at(/\/customresourcedefinitions\/[^/]+\/status/),
      ({ theirs, ours }) => ours.code === 200 && [400, 422, 500].includes(theirs.code),
      theySay(/field not declared in schema|metadata\.|typed patch object|was undeterminable/),
    ),
  },
  {
    reason: 'A timeout that is empty is none',
    is: both(at(/[?&]timeoutSeconds=(&|$)/), codes(400, 200), theySay(/strconv.ParseInt: parsing \\?"\\?"/)),
  },
  {
    reason: 'Nor is it told in place of other faults, as is an empty limit',
    is: both(
      ...[at(/[?&](limit|timeoutSeconds)=(&|$)/), theySay(/strconv.ParseInt: parsing \\?"\\?"/)],
      either(both(codes(400, 422), weSay(/ListOptions/)), both(by('DELETE'), codes(400, 409), weSay(/in precondition: /))),
    ),
  },
  {
    reason: 'That a timeout is negative is told before preconditions',
    is: both(by('DELETE'), at(/[?&]timeoutSeconds=-/), codes(409, 400), weSay(/timeoutSeconds: Invalid value/)),
  },
  {
    reason: 'A timeout is not negative',
    is: both(at(/[?&]timeoutSeconds=-/), codes(200, 400), weSay(/timeoutSeconds: Invalid value/)),
  },
  {
    reason: 'A requirement of nothing is no field selector',
    is: both(at(/[?&]fieldSelector=%3D(&|$)/), codes(200, 400), weSay(/expected the name of a field/)),
  },
  {
    reason: 'That a field selector names no field is told before other faults',
    is: both(at(/[?&]fieldSelector=%3D(&|$)/), either(codes(422, 400), codes(409, 400)), weSay(/expected the name of a field/)),
  },
  {
    reason: 'A path with an empty part is none',
    is: both(at(/^[^?]*\/\//), either(refusedByBoth, codes(200, 404)), ({ ours }) => ours.code === 404),
  },
  {
    reason: 'A path with a part of more than 512 characters is none',
    is: both(at(/^[^?]*\/[^/?]{513}/), refusedByBoth),
  },
  {
    reason: 'What is sent is read before its namespace',
    is: both(by('POST'), codes(404, 400), theySay(/namespaces \\?".*\\?" not found/), weSay(/expected an object/)),
  },
  {
    reason: 'Of two faults of a patched object, one of which is its name, either may be told',
    is: both(
      by('PATCH'),
      codes(400, 422),
      theySay(/was undeterminable|does not match the name on the URL/),
      weSay(/patch: Invalid value/),
    ),
  },
  {
    reason: 'A merge patch that is no object is 400, as one that is no JSON',
    is: both(by('PATCH'), codes(422, 400), theySay(/couldn't get version\/kind/), weSay(/a merge patch must be an object/)),
  },
  { reason: 'null is no object', is: both(by('POST'), codes(422, 400), weSay(/"message":"expected an object"/)) },
  {
    reason: 'null is no text and no bytes',
    is: both(
      ({ ours }) => ours.code === 400 || ours.code === 422,
      weSay(/expected (strings as values|an object of strings|base64)/),
    ),
  },
  {
    reason: 'After a document of YAML in one line, nothing else may follow',
    is: both(
      header('content-type', 'application/yaml', APPLY),
      ({ ours }) => ours.code === 400,
      weSay(/YAML: line \d+: Unexpected/),
    ),
  },
  {
    reason: 'A subresource has no path below it',
    is: both(at(/\/(status|scale)\/[^?]/), ({ ours }) => ours.code === 404),
  },
  { reason: 'A name that cannot be one is refused', is: weSay(/"the path of the URL has a segment that cannot be a name"/) },
  {
    reason: 'An object is not created at the path of one',
    is: both(by('POST'), at(/\/(ships|configmaps|leases|namespaces)\/[^?/]/), ({ ours }) => ours.code === 405),
  },
  {
    reason: 'A collection of custom resources is not replaced or patched, and says so before all else',
    is: both(by('PUT', 'PATCH'), at(/\/ships(\/|\/\.+)?(\?|$)/), refusedByBoth, ({ ours }) => ours.code === 405),
  },
  {
    reason: 'A namespace without a name is no path',
    is: both(codes(400, 404), at(/\/namespaces\/\//), theySay(/Namespace parameter required/)),
  },
  { reason: 'Protobuf of another shape is refused, wherever it is', is: weSay(/the body is not protobuf of this kind/) },
  {
    reason: 'A real namespace stays: no controller removes its finalizers',
    is: both(
      by('POST'),
      at(/^\/api\/v1\/namespaces(\?|$)/),
      ({ ours }) => [201, 400, 422].includes(ours.code),
      theySay(/already exists/),
    ),
  },
  {
    reason: 'So one that was not created there may be there already, and have other managers',
    is: both(
      ...[by('PATCH'), at(/^\/api\/v1\/namespaces\/fresh-/), header('content-type', APPLY), codes(400, 409)],
      ...[theySay(/does not match the name on the URL/), weSay(/conflict with \\"before-first-apply\\"/)],
    ),
  },
  {
    reason: 'The options in the URL of a deletion count beside those of its body, and are checked first',
    is: both(
      by('DELETE'),
      ({ request }) => Boolean(request.body?.length),
      either(
        ({ request, ours }) =>
          [400, 422].includes(ours.code) &&
          ['propagationPolicy', 'gracePeriodSeconds', 'dryRun', 'orphanDependents'].some(
            (name) =>
              new RegExp(`[?&]${name}=`).test(request.path) &&
              ours.text.includes(name === 'orphanDependents' ? 'propagationPolicy' : `${name}: `),
          ),
        both(at(/[?&]uid=/), codes(200, 409), weSay(/UID in precondition: /)),
        both(at(/[?&]resourceVersion=/), codes(200, 409), weSay(/ResourceVersion in precondition: /)),
      ),
    ),
  },
  {
    reason: 'A limit that is empty is none',
    is: both(
      at(/[?&]limit=(&|$)/),
      either(codes(400, 200), both(by('DELETE'), codes(400, 409))),
      theySay(/strconv.ParseInt: parsing \\?"\\?"/),
    ),
  },
  {
    reason: 'The options of a deletion are checked before its object, those in the URL before those of its body',
    is: both(
      by('DELETE'),
      refusedByBoth,
      (met) =>
        weSay(/gracePeriodSeconds: expected|dryRun: expected a list|is not a DeleteOptions object|the body is not JSON/)(met) ||
        weSay(/DeleteOptions\.meta|in an unknown format/)(met) ||
        theySay(/cannot unmarshal .*(DeleteOptions|Preconditions)|ListOptions/)(met),
    ),
  },
  {
    reason: 'That an object is not there is told before what is wrong with what was sent',
    is: both(by('PUT'), codes(400, 404)),
  },
  {
    reason: 'A patch is read before its object',
    is: both(
      by('PATCH'),
      theySay(/\bnot found\b/),
      weSay(/error decoding patch|due to an error in our request|invalid object type/),
    ),
  },
  { reason: 'A patch that is null is none', is: both(by('PATCH'), codes(200, 400), weSay(/patch must be (an object|a list)/)) },
  {
    reason: 'Members of metadata that only the server writes are not read',
    is: both(
      ({ theirs, ours }) => [400, 422].includes(theirs.code) && (ours.code < 300 || ours.code === 422),
      theySay(/(selfLink|creationTimestamp|deletionTimestamp) of type|parsing time/),
    ),
  },
  {
    reason: 'Of two faults of a query, either may be told',
    is: both(
      by('GET', 'DELETE'),
      either(
        both(codes(422, 400), theySay(/ListOptions/), weSay(/Invalid value/)),
        both(codes(400, 422), theySay(/invalid selector/), weSay(/ListOptions/)),
      ),
    ),
  },
  {
    reason: 'The options in the URL are checked before the type of the body',
    is: both(by('POST', 'PUT', 'PATCH'), codes(415, 422), weSay(/(Create|Update|Patch)Options\.meta\.k8s\.io/)),
  },
  {
    reason: 'A Scale is not read from protobuf',
    is: both(header('content-type', PROTOBUF), at(/\/scale(\?|$)/), codes(400, 415)),
  },
  {
    reason: 'An element of a strategic patch without its key is told before other faults',
    is: both(header('content-type', STRATEGIC), refusedByBoth, weSay(/does not contain declared merge key/)),
  },
  {
    reason: 'What says of what kind it is does not say null, or nothing',
    is: both(
      ({ theirs, ours }) => theirs.code < 300 && ours.code === 400,
      weSay(/expected a \w+ of \S+, got (something else|a {1,2}of|a \w+ of ")|is not a DeleteOptions object/),
    ),
  },
  {
    reason: 'That there is no such path is told before what is wrong with the options in the URL',
    is: both(
      codes(422, 404),
      theySay(/(Create|Update|Patch|Delete|List)Options\.meta/),
      weSay(/could not find the requested resource/),
    ),
  },
];
