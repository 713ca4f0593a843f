// The package has the same entry points in package.json, in the build and in the tests, and each exports what is listed here.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Options } from 'tsup';
import { describe, expect, test } from 'vitest';
import examples from '../examples/tsconfig.json' with { type: 'json' };
import manifest from '../package.json' with { type: 'json' };
import builds from '../tsup.config.ts';
import testing from '../vitest.config.ts';

/** Every entry point, its source, and all that it exports at run time. An export that is not here is an accident. */
const ENTRY_POINTS: Readonly<Record<string, { readonly source: string; readonly exports: readonly string[] }>> = {
  watchmux: {
    source: 'src/index.ts',
    exports: [
      'Broadcaster',
      'LengthPrefixedFramer',
      'NewlineFramer',
      'ProxyWatcher',
      'Recorder',
      'StreamWatcher',
      'WatchError',
      'emptyWatch',
      'filter',
      'filterTransitions',
      'fromAsyncIterable',
      'fromReadableStream',
      'isErrorEvent',
      'isStatus',
      'isWatchError',
      'jsonCodec',
      'sleep',
      'systemClock',
      'toDecoder',
      'toReadableStream',
      'toStatus',
    ],
  },
  'watchmux/rxjs': { source: 'src/adapters/rxjs.ts', exports: ['fromObservable', 'observe', 'toObservable'] },
  'watchmux/node-stream': { source: 'src/adapters/node-stream.ts', exports: ['fromReadable', 'toReadable'] },
  'watchmux/http': {
    source: 'src/bridge/http.ts',
    exports: [
      'BEARER_SUBPROTOCOL',
      'BOOKMARK_INTERVAL',
      'CLOSE_CODES',
      'CLOSE_REASONS',
      'DEFAULTS',
      'EVENT_STREAM',
      'Hub',
      'INITIAL_EVENTS_END',
      'JSON_LINES',
      'LAST_EVENT_ID',
      'LINE',
      'PARAMETERS',
      'RECORD',
      'RETRY_AFTER',
      'STATS_PATH',
      'SUBPROTOCOL',
      'WATCH_PATH',
      'createConnectionHandler',
      'createHttpHandler',
      'fromAnnotation',
      'fromRetryReason',
      'isInitialEventsEnd',
      'newEpoch',
      'readSubprotocols',
      'toBookmark',
      'toRetryReason',
      'toVersion',
    ],
  },
  'watchmux/ws': {
    source: 'src/bridge/websocket.ts',
    exports: ['Hub', 'attachWebSocket', 'attachWebSocketServer', 'createUpgradeHandler'],
  },
  'watchmux/fetch': {
    source: 'src/bridge/fetch.ts',
    exports: ['Hub', 'LINE', 'RECORD', 'createConnectionHandler', 'createFetchHandler', 'readSubprotocols'],
  },
  'watchmux/client': { source: 'src/bridge/client.ts', exports: ['connect', 'isInitialEventsEnd', 'toCollection', 'toStore'] },
  'watchmux/react': { source: 'src/react/index.ts', exports: ['useCollection', 'useConnection', 'useWatch'] },
  'watchmux/workqueue': {
    source: 'src/workqueue/index.ts',
    exports: [
      'Controller',
      'LeaderElector',
      'WorkQueue',
      'bucket',
      'defaultRateLimiter',
      'exponential',
      'fastSlow',
      'maxOf',
      'maxWait',
      'parallelizeUntil',
      'toLeases',
    ],
  },
  'watchmux/cache': {
    source: 'src/cache/index.ts',
    exports: [
      'DeltaFifo',
      'INITIAL_EVENTS_END',
      'Indexer',
      'Informer',
      'InformerFactory',
      'LabelSelector',
      'Lister',
      'RealFifo',
      'Reflector',
      'RetryWatcher',
      'Store',
      'WatchError',
      'compareVersions',
      'createListWatcher',
      'fromHub',
      'isDeletedFinalStateUnknown',
      'isInitialEventsEnd',
      'isWatchError',
      'keyOf',
      'listAll',
      'parseLabelSelector',
      'splitKey',
      'until',
      'untilWithSync',
    ],
  },
  'watchmux/storage': {
    source: 'src/storage/index.ts',
    exports: [
      'BackedStorage',
      'Cacher',
      'Draft',
      'FieldSelector',
      'LabelSelector',
      'MemoryStorage',
      'SelectionPredicate',
      'openMemoryStorage',
      'parseFieldSelector',
      'parseLabelSelector',
      'toObject',
    ],
  },
  'watchmux/etcd': { source: 'src/storage/etcd/index.ts', exports: ['EtcdStorage'] },
  'watchmux/apply': { source: 'src/apply/index.ts', exports: ['ApplyConflict', 'applyConfiguration', 'extractManaged'] },
  'watchmux/sqlite': { source: 'src/storage/sqlite/index.ts', exports: ['SqliteStorage'] },
  'watchmux/nats': { source: 'src/nats/index.ts', exports: ['NatsStream'] },
  'watchmux/apiserver': {
    source: 'src/apiserver/index.ts',
    exports: [
      ...['ApiServer', 'BUILT_IN_KINDS', 'CONFIG_MAPS', 'EVENTS', 'LEASES', 'NAMESPACES', 'REVIEWS', 'Resource', 'SECRETS'],
      ...['SERVICE_ACCOUNTS', 'WEBHOOK_CONFIGURATIONS', 'allKubernetesKinds', 'kubernetesKinds'],
    ],
  },
  'watchmux/kubernetes': { source: 'src/kubernetes/index.ts', exports: ['Cluster', 'createNodeFetch', 'loadCluster'] },
  'watchmux/operator-testing': { source: 'src/testing/test-operator.ts', exports: ['testOperator'] },
  'watchmux/operator': {
    source: 'src/operator/index.ts',
    exports: [
      'EventRecorder',
      'FollowedKind',
      'Operator',
      'WebhookServer',
      'Webhooks',
      'allOf',
      'annotationsChanged',
      'anyOf',
      'apply',
      'controller',
      'controllerOf',
      'createOrUpdate',
      'deletionStarted',
      'ensureFinalizer',
      'equals',
      'findCondition',
      'generationChanged',
      'isAlreadyExists',
      'isConditionTrue',
      'isConflict',
      'isDeleting',
      'isExpired',
      'isForbidden',
      'isInvalid',
      'isNotFound',
      'isTooManyRequests',
      'kind',
      'labelsChanged',
      'not',
      'ownersOf',
      'removeCondition',
      'removeFinalizer',
      'removeOwner',
      'retryOnConflict',
      'setCondition',
      'setOwner',
      'statusChanged',
      'updateStatus',
      'webhookConfigurations',
    ],
  },
  'watchmux/opentelemetry': { source: 'src/opentelemetry/index.ts', exports: ['OpenTelemetry'] },
  'watchmux/testing': {
    source: 'src/testing/index.ts',
    exports: [
      'BACKEND_CONTRACT',
      'CACHE_CHECKERS',
      'CHECKERS',
      'CacheRecorder',
      'FakeClock',
      'FakeListWatcher',
      'FakeSource',
      'FakeWatcher',
      'GUARANTEES',
      'HistoryRecorder',
      'LIST_WATCHER_CONTRACT',
      'MockWatcher',
      'RaceFreeFakeWatcher',
      'STORAGE_CONTRACT',
      'WATCH_CONTRACT',
      'checkBounded',
      'checkCacheHistory',
      'checkComplete',
      'checkConsistent',
      'checkConvergent',
      'checkCounted',
      'checkDrained',
      'checkEager',
      'checkExact',
      'checkFair',
      'checkFolded',
      'checkFresh',
      'checkHistory',
      'checkIsolated',
      'checkLinearizable',
      'checkMonotonic',
      'checkOrdered',
      'checkOwned',
      'checkResumable',
      'checkSerial',
      'checkSettled',
      'checkSynced',
      'checkTold',
      'checkTransitional',
      'checkUnique',
    ],
  },
};

