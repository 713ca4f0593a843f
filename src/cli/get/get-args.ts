import { type Given, type Options, preset, quote, quoteUrl, valued } from '../usage.ts';

/** How objects are printed. */
export type Format = 'table' | 'json' | 'name';

export interface GetCommand {
  readonly command: 'get';
  /** The URL of a collection, or the name of a resource. */
  readonly target: URL | string;
  /** Only the object of this name. */
  readonly name: string | undefined;
  readonly watch: boolean;
  readonly output: Format;
  readonly labelSelector: string | undefined;
  readonly fieldSelector: string | undefined;
  /** The most objects to print. */
  readonly limit: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly responseTimeoutMs: number;
  /** The path of a kubeconfig. */
  readonly file: string | undefined;
  readonly context: string | undefined;
  readonly namespace: string | undefined;
  readonly allNamespaces: boolean;
}

export const GET_OPTIONS: Options = {
  ...preset({ timeout: '60' }),
  ...valued('field-selector', 'limit', 'token', 'kubeconfig', 'context'),
  watch: { type: 'boolean', short: 'w', default: false },
  output: { type: 'string', short: 'o', default: 'table' },
  selector: { type: 'string', short: 'l' },
  header: { type: 'string', multiple: true },
  namespace: { type: 'string', short: 'n' },
  'all-namespaces': { type: 'boolean', short: 'A', default: false },
};

const FORMATS: readonly Format[] = ['table', 'json', 'name'];

/** Options that concern a kubeconfig, which a URL does not need. */
const OF_CLUSTERS = ['kubeconfig', 'context', 'namespace', 'all-namespaces'] as const;

export function toGet(given: Given): GetCommand {
  const [wanted, name] = given.positionals;
  const example = 'watchmux get pods, or watchmux get http://127.0.0.1:8080/api/v1/pods';
  if (wanted === undefined) throw given.error(`missing URL or resource, for example: ${example}`);
  given.atMost(2, 'get takes one resource and one name');
  if (name === '') throw given.error('the name is empty');
  const target = toTarget(given, wanted);
  const stray = target instanceof URL ? OF_CLUSTERS.find((option) => given.text(option)) : undefined;
  if (stray !== undefined) throw given.error(`--${stray} goes with a resource, not with a URL`);
  const output = given.oneOf('output', FORMATS);
  const allNamespaces = given.flag('all-namespaces');
  if (given.has('namespace') && allNamespaces) throw given.error('--namespace and --all-namespaces cannot be combined');
  given.notEmpty(['selector', 'field-selector', 'kubeconfig', 'context', 'namespace', 'token']);
  const watch = given.flag('watch');
  if (watch && given.has('limit')) throw given.error('--limit and --watch cannot be combined');
  return {
    command: 'get',
    target,
    name,
    watch,
    output,
    labelSelector: given.text('selector'),
    fieldSelector: [given.text('field-selector'), name && `metadata.name=${name}`].filter(Boolean).join(',') || undefined,
    limit: given.wholeIf('limit', { min: 1 }),
    headers: toHeaders(given),
    responseTimeoutMs: given.milliseconds('timeout'),
    file: given.text('kubeconfig'),
    context: given.text('context'),
    namespace: given.text('namespace'),
    allNamespaces,
  };
}

function toTarget(given: Given, wanted: string): URL | string {
  if (/^[a-z0-9-]+(\.[a-z0-9.-]+)?(\/[a-z0-9-]+)?$/i.test(wanted)) return wanted;
  const url = given.httpUrl(wanted);
  if (url === undefined)
    throw given.error(`neither an HTTP URL nor a resource such as pods or deployments.apps: ${quoteUrl(wanted)}`);
  checkQuery(given, url.searchParams);
  return url;
}

/** Options replace parameters of the URL, which would be lost silently. */
function checkQuery(given: Given, query: URLSearchParams): void {
  if (query.has('watch') && !given.flag('watch')) throw given.error('use --watch instead of the parameter watch in the URL');
  if (query.has('labelSelector') && given.has('selector'))
    throw given.error('labelSelector in the URL cannot be combined with --selector');
  if (query.has('fieldSelector') && (given.has('field-selector') || given.positionals.length > 1))
    throw given.error('fieldSelector in the URL cannot be combined with --field-selector or a name');
}

/** Headers that say how a request is sent, which users must not set. */
const FRAMING = /^(connection|content-length|expect|keep-alive|te|trailer|transfer-encoding|upgrade)$/i;

export function toHeaders(given: Given): Record<string, string> {
  const token = given.text('token');
  // Neither the token nor the value of a header is shown: these messages may end up in a log.
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    throw given.error('--token takes visible ASCII characters without spaces');
  }
  const headers = new Headers(token === undefined ? {} : { authorization: `Bearer ${token}` });
  for (const line of given.list('header')) {
    const [, name = '', value = ''] = /^([^:]+):\s*(.*)$/.exec(line) ?? [];
    if (FRAMING.test(name)) throw given.error(`--header cannot set ${quote(name)}, which says how a request is sent`);
    if (token !== undefined && name.toLowerCase() === 'authorization') {
      throw given.error('--token and --header "authorization: ..." cannot be combined');
    }
    try {
      // A repeated header does not replace the earlier one.
      headers.append(name, value);
    } catch {
      throw given.wrong('header', '"NAME: VALUE"', line.replace(/[:\s].*/s, ' ...'));
    }
  }
  return Object.fromEntries(headers);
}
