import { milliseconds, type Options, type Parsed, quote, UsageError, whole, wrong } from '../usage.ts';

/** How objects are printed. */
export type Format = 'table' | 'json' | 'name';

/** The options of `watchmux get`. */
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
  watch: { type: 'boolean', short: 'w', default: false },
  output: { type: 'string', short: 'o', default: 'table' },
  selector: { type: 'string', short: 'l' },
  'field-selector': { type: 'string' },
  limit: { type: 'string' },
  header: { type: 'string', multiple: true },
  token: { type: 'string' },
  timeout: { type: 'string', default: '60' },
  kubeconfig: { type: 'string' },
  context: { type: 'string' },
  namespace: { type: 'string', short: 'n' },
  'all-namespaces': { type: 'boolean', short: 'A', default: false },
};

const FORMATS: readonly Format[] = ['table', 'json', 'name'];

/** Options that concern a kubeconfig, which a URL does not need. */
const OF_CLUSTERS = ['kubeconfig', 'context', 'namespace', 'all-namespaces'] as const;

export function toGet({ values, positionals }: Parsed): GetCommand {
  const [given, name, extra] = positionals;
  const example = 'watchmux get pods, or watchmux get http://127.0.0.1:8080/api/v1/pods';
  if (given === undefined) throw new UsageError(`missing URL or resource, for example: ${example}`, 'get');
  if (extra !== undefined)
    throw new UsageError(`unexpected argument ${quote(extra)}: get takes one resource and one name`, 'get');
  if (name === '') throw new UsageError('the name is empty', 'get');
  const target = toTarget(given);
  const stray = target instanceof URL ? OF_CLUSTERS.find((option) => values[option]) : undefined;
  if (stray !== undefined) throw new UsageError(`--${stray} goes with a resource, not with a URL`, 'get');
  const output = FORMATS.find((format) => format === values.output);
  if (output === undefined) throw wrong('get', 'output', values.output, `one of ${FORMATS.join(', ')}`);
  if (values.namespace !== undefined && values['all-namespaces']) {
    throw new UsageError('--namespace and --all-namespaces cannot be combined', 'get');
  }
  // A script whose variable is empty would silently ask for something else.
  for (const option of ['selector', 'field-selector', 'kubeconfig', 'context', 'namespace', 'token'] as const) {
    if (values[option] === '') throw wrong('get', option, '', 'a non-empty value');
  }
  const watch = values.watch === true;
  if (watch && values.limit !== undefined) throw new UsageError('--limit and --watch cannot be combined', 'get');
  const text = (option: string): string | undefined => values[option] as string | undefined;
  return {
    command: 'get',
    target,
    name,
    watch,
    output,
    labelSelector: text('selector'),
    fieldSelector: [text('field-selector'), name && `metadata.name=${name}`].filter(Boolean).join(',') || undefined,
    limit: values.limit === undefined ? undefined : whole('get', 'limit', values.limit, { min: 1 }),
    headers: toHeaders((values.header as string[] | undefined) ?? [], text('token')),
    responseTimeoutMs: milliseconds('get', 'timeout', values.timeout),
    file: text('kubeconfig'),
    context: text('context'),
    namespace: text('namespace'),
    allNamespaces: values['all-namespaces'] === true,
  };
}

function toTarget(given: string): URL | string {
  if (/^[a-z0-9-]+(\.[a-z0-9.-]+)?(\/[a-z0-9-]+)?$/i.test(given)) return given;
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url !== undefined && /^https?:$/.test(url.protocol)) return url;
  throw new UsageError(`neither an HTTP URL nor a resource such as pods or deployments.apps: ${quote(given)}`, 'get');
}

function toHeaders(lines: readonly string[], token: string | undefined): Record<string, string> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  for (const line of lines) {
    const [, name = '', value = ''] = /^([^:]+):\s*(.*)$/.exec(line) ?? [];
    try {
      new Headers([[name, value]]);
    } catch {
      throw wrong('get', 'header', line, '"NAME: VALUE"');
    }
    headers[name.toLowerCase()] = value;
  }
  return headers;
}