const root = new URL('..', import.meta.url);
// Without declarations, which the compiler would write now.
const [library, browser, commandLine] = (await (builds as (given: Options) => unknown)({ dts: false })) as [
  Options,
  Options,
  Options,
];
/** Where browsers get something else than all others. */
const BROWSER: Readonly<Record<string, string>> = { 'watchmux/client': './dist/client-browser.js' };
/** `watchmux/rxjs` is built as `rxjs`, `watchmux` as `index`. */
const nameOf = (entryPoint: string): string => (entryPoint === 'watchmux' ? 'index' : entryPoint.slice('watchmux/'.length));
const entryPoints = Object.keys(ENTRY_POINTS);

describe('the entry points', () => {
  test('package.json exports all of them, and nothing else', () => {
    const { './package.json': self, ...exported } = manifest.exports;
    expect(self).toBe('./package.json');
    const expected = entryPoints.map((entryPoint) => {
      const name = nameOf(entryPoint);
      const form = (types: string, code: string, more: object = {}): object => ({
        types: `./dist/${name}.${types}`,
        ...more,
        default: `./dist/${name}.${code}`,
      });
      const own = BROWSER[entryPoint] ? { browser: BROWSER[entryPoint] } : {};
      return [entryPoint.replace('watchmux', '.'), { import: form('d.ts', 'js', own), require: form('d.cts', 'cjs') }];
    });
    expect(exported).toEqual(Object.fromEntries(expected));
    // TypeScript takes the first condition that fits, so the types come before the code.
    for (const conditions of Object.values(exported)) {
      for (const form of Object.values(conditions)) {
        expect(Object.keys(form).filter((condition) => condition !== 'browser')).toEqual(['types', 'default']);
        expect(Object.keys(form).at(-1)).toBe('default');
      }
    }
  });

  test('the build creates all of them, and nothing else', () => {
    expect(library.entry).toEqual(
      Object.fromEntries(entryPoints.map((entryPoint) => [nameOf(entryPoint), ENTRY_POINTS[entryPoint]?.source])),
    );
    expect(library.format).toEqual(['esm', 'cjs']);
    expect(browser.entry).toEqual({ 'client-browser': ENTRY_POINTS['watchmux/client']?.source });
    // A bundle whose members have other names than the source works only as long as nobody misses one in a list.
    expect(browser.esbuildOptions).toBeUndefined();
    expect(commandLine.entry).toEqual({ main: 'src/cli/main.ts' });
    expect(`${commandLine.outDir}/main.js`).toBe(manifest.bin.watchmux);
  });

  test('the tests import them by their public names', () => {
    const aliases = (testing.resolve?.alias ?? []) as readonly { find: RegExp; replacement: string }[];
    expect(aliases).toHaveLength(entryPoints.length);
    for (const entryPoint of entryPoints) {
      const { replacement } = aliases.find(({ find }) => find.test(entryPoint)) ?? {};
      expect(replacement).toBe(fileURLToPath(new URL(ENTRY_POINTS[entryPoint]?.source ?? '', root)));
    }
  });

  test('consumers of the packed package use all of them, as modules and as CommonJS', () => {
    for (const file of ['smoke.mjs', 'smoke.cjs']) {
      const text = readFileSync(new URL(`test/pack/consumer/${file}`, root), 'utf8');
      expect(entryPoints.filter((entryPoint) => !text.includes(`'${entryPoint}'`))).toEqual([]);
    }
  });

  test('editors find the same sources for the examples', () => {
    expect(examples.compilerOptions.paths).toEqual(
      Object.fromEntries(entryPoints.map((entryPoint) => [entryPoint, [`../${ENTRY_POINTS[entryPoint]?.source}`]])),
    );
  });

  test('the sizes and the names in README.md are those of entry points', () => {
    const built = new Set([
      './dist/client-browser.js',
      ...Object.values(manifest.exports).flatMap((form) => (typeof form === 'string' ? [] : form.import.default)),
    ]);
    expect(manifest['size-limit'].filter(({ path }) => !built.has(`./${path}`))).toEqual([]);
    const table = readFileSync(new URL('README.md', root), 'utf8').matchAll(/^\| (`watchmux[`/\w, -]*) \|/gm);
    const named = Array.from(table, ([, cell = '']) => cell.match(/(?<=`)watchmux[\w/-]*(?=`)/g) ?? []).flat();
    expect(named.sort()).toEqual([...entryPoints].sort());
  });

  test('their sources exist', () => {
    for (const { source } of Object.values(ENTRY_POINTS)) expect(existsSync(new URL(source, root))).toBe(true);
  });

  test.each(Object.entries(ENTRY_POINTS))('%s exports exactly the listed names', async (_name, { source, exports }) => {
    const entryPoint: object = await import(fileURLToPath(new URL(source, root)));
    expect(Object.keys(entryPoint).sort()).toEqual([...exports].sort());
  });
});

