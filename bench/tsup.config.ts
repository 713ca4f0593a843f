import { defineConfig } from 'tsup';

export default defineConfig({
  entry: { run: 'bench/run.ts' },
  format: 'esm',
  target: 'node20',
  outDir: 'bench/.build',
  external: ['rxjs'],
  silent: true,
});
