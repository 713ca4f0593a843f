import { defineConfig, type Options } from 'tsup';

const common: Options = {
  target: 'es2022',
  external: [/^node:/, 'rxjs', 'ws'],
  splitting: true,
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
