import { defineConfig, type Options } from 'tsup';

const common: Options = {
  target: 'es2022',
  external: [/^node:/, 'rxjs', 'ws'],
  splitting: true,
};

/**
 * Names that the parts of the client use among themselves, which the bundle for browsers shortens. None of them may be a word of
 * the options, the events, the wire or the host: test/exports.test.ts holds that, and test/e2e/client-bundle.test.ts runs the bundle.
 */
export const INTERNAL_NAMES: readonly string[] = [
  ...['opened', 'alive', 'frame', 'over', 'why', 'hintMs', 'sse', 'settle', 'notice', 'position', 'failures', 'full', 'failure'],
  ...['serve', 'served', 'discard', 'queue', 'load', 'weight', 'readVersion', 'pushError', 'miss', 'drop'],
  ...['chars', 'version'],
];

/** In a browser there is no WebSocket of ws. */
const browserWebSocket: NonNullable<Options['esbuildPlugins']>[number] = {
  name: 'browser-websocket',
  setup(build) {
    build.onResolve({ filter: /\/client-websocket\.ts$/ }, ({ resolveDir }) => ({
      path: `${resolveDir}/client-websocket-browser.ts`,
    }));
  },
};

// Every door of package.json's `exports` is an entry of the first; test/exports.test.ts holds the two lists equal.
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
      // Disposable symbols stand in our types: this makes them known to consumers that have neither @types/node nor lib esnext.disposable.
      banner: '/// <reference lib="esnext.disposable" />',
    },
  },
  {
    // The client as bundlers for browsers find it, by the condition `browser`: one file without imports, as small as it gets.
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
    // What the live page of `watchmux pipe` runs: one file without imports, read and put into the page by cli/page.ts.
    target: 'es2022',
    entry: { 'live-page': 'src/cli/page/main.ts' },
    format: 'esm',
    platform: 'browser',
    splitting: false,
    minify: true,
    outDir: 'dist/cli',
  },
]);
