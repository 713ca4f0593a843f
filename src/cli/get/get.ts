import { messageOf } from '../../bridge/client/transport.ts';
import type { FetchLike } from '../../bridge/client.ts';
import { Informer } from '../../cache/informer/informer.ts';
import type { InformerFailure } from '../../cache/informer/informer-options.ts';
import type { List, ListOptions, ListWatcher } from '../../cache/list-watcher.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { loadCluster } from '../../kubernetes/cluster.ts';
import { createNodeFetch, type NodeFetch } from '../../kubernetes/node-fetch.ts';
import { onSignals } from '../../operator/signals.ts';
import { type CollectionTarget, objectSource, type TableCollection, TableSource } from '../../pages/table-source.ts';
import { excerpt } from '../../pages/words.ts';
import { isWatchError } from '../../watch/errors.ts';
import { hinted, withoutSecret } from '../lines.ts';
import type { Output } from '../output.ts';
import { type CommandName, quote, UsageError } from '../usage.ts';
import type { GetCommand } from './get-args.ts';
import { createPrinter, type PrintedChange, type Printer } from './printer.ts';

/** Objects are read in pages of this size, as kubectl does, so that a list of any length needs little memory. */
const PAGE_SIZE = 500;

/** `watchmux get`: prints the objects of a collection. Returns the exit code. */
export async function get(command: GetCommand, output: Output): Promise<number> {
  const stop = new AbortController();
  output.onGone = () => stop.abort();
  let where = command.target instanceof URL ? withoutSecret(command.target) : command.target;
  try {
    const target = await findTarget(command, stop.signal);
    where = withoutSecret(target.url);
    const table = command.output === 'table' ? new TableSource(target, command.responseTimeoutMs) : undefined;
    const printer = createPrinter(command.output, {
      manyNamespaces: target.manyNamespaces,
      single: command.name !== undefined,
      columns: () => table?.columns,
    });
    const source = table ?? objectSource(target, command.responseTimeoutMs);
    const work = { command, source, printer, output, signal: stop.signal };
    if (command.watch) return await follow(work);
    return await (isNamed(command, target) ? one(work) : list(work));
  } catch (error) {
    if (output.gone) return 0;
    if (error instanceof UsageError) throw error;
    note(explain(error, excerpt(where, 200)));
    return 1;
  }
}

/** Whether a single object is asked for, by its own URL: the user may be allowed to `get` it but not to `list`. */
function isNamed({ name, labelSelector, fieldSelector }: GetCommand, { manyNamespaces }: CollectionTarget): boolean {
  const otherwise = labelSelector !== undefined || fieldSelector !== `metadata.name=${name}`;
  return name !== undefined && !otherwise && !manyNamespaces;
}

/** Prints one object. */
async function one({ command: { name = '' }, source, printer, output, signal }: GetWork): Promise<number> {
  const object = await source.get(name, signal).catch((error: unknown) => {
    const { code, details } = (isWatchError(error, 'REFUSED') && error.status) || {};
    if (code === 404 && details?.name === name) return undefined; // rather than the collection
    throw error;
  });
  if (object) await output.write(printer.begin('') + printer.objects([object]) + printer.end());
  else note(`there is no object ${quote(name)}`);
  return object ? 0 : 1;
}

/** Prints the current objects. */
async function list({ command, source, printer, output, signal }: GetWork): Promise<number> {
  let count = 0;
  let begun = false;
  for await (const { items, resourceVersion } of pages(source, command, signal)) {
    if (!begun) await output.write(printer.begin(resourceVersion));
    begun = true;
    count += items.length;
    await output.write(printer.objects(items));
    if (output.gone) return 0;
  }
  await output.write(printer.end());
  if (count > 0) return 0;
  if (command.name !== undefined) note(`there is no object ${quote(command.name)}`);
  else note('there are no objects');
  return command.name === undefined ? 0 : 1;
}

/** The pages of a list, up to the limit. */
async function* pages<T>(source: ListWatcher<T>, command: GetCommand, signal: AbortSignal): AsyncGenerator<List<T>> {
  const { labelSelector, fieldSelector, limit = Infinity } = command;
  let left = limit;
  for (let token: string | undefined, last: string | undefined; ; ) {
    const options: ListOptions = { labelSelector, fieldSelector, limit: Math.min(PAGE_SIZE, left), continue: token, signal };
    let page: List<T>;
    try {
      page = await source.list(options);
    } catch (error) {
      // The output was read so slowly that the server no longer has the version of this list. It offers to continue with a
      // newer one.
      const next = isWatchError(error, 'REFUSED') && error.status?.code === 410 ? error.status.metadata.continue : undefined;
      if (next === undefined || next === last || token === undefined) throw error;
      note('the list changed while it was being read: what follows is newer');
      last = token = next;
      continue;
    }
    yield { ...page, items: page.items.slice(0, left) };
    left -= page.items.length;
    if (left <= 0 || page.continue === undefined) return;
    if (page.continue === token) throw new Error('the server repeated a continue token');
    token = page.continue;
  }
}

