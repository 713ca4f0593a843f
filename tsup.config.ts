import { defineConfig, type Options } from 'tsup';

const common: Options = {
  target: 'es2022',
  external: [/^node:/, 'rxjs', 'ws'],
  splitting: true,
};

/**
 * Internal names of the client, which its browser bundle shortens. None may be a name in the options, the events, the wire format
 * or the host's API. test/exports.test.ts checks that, and test/e2e/client-bundle.test.ts runs the bundle.
 */
export const INTERNAL_NAMES: readonly string[] = [
  ...['opened', 'alive', 'frame', 'over', 'why', 'hintMs', 'sse', 'settle', 'notice', 'position', 'failures', 'full', 'failure'],
  ...['serve', 'served', 'discard', 'queue', 'load', 'weight', 'readVersion', 'pushError', 'miss', 'drop'],
  ...['chars', 'version', 'count', 'lost', 'allRead', 'first'],
];

/** Browsers have no WebSocket of ws. */
const browserWebSocket: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'browser-websocket',
  setup(build) {
    build.onResolve({ filter: /^\.\/websocket\.ts$/ }, ({ resolveDir }) => ({
      path: `${resolveDir}/websocket-browser.ts`,
    }));
  },
};

// The first configuration has every entry point of package.json's `exports`; test/exports.test.ts checks that.
export default defineConfig([
  {
    ...common,
    entry: {
      index: 'src/index.ts',
      rxjs: 'src/adapters/rxjs.ts',
      'node-stream': 'src/adapters/node-stream.ts',
      http: 'src/bridge/http.ts',
      ws: 'src/bridge/websocket.ts',
      fetch: 'src/bridge/fetch.ts',
      client: 'src/bridge/client.ts',
      testing: 'src/testing/index.ts',
    },
    format: ['esm', 'cjs'],
    platform: 'neutral',
    clean: true,
    dts: {
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
    esbuildOptions: (options) => {
      options.mangleProps = new RegExp(`^(${INTERNAL_NAMES.join('|')})$`);
    },
  },
  {
    ...common,
    entry: { main: 'src/cli/main.ts' },
    format: 'esm',
    platform: 'node',
    outDir: 'dist/cli',
  },
  {
    // The script of the live page of `watchmux pipe`: one file without imports, which cli/page.ts puts into the page.
    target: 'es2022',
    entry: { 'live-page': 'src/cli/page/main.ts' },
    format: 'esm',
    platform: 'browser',
    splitting: false,
    minify: true,
    outDir: 'dist/cli',
  },
]);
