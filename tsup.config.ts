import { spawnSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';
import { defineConfig, type Options } from 'tsup';
import entryPoints from './config/entry-points.json' with { type: 'json' };

const common: Options = {
  target: 'es2022',
  external: [
    /^node:/,
    /^@nats-io\//,
    '@opentelemetry/api',
    '@marcbachmann/cel-js',
    'ajv',
    'https-proxy-agent',
    're2js',
    'react',
    'rxjs',
    'socks-proxy-agent',
    'ws',
    'yaml',
  ],
  splitting: true,
  // Deno and Cloudflare Workers know Node's modules by these names alone.
  removeNodeProtocol: false,
};

/** Browsers have no WebSocket of ws. */
const browserWebSocket: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'browser-websocket',
  setup(build) {
    build.onResolve({ filter: /^\.\/websocket\.ts$/ }, ({ resolveDir }) => ({
      path: `${resolveDir}/websocket-browser.ts`,
    }));
  },
};

/** The hooks take the client by its public name, so that a page has it once: in the form that its bundler chooses. */
const publicClient: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'public-client',
  setup(build) {
    build.onResolve({ filter: /^\.\.\/bridge\/client\.ts$/ }, ({ importer }) =>
      /[\\/]react[\\/]index\.ts$/.test(importer) ? { path: 'watchmux/client', external: true } : undefined,
    );
  },
};

const DECLARATIONS = 'reports/types';

/**
 * Writes the declarations of all sources, and returns those of the entry points. TypeScript 7 takes a tenth of the time that tsup
 * takes to derive them, and every exported type is written out (`isolatedDeclarations`), so that nothing needs to be checked here.
 */
function declare(): Record<string, string> {
  rmSync(DECLARATIONS, { recursive: true, force: true });
  const options = ['--noCheck', '--noEmit', 'false', '--emitDeclarationOnly', '--rootDir', 'src', '--outDir', DECLARATIONS];
  const compiler = ['node_modules/typescript-7/bin/tsc', '-p', 'config/tsconfig.src.json'];
  const { status, error } = spawnSync(process.execPath, [...compiler, ...options], { stdio: 'inherit' });
  if (error || status !== 0) throw error ?? new Error(`the compiler of declarations ended with ${status}`);
  const declared = (source: string): string => source.replace(/^src\/(.+)\.ts$/, `${DECLARATIONS}/$1.d.ts`);
  return Object.fromEntries(Object.entries(entryPoints).map(([name, source]) => [name, declared(source)]));
}

// config/entry-points.json has every entry point of package.json's `exports`; test/exports.test.ts checks that.
export default defineConfig(({ dts }) => [
  {
    ...common,
    entry: entryPoints,
    format: ['esm', 'cjs'],
    platform: 'neutral',
    clean: true,
    esbuildPlugins: [publicClient],
    // Without --no-dts, which makes a build that only runs.
    dts: dts !== false && {
      entry: declare(),
      compilerOptions: { ignoreDeprecations: '6.0' },
      // Our types use disposable symbols. This declares them for consumers that have neither @types/node nor lib
      // esnext.disposable.
      banner: '/// <reference lib="esnext.disposable" />',
    },
  },
  {
    // The client as bundlers find it by the condition `browser`: one small file without imports.
    target: 'es2022',
    entry: { 'client-browser': 'src/bridge/client.ts' },
    format: 'esm',
    platform: 'browser',
    splitting: false,
    minify: true,
    esbuildPlugins: [browserWebSocket],
  },
  {
    ...common,
    entry: { main: 'src/cli/main.ts' },
    format: 'esm',
    platform: 'node',
    outDir: 'dist/cli',
    onSuccess: async () => cpSync('src/cli/new/template', 'dist/cli/template', { recursive: true }),
  },
  {
    // The scripts of the pages of `watchmux pipe` and `watchmux serve`: each is one file without imports, which
    // pages/document.ts puts into its page.
    target: 'es2022',
    entry: { 'live-page': 'src/pages/pipe/main.ts', 'objects-page': 'src/pages/serve/main.ts' },
    format: 'esm',
    platform: 'browser',
    splitting: false,
    minify: true,
    outDir: 'dist/cli',
  },
]);
