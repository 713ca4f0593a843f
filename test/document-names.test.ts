// Whatever a document names exists: options of commands and of functions, scripts, files, entry points, metrics.
import { dirname, posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { Hub } from '../src/bridge/hub/hub.ts';
import { parseCommand } from '../src/cli/args.ts';
import { COMMANDS } from '../src/cli/usage.ts';
import { withoutCode } from './markdown.ts';
import { DOCUMENTS, FILES, readText } from './tracked.ts';

/** Options of other programs, by program. Those of the benchmarks are read from their source. */
const OPTIONS_OF_OTHERS: Readonly<Record<string, string>> = {
  npm: 'no-git-tag-version dry-run provenance access global',
  node: 'expose-gc',
  stryker: 'mutate',
  kopf: 'liveness peering standalone',
  kubectl: 'as as-group cascade from-literal server server-side prune prune-allowlist prune-whitelist subresource type',
  docker: 'format',
  etcd: 'auto-compaction-mode auto-compaction-retention bump-revision client-cert-auth mark-compacted',
};

/** Names of other programs and libraries, by where they come from. */
const NAMES_OF_OTHERS: Readonly<Record<string, string>> = {
  'ECMAScript and the web': 'withResolvers EventSource MessagePort',
  Node: 'EventEmitter listenerCount createReadStream removeAllListeners closeAllConnections disconnectSockets keepAliveInitialDelay httpServer',
  RxJS: 'RxJS ReplaySubject BehaviorSubject takeUntil bufferTime auditTime concatMap catchError',
  React: 'useSyncExternalStore useCallback',
  Vitest: 'useFakeTimers advanceTimersByTimeAsync',
  Vue: 'shallowRef onMounted',
  Angular: 'toSignal initialValue',
  Deno: 'upgradeWebSocket',
  browsers: 'localStorage SameSite',
  'frameworks, bundlers and proxies':
    'preClose beforeApplicationShutdown forceCloseConnections conditionNames packageExports proxyRes',
  npm: 'prepublishOnly',
  Effect: 'PubSub takeAll',
  'client-node':
    'KubernetesObjectApi V1Deployment makeInformer listFn kubeConfig skipTLSVerify V1Pod CoreV1Api CustomObjectsApi loadFromDefault',
  Kubernetes: 'ServerTimeout LeaderTransitions preStop failurePolicy OwnerReferencesPermissionEnforcement',
  'client-go, in the tables of docs/from-go.md':
    'ResultChan NewBroadcaster NewLongQueueBroadcaster WaitIfChannelFull DropIfChannelFull ActionOrDrop WatchWithPrefix ' +
    'FilterFunc NewRecorder IsProbableEOF IsTimeout NewClientErrorReporter NewEmptyWatch ListerWatcher SharedIndexInformer ' +
    'SharedInformerFactory DeltaFIFO RealFIFO',
  'client-go and controller-runtime, in the tables of docs/operators.md':
    'CreateOrUpdate RetryOnConflict AddFinalizer RemoveFinalizer SetStatusCondition FindStatusCondition SetControllerReference ' +
    'SetOwnerReference GetControllerOf RemoveOwnerReference EnqueueRequestForOwner EnqueueRequestsFromMapFunc DeepEqual ' +
    'GetDeletionTimestamp IsNotFound ControllerManagedBy GenerationChangedPredicate RequeueAfter TerminalError ' +
    'MaxConcurrentReconciles GetAPIReader FieldOwner ForceOwnership GetFieldIndexer IndexField GetEventRecorder LeaderElection ' +
    'LeaderElectionID HealthProbeBindAddress BindAddress GracefulShutdownTimeout SyncTimeout CustomDefaulter CustomValidator',
  kopf: 'TemporaryError PermanentError AdmissionError KopfRunner',
  'readers, who choose them': 'toX fromX createX onSomething',
  'examples of what `watchmux types` writes': 'WebsiteSpecPathsItem WebsiteV1beta1 EventsEvent',
};

/** Files that a reader has, or that a command writes. */
const FILES_OF_OTHERS: readonly string[] = [
  'bench/results/latest.json',
  'example.ts',
  'figures.json',
  'from-store.js',
  'orders.tsx',
  'reports/peers/',
  'session.ts',
  'use-store.js',
  'src/built-in.ts',
  'src/kinds.ts',
  'src/website.ts',
  'vite.config.ts',
];

const words = (lists: Readonly<Record<string, string>>): Set<string> =>
  new Set(Object.values(lists).flatMap((list) => list.split(' ')));

/** What is between backticks, outside of blocks of code, which are programs that tests run, or output. */
const spans = (page: string): string[] => Array.from(withoutCode(page).matchAll(/`([^`\n]+)`/g), ([, code = '']) => code);

/** The code of some files without its comments, which may speak of what is no more. */
const codeOf = (pattern: RegExp): string =>
  FILES.filter((path) => pattern.test(path))
    .map((path) => readText(path).replace(/\/\*.*?\*\/|(?<=^|\s)\/\/.*?$/gms, ''))
    .join('\n');

const code = codeOf(/^src\/.*\.ts$/);
const known: ReadonlySet<string> = new Set(code.match(/[A-Za-z_$][\w$]*/g));

/** What `find` says is missing on a page, with the page's path. */
function missing(find: (page: string, path: string) => readonly string[]): string[] {
  return DOCUMENTS.flatMap((path) => [...new Set(find(readText(path), path))].map((name) => `${path}: ${name}`));
}

/** Commands of watchmux, each with its options: in blocks as well as in the text. */
function commandsIn(page: string): { readonly command: string; readonly options: readonly string[] }[] {
  const lines = page.replace(/\\\n\s*/g, ' ');
  return Array.from(
    lines.matchAll(new RegExp(`\\bwatchmux (${COMMANDS.join('|')})\\b([^|&;#\`\\n]*)`, 'g')),
    ([, command = '', rest = '']) => ({
      command,
      options: Array.from(rest.matchAll(/(?<=\s)--?[a-zA-Z][\w-]*/g), ([option]) => option),
    }),
  );
}

/** Whether a command takes an option, whatever it says about its value. */
function takes(command: string, option: string): boolean {
  try {
    parseCommand([command, option, '1']);
    return true;
  } catch (error) {
    return !(error as Error).message.includes('Unknown option');
  }
}

/** The scripts of the benchmarks that have options, and the files that read them. */
const SCRIPTS: Readonly<Record<string, string>> = {
  bench: 'bench/run.ts',
  'bench:check': 'bench/check.ts',
  'bench:cuts': 'bench/cuts.ts',
  'bench:jitter': 'bench/bridge/jitter/run.ts',
  plan: 'bench/plan/command.ts',
};

function benchOptions(script: string): string[] {
  const source = readText(SCRIPTS[script] ?? '');
  const [, declared = ''] = /\n {4}options: \{\n(.*?)\n {4}\}/s.exec(source) ?? [];
  return Array.from(declared.matchAll(/^ {6}'?([a-z][a-z-]*)'?: /gm), ([, name = '']) => name);
}

describe('options of commands', () => {
  const unknownIn = (page: string): string[] =>
    commandsIn(page).flatMap(({ command, options }) =>
      options.filter((option) => !takes(command, option)).map((option) => `${command} ${option}`),
    );

  test('one that does not exist is found', () => {
    const page = '`npx watchmux get pods --wach -o json`\n```sh\nx | watchmux pipe --raw \\\n  --capcity 5 | jq --y\n```\n';
    expect(unknownIn(page)).toEqual(['get --wach', 'pipe --capcity']);
  });

  test('of watchmux, wherever a document shows a command', () => {
    expect(DOCUMENTS.flatMap((path) => commandsIn(readText(path))).length).toBeGreaterThan(30);
    expect(missing(unknownIn)).toEqual([]);
  });

  test('of the benchmarks, by script', () => {
    const unknown = (page: string): string[] =>
      Array.from(page.matchAll(/npm run (bench(?::\w+)?|plan) -- ([^&|#`\n]*)/g), ([, script = '', rest = '']) =>
        Array.from(rest.matchAll(/--([a-z][\w-]*)/g), ([, name = '']) => name)
          .filter((name) => !benchOptions(script).includes(name))
          .map((name) => `${script} --${name}`),
      ).flat();
    expect(unknown('npm run bench -- fanout --burst 64 --rouns 11\n`npm run plan -- --burst 1`')).toEqual([
      'bench --rouns',
      'plan --burst',
    ]);
    expect(missing(unknown)).toEqual([]);
  });

  test('all that begins with two dashes', () => {
    const others = new Set([...words(OPTIONS_OF_OTHERS), ...Object.keys(SCRIPTS).flatMap(benchOptions)]);
    const unknown = (page: string): string[] =>
      Array.from(page.matchAll(/(?<![\w-])--([a-z][a-z0-9-]*)/g), ([, name = '']) => name).filter(
        (name) => !others.has(name) && !COMMANDS.some((command) => takes(command, `--${name}`)),
      );
    expect(unknown('`--max-watcher`, `--drain-delay`, `--prune`')).toEqual(['max-watcher']);
    expect(missing(unknown)).toEqual([]);
  });
});

describe('names in the code', () => {
  const alerts = readText('docs/operation/alerts.yaml').matchAll(/- alert: (\w+)/g);
  const others = new Set([...words(NAMES_OF_OTHERS), ...Array.from(alerts, ([, name = '']) => name)]);
  const namesIn = (page: string): string[] =>
    spans(page).flatMap((span) =>
      Array.from(span.matchAll(/(?<![\w$/-])[A-Za-z][a-z0-9]*(?:[A-Z][A-Za-z0-9]*)+(?![\w$/-])/g), ([name]) => name).filter(
        (name) => /[a-z]/.test(name),
      ),
    );

  test('one that does not exist is found', () => {
    const page = '`maxQueuedByte` and `watch({ maxQueuedBytes, overFlow })` of `MuxWatch`\n```ts\nignoredHere();\n```\n';
    expect(namesIn(page).filter((name) => !known.has(name))).toEqual(['maxQueuedByte', 'overFlow', 'MuxWatch']);
  });

  test('of options, functions and types', () => {
    expect(DOCUMENTS.flatMap((path) => namesIn(readText(path))).length).toBeGreaterThan(700);
    expect(missing((page) => namesIn(page).filter((name) => !known.has(name) && !others.has(name)))).toEqual([]);
  });

  test('of constants, codes and variables', () => {
    // Variables are those of tests, too, but not of this one.
    const all = codeOf(/^(?:src|test(?!\/document-names)|bench|examples|\.ci)\//);
    const unknown = (page: string): string[] =>
      [...spans(page), ...(page.match(/\bWATCHMUX_\w+/g) ?? [])]
        .flatMap((span) => span.match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g) ?? [])
        .filter((name) => !all.includes(name) && name !== 'NODE_EXTRA_CA_CERTS');
    expect(unknown('`INVALID_ARGUMENTS` and WATCHMUX_PUN')).toEqual(['INVALID_ARGUMENTS', 'WATCHMUX_PUN']);
    expect(missing(unknown)).toEqual([]);
  });

  test('of metrics', () => {
    const served = `${new Hub().metrics()} ${code}`;
    const unknown = (page: string): string[] =>
      (page.match(/\bwatchmux_\w+/g) ?? []).filter((name) => {
        const own = name.replace(/^watchmux_(?:apiserver_|operator_)?/, '');
        return !served.includes(name) && !served.includes(`'${own}'`);
      });
    expect(unknown('`watchmux_events_accepted_total`, watchmux_event_total')).toEqual(['watchmux_event_total']);
    expect(missing(unknown)).toEqual([]);
  });
});

describe('scripts, files and entry points', () => {
  test('npm run', () => {
    const unknown = (page: string): string[] =>
      Array.from(page.matchAll(/\bnpm run ([a-z][\w:-]*)/g), ([, name = '']) => name).filter(
        (name) => !(name in manifest.scripts),
      );
    expect(unknown('`npm run build`, npm run bild')).toEqual(['bild']);
    expect(missing(unknown)).toEqual([]);
  });

  test('entry points', () => {
    const unknown = (page: string): string[] =>
      Array.from(page.matchAll(/['`](watchmux\/[\w/-]+)['`]/g), ([, name = '']) => name).filter(
        // Annotations of BOOKMARKs begin alike.
        (name) => !(name.replace('watchmux', '.') in manifest.exports) && !code.includes(`'${name}'`),
      );
    expect(unknown("`watchmux/cache`, import from 'watchmux/cash'")).toEqual(['watchmux/cash']);
    expect(missing(unknown)).toEqual([]);
  });

  test('files and folders', () => {
    const folders = new Set(
      FILES.map((path) => dirname(path)).flatMap((path) => path.split('/').map((_, at, all) => all.slice(0, at + 1).join('/'))),
    );
    const names = new Set(FILES.map((path) => posix.basename(path)));
    const top = new Set(FILES.map((path) => path.split('/', 1)[0] ?? ''));
    const inSource = new Set(FILES.flatMap((path) => /^src\/([\w-]+)\//.exec(path)?.[1] ?? []));
    const exists = (path: string, page: string): boolean => {
      // `*` stands for some files, or for what is in a folder.
      const [fixed = ''] = path.split('*', 1);
      const places = [fixed, posix.join(dirname(page), fixed), `src/${fixed}`];
      if (path.includes('*')) return places.some((place) => FILES.some((file) => file.startsWith(place)));
      return places.some((place) => FILES.includes(place) || folders.has(place.replace(/\/$/, '')));
    };
    const unknown = (text: string, page: string): string[] => {
      const paths = spans(text)
        .flatMap((span) => span.split(/\s+/))
        .filter((word) => /^[\w.@*-]+(?:\/[\w.@*-]+)*\/?$/.test(word));
      const inText = text.match(/(?<![\w/.@-])(?:src|test|bench|docs|examples|config|\.ci)\/[\w./*-]*\w/g) ?? [];
      return [...paths, ...inText].filter((path) => {
        if (FILES_OF_OTHERS.includes(path)) return false;
        const [first = ''] = path.split('/', 1);
        if (!path.includes('/')) return /\.(?:m?[jt]sx?|json)$/.test(path) && !path.includes('*') && !names.has(path);
        const ours = top.has(first) || (inSource.has(first) && /(?:\.ts|\/)$/.test(path));
        return ours && !exists(path, page);
      });
    };
    const page =
      '`src/index.ts`, `watch/none.ts`, `hub/` and `cli/nothing/`; node test/peers/bild.mjs; `none.mjs`, `test/*.nothing`\n';
    expect(unknown(page, 'README.md')).toEqual(['watch/none.ts', 'cli/nothing/', 'none.mjs', 'test/peers/bild.mjs']);
    expect(missing(unknown)).toEqual([]);
  });
});
