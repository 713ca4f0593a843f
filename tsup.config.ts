import { defineConfig } from 'tsup';

// Every door of package.json's `exports` is one entry here; test/exports.test.ts holds the two lists equal.
export default defineConfig({
  entry: {
    index: 'src/index.ts',
    rxjs: 'src/adapters/rxjs.ts',
    'node-stream': 'src/adapters/node-stream.ts',
    http: 'src/bridge/http.ts',
    ws: 'src/bridge/websocket.ts',
    testing: 'src/testing/index.ts',
    cli: 'src/cli/main.ts',
  },
  format: ['esm', 'cjs'],
  target: 'es2022',
  platform: 'neutral',
  external: [/^node:/, 'rxjs', 'ws'],
  splitting: true,
  sourcemap: true,
  clean: true,
  treeshake: false,
  minify: false,
  dts: {
    compilerOptions: { ignoreDeprecations: '6.0' },
    // Disposable is named in our types: this makes it known to consumers that have neither @types/node nor lib esnext.disposable.
    banner: '/// <reference lib="esnext.disposable" />',
  },
});