describe('package.json', () => {
  test('CEL, ajv, NATS, OpenTelemetry, proxy agents, re2js, React, rxjs, ws and yaml are optional peers; there is no dependency', () => {
    expect(manifest).not.toHaveProperty('dependencies');
    expect(Object.keys(manifest.peerDependencies)).toEqual([
      '@marcbachmann/cel-js',
      '@nats-io/jetstream',
      '@nats-io/transport-node',
      '@opentelemetry/api',
      'ajv',
      'https-proxy-agent',
      're2js',
      'react',
      'rxjs',
      'socks-proxy-agent',
      'ws',
      'yaml',
    ]);
    const optional = { optional: true };
    expect(manifest.peerDependenciesMeta).toEqual({
      '@marcbachmann/cel-js': optional,
      '@nats-io/jetstream': optional,
      '@nats-io/transport-node': optional,
      '@opentelemetry/api': optional,
      ajv: optional,
      'https-proxy-agent': optional,
      re2js: optional,
      react: optional,
      rxjs: optional,
      'socks-proxy-agent': optional,
      ws: optional,
      yaml: optional,
    });
  });

  test('all packed files exist, and the legacy fields point to the root entry point', () => {
    for (const path of manifest.files) if (path !== 'dist') expect(existsSync(new URL(path.replace(/^!/, ''), root))).toBe(true);
    const { '.': entryPoint } = manifest.exports;
    expect([manifest.module, manifest.main, manifest.types]).toEqual([
      entryPoint.import.default,
      entryPoint.require.default,
      entryPoint.require.types,
    ]);
  });

  test('the changelog has this version, and the lockfile names no registry', () => {
    expect(readFileSync(new URL('CHANGELOG.md', root), 'utf8')).toContain(`## [${manifest.version}]`);
    expect(readFileSync(new URL('package-lock.json', root), 'utf8')).not.toContain('"resolved": "http');
  });
});
