// Checks all types: node config/typecheck.mjs [COMPILER]
//
// Of sources, tests, benchmarks, examples and the programs in the documents, with TypeScript 7, which takes a fifth of the time of
// TypeScript 6; with the argument 6, with that, which builds the package. Prints the compiler's words; exits with 1 if there are any.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROGRAMS } from '../test/e2e/documents.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const COMPILERS = { 6: 'typescript', 7: 'typescript-7' };

const wanted = process.argv[2] ?? '7';
const compiler = join(ROOT, 'node_modules', COMPILERS[wanted] ?? '', 'bin', 'tsc');
if (!(wanted in COMPILERS) || !existsSync(compiler)) {
  console.error(`there is no compiler ${wanted}: expected one of ${Object.keys(COMPILERS).join(', ')}, after "npm ci"`);
  process.exit(2);
}

/** A project of the programs in the documents, under the strictest settings, as bundlers and tsx resolve imports. */
function documents() {
  mkdirSync(join(ROOT, 'reports'), { recursive: true });
  // Inside of the package, where its dependencies are found.
  const folder = mkdtempSync(join(ROOT, 'reports', 'documents-'));
  for (const [at, { mark = '', code, language, page }] of PROGRAMS.entries()) {
    const file = mark.startsWith('react ') ? mark.slice('react '.length) : `${page.replace(/\W/g, '-')}-${at}.${language}`;
    writeFileSync(join(folder, file), code);
  }
  const { paths } = JSON.parse(readFileSync(join(ROOT, 'examples', 'tsconfig.json'), 'utf8')).compilerOptions;
  const sources = Object.entries(paths).map(([name, [source]]) => [name, [`../${source}`]]);
  // Programs of other people may declare what they do not use.
  const options = { paths: Object.fromEntries(sources), jsx: 'react-jsx', noUnusedLocals: false, noUnusedParameters: false };
  const settings = { extends: '../../tsconfig.json', compilerOptions: options, include: ['.'] };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(settings));
  return folder;
}

/** What the compiler says of a project. */
function check(project) {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [compiler, '-p', project, '--pretty', 'false'],
      { cwd: ROOT, maxBuffer: 1e8 },
      (error, out, complaint) => {
        resolve(error === null ? '' : `${out}${complaint}`.trim() || error.message);
      },
    );
  });
}

const folder = documents();
const projects = ['tsconfig.json', 'config/tsconfig.src.json', 'examples', folder];
let failed = false;
try {
  for (const project of projects) {
    const started = performance.now();
    const said = await check(project);
    const name = project === folder ? 'the programs in the documents' : project;
    console.log(`${said === '' ? 'ok    ' : 'FAILED'} ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
    if (said !== '') console.log(said);
    failed ||= said !== '';
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = failed ? 1 : 0;
