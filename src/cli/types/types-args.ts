import { normalize } from 'node:path';
import { toHeaders } from '../get/get-args.ts';
import { type Given, type Options, preset, quote, quoteUrl, valued } from '../usage.ts';

/** A kind that is asked for: as `NAME`, `NAME.GROUP`, `NAME.GROUP/VERSION`, or `NAME/VERSION` of the core group. */
export interface WantedKind {
  readonly text: string;
  /** In lower case. */
  readonly name: string;
  /** Undefined: the first that has it. */
  readonly group: string | undefined;
  /** Undefined: all. */
  readonly version: string | undefined;
}

export interface TypesCommand {
  readonly command: 'types';
  /** Files and folders, or the URL of a server; empty: the cluster of a kubeconfig. */
  readonly from: URL | readonly string[];
  /** Which kinds; empty: all. */
  readonly kinds: readonly WantedKind[];
  /** The file to write; undefined: stdout. */
  readonly out: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly responseTimeoutMs: number;
  readonly file: string | undefined;
  readonly context: string | undefined;
}

export const TYPES_OPTIONS: Options = {
  ...preset({ timeout: '60' }),
  ...valued('out', 'token', 'kubeconfig', 'context'),
  kind: { type: 'string', multiple: true },
  header: { type: 'string', multiple: true },
};

export function toTypes(given: Given): TypesCommand {
  given.notEmpty(['out', 'kubeconfig', 'context', 'token']);
  const kinds = given.list('kind').map((text) => {
    const wanted = toWanted(text);
    if (wanted === undefined) throw given.wrong('kind', 'NAME, NAME.GROUP or NAME.GROUP/VERSION', text);
    return wanted;
  });
  const from = toSource(given);
  const isFile = !(from instanceof URL) && from.length > 0;
  const stray = [...(isFile ? ['token', 'header'] : []), ...(isFile || from instanceof URL ? ['kubeconfig', 'context'] : [])];
  for (const option of stray) {
    if (given.has(option))
      throw given.error(
        `--${option} goes with ${stray.length > 2 ? 'a server' : 'a kubeconfig'}, not with ${isFile ? 'files' : 'a URL'}`,
      );
  }
  const out = given.text('out');
  if (out !== undefined && isFile && from.some((file) => normalize(file) === normalize(out))) {
    throw given.error(`--out is ${quote(out)}, which is read: expected another file`);
  }
  return {
    ...{ command: 'types', from, kinds, out, headers: toHeaders(given) },
    ...{ responseTimeoutMs: given.milliseconds('timeout'), file: given.text('kubeconfig'), context: given.text('context') },
  };
}

function toSource(given: Given): URL | readonly string[] {
  const [first, ...more] = given.positionals;
  if (first === undefined) {
    // A whole cluster has hundreds of kinds, so a missing argument does not mean that.
    if (['kind', 'context', 'kubeconfig'].some((option) => given.has(option))) return [];
    throw given.error('missing FILE or URL, or --kind or --context for a cluster, for example: watchmux types crds/');
  }
  if (given.positionals.includes('')) throw given.error('a file has an empty name');
  if (!/^https?:\/\//i.test(first)) return given.positionals;
  if (more.length > 0) throw given.error('types takes several files, or one URL');
  const url = given.httpUrl(first);
  if (url === undefined) throw given.error(`not an HTTP URL: ${quoteUrl(first)}`);
  return url;
}

/** Returns undefined for a text that names no kind. */
function toWanted(text: string): WantedKind | undefined {
  const [, name, group, version] = /^([^./\s]+)(?:\.([^/\s]+))?(?:\/([^/\s]+))?$/.exec(text) ?? [];
  if (name === undefined) return undefined;
  return { text, name: name.toLowerCase(), group: group ?? (version === undefined ? undefined : ''), version };
}