/** Why it failed, in one line. */
function explain(error: unknown, where: string): string {
  const message = (isWatchError(error) ? error.message : messageOf(error)).replace(PLACE, '');
  if (isWatchError(error, 'REFUSED')) return `${where} answered ${pointed(message)}${hint(error.status?.code, where)}`;
  if (isWatchError(error, 'INVALID_FRAME')) {
    const isObject = message.includes('got kind ') && !message.endsWith('undefined');
    const advice = isObject ? '; for one object, give the URL of its collection, and its name' : '';
    return `${where} is not a collection: ${excerpt(message, 200)}${advice}`;
  }
  if (isWatchError(error)) return `${where}: ${excerpt(message, 200)}`;
  return `cannot read ${where}: ${excerpt(hinted(message), 200)}`;
}

/** The URL that errors name at their end, which the message already has. */
const PLACE = / \(https?:[^ \n]*\)$/m;

/** A message in one line; but a caret under a character of a selector keeps its own lines, below it. */
function pointed(message: string): string {
  const [, fault = message, text, caret] = /^(.*)\n( {2}.{1,90})\n( {2,90}\^)$/.exec(message) ?? [];
  return [excerpt(fault, 300), ...(text && caret ? [excerpt(text, 100), caret] : [])].join('\n');
}

/** Collections are not at the path that people try first. */
function hint(code: number | undefined, where: string): string {
  if (code !== 404 || /\/(api\/[^/]+|apis\/[^/]+\/[^/]+)\/[^/]+/.test(where)) return '';
  return '; collections of Kubernetes are at /api/v1/PLURAL or /apis/GROUP/VERSION/PLURAL';
}

function note(text: string): void {
  process.stderr.write(`watchmux get: ${text}\n`);
}

/** What to print: from where, how, and where to. */
interface GetWork {
  readonly command: GetCommand;
  readonly source: TableCollection;
  readonly printer: Printer;
  readonly output: Output;
  /** Aborts when the output is no longer read. */
  readonly signal: AbortSignal;
}

/**
 * Prints the current objects, and then every change, until a signal or the end of the output's reader. An informer does the work:
 * it survives broken connections, and lists again after 410. Its watch folds what is not read, so a slow reader of the output
 * costs no memory beyond the objects themselves.
 *
 * Rejects with the first failure if nothing could be read at all: that is more likely a mistake than a temporary problem.
 */
async function follow({ command, source, printer, output, signal }: GetWork): Promise<number> {
  const { labelSelector, fieldSelector } = command;
  let failed: { readonly error: unknown } | undefined;
  const onError = (error: unknown, failure: InformerFailure<KubernetesObject>): void => {
    if (failure.kind === 'handler' || failure.kind === 'object') {
      note(excerpt(messageOf(error)));
      return;
    }
    const { delayMs, kind } = failure;
    if (delayMs === undefined) return; // it continues at once, in another way
    if (informer.hasSynced || kind === 'throttled') {
      note(`${excerpt(messageOf(error))}; retrying in ${(delayMs / 1_000).toFixed(1)} s`);
      return;
    }
    failed ??= { error };
    void informer.stop();
  };
  const informer = new Informer<KubernetesObject>(source, { labelSelector, fieldSelector, onError });
  const events = informer.watch();
  const stop = (): void => void informer.stop();
  const release = onSignals(() => {
    stop();
    output.hurry();
  });
  signal.addEventListener('abort', stop);
  const running = informer.run();
  for await (const batch of events.batches()) {
    const changes = batch.flatMap((event): PrintedChange[] =>
      event.type === 'BOOKMARK' || event.type === 'ERROR' ? [] : [event],
    );
    if (changes.length > 0) await output.write(printer.events(changes));
    if (output.gone) break;
  }
  stop();
  await running;
  release();
  signal.removeEventListener('abort', stop);
  if (failed) throw failed.error;
  return 0;
}

/** Finds the collection: that of a URL, or that of a resource in the cluster of a kubeconfig. Throws a {@link UsageError} if there is none. */
async function findTarget(command: GetCommand, signal: AbortSignal): Promise<CollectionTarget> {
  const { target, headers } = command;
  if (target instanceof URL) {
    const fetch = withHeaders(
      createNodeFetch(() => ({})),
      headers,
    ); // together with the connections that Node keeps
    return { url: target, fetch, manyNamespaces: !target.pathname.includes('/namespaces/') };
  }
  const { file, context, namespace, allNamespaces, responseTimeoutMs } = command;
  try {
    const cluster = await loadCluster({ file, context, responseTimeoutMs });
    const resource = await cluster.find(target, { signal });
    const inside = resource.type.namespaced && !allNamespaces;
    const { url } = inside ? resource.in(namespace ?? cluster.namespace) : resource;
    return { url, fetch: withHeaders(cluster.fetch, headers), manyNamespaces: !inside && resource.type.namespaced === true };
  } catch (error) {
    if (isWatchError(error, 'INVALID_ARGUMENT')) throw new UsageError(said(error.message, 'get'), 'get');
    throw error;
  }
}

/** The command line uses other names for some things. */
export function said(message: string, command: CommandName): string {
  if (message.startsWith('kubeconfig: expected')) return `${message}: name one with --kubeconfig, or give a URL`;
  return message
    .replace(/: npm install (\S+)$/, `: npm install $1, beside watchmux; or run npx -p watchmux -p $1 watchmux ${command}`)
    .replace(/^context: expected one of none, got (.*)$/, '--context: expected a kubeconfig that has $1, found none')
    .replace(/^resource: expected one that the server has, got/, 'the server has no resource')
    .replace(/^context:/, '--context:');
}

export function withHeaders(fetch: NodeFetch, headers: Readonly<Record<string, string>>): FetchLike {
  return (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...headers } });
}
