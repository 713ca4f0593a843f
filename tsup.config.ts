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
]);
