// In what the answers of mutated.test.ts may differ, each with its reason.
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

const theySay =
  (text: string | RegExp) =>
  ({ theirs }: Met): boolean =>
    theirs.text.search(text) >= 0;
const weSay =
  (text: string | RegExp) =>
  ({ ours }: Met): boolean =>
    ours.text.search(text) >= 0;
const both =
  (...all: ((met: Met) => boolean)[]) =>
  (met: Met): boolean =>
    all.every((is) => is(met));
const isYaml = ({ request }: Met): boolean => request.headers['content-type'] === 'application/yaml';

export const EXPLAINED: readonly Explained[] = [
  {
    reason: 'A kube-apiserver fails (500) where the client is wrong',
    is: ({ theirs, ours }) => theirs.code === 500 && ours.code < 500,
  },
  { reason: 'A kube-apiserver panics, and closes the connection', is: ({ theirs }) => theirs.code === 0 },
  {
    reason: 'Media types are compared as HTTP has it: ranges, any case, and a quality that is none excludes nothing but itself',
    is: ({ theirs, ours }) => theirs.code === 406 || ours.code === 406,
  },
  {
    reason: 'A body without a type is refused: pages of other origins can send those',
    is: ({ request, ours }) => request.headers['content-type'] === '' && ours.code === 415,
  },
  { reason: 'Custom resources and Leases can be replaced without a version', is: theySay('must be specified for an update') },
  { reason: 'A patch that is no apply ignores force', is: theySay('force: Forbidden') },
  { reason: 'The name of a fieldManager is not looked at', is: theySay('fieldManager: Invalid value') },
  {
    reason: 'An object need not say of what kind it is',
    is: theySay(/Object 'Kind' is missing|\.apiVersion accessor error|API version in the data \(\)/),
  },
  {
    reason: 'What says of what kind it is does not say null, or nothing',
    is: weSay(/expected a \w+ of \S+, got something else|expected a \w+ of \S+, got a {1,2}of/),
  },
  { reason: 'Times that only the server writes are not read', is: theySay(/(creation|deletion)Timestamp|parsing time/) },
  {
    reason: 'Members of metadata that only the server writes are not read',
    is: theySay(/managedFields|generation|selfLink|deletionGracePeriodSeconds/i),
  },
  {
    reason: 'null is no text and no bytes',
    is: both(({ ours }) => ours.code === 400, weSay(/expected (strings as values|an object of strings|base64)/)),
  },
  { reason: 'After a document of YAML in one line, nothing else may follow', is: both(isYaml, weSay('Unexpected')) },
  {
    reason: 'A subresource has no path below it',
    is: ({ request, ours }) => ours.code === 404 && /\/(status|scale)\/[^?]/.test(request.path),
  },
  { reason: 'A name that cannot be one is refused', is: weSay('a segment that cannot be a name') },
  {
    reason: 'An object is not created at the path of one',
    is: ({ request, ours }) => request.method === 'POST' && ours.code === 405,
  },
  {
    reason: 'A patch cannot make an object one of another kind',
    is: both(({ request }) => request.method === 'PATCH', weSay(/expected a \w+ of \S+, got/)),
  },
  { reason: 'Protobuf of another shape is refused, wherever it is', is: weSay('the body is not protobuf of this kind') },
  {
    reason: 'No controller removes the finalizers of a real namespace',
    is: ({ request }) => /^\/api\/v1\/namespaces(\?|$)/.test(request.path),
  },
  {
    reason: 'The options in the URL of a deletion count beside those of its body, and its version is no precondition',
    is: ({ request }) =>
      request.method === 'DELETE' &&
      /[?&](propagationPolicy|gracePeriodSeconds|dryRun|resourceVersion|orphanDependents)=/.test(request.path),
  },
  { reason: 'A generateName that makes no name is not looked at', is: theySay('metadata.generateName: Invalid value') },
  { reason: 'A limit that is empty is none', is: ({ request }) => /[?&]limit=(&|$)/.test(request.path) },
  { reason: 'A selector of fields without a name is refused', is: weSay('expected the name of a field') },
];
