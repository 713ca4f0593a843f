// The types of the packed package under old and new compilers, with the strictest settings.
import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The compilers: the oldest supported one, some in between, the newest. */
const COMPILERS = ['5.2', '5.4', '5.9', '6', '7'];

const STRICT = {
  target: 'es2022',
  strict: true,
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
  noEmit: true,
};

/** Module resolution settings. In each folder, `.mts` is an ES module and `.cts` is CommonJS, whatever the settings. */
const RESOLUTIONS = {
  node16: { module: 'node16', moduleResolution: 'node16' },
  bundler: { module: 'esnext', moduleResolution: 'bundler' },
};

/**
 * Two projects. One has Node's types and none of the browser's, for every entry point and the documents' examples. The other has
 * the browser's types only, for the entry points that promise not to need Node. Each compiler checks all files of a setting at
 * once.
 */
export async function checkTypes({ step, project, consumer, documents, dependencies, types, only }) {
  const compilers = COMPILERS.filter((version) => only === undefined || only.includes(version));
  let withNode;
  let withoutNode;
  let tools;
  await step('install compilers and types', () => {
    tools = project('tools', Object.fromEntries(compilers.map((version) => [`ts-${version}`, `npm:typescript@${version}`])));
    withNode = project('with-node', { ...dependencies, ...types });
    withoutNode = project('without-node', dependencies);
  });
  const examples = documents.flatMap(([path, text]) => examplesOf(text).map((code, index) => [nameOf(path, index), code]));
  const configs = [];
  for (const [name, resolution] of Object.entries(RESOLUTIONS)) {
    configs.push([
      write(withNode, name, resolution, { sources: ['portable', 'node'], lib: ['es2022'], types: ['node'], examples, consumer }),
      name,
      'with @types/node',
    ]);
    configs.push([
      write(withoutNode, name, resolution, { sources: ['portable'], lib: ['es2022', 'dom'], types: [], examples: [], consumer }),
      name,
      'without',
    ]);
  }
  for (const version of compilers) {
    // With a choice of compilers, the older ones see each resolution and each set of types once, and not all pairs of them.
    const ways = only === undefined || version === compilers.at(-1) ? configs : [configs[0], configs[3]];
    const { version: exact } = JSON.parse(readFileSync(join(tools, `node_modules/ts-${version}/package.json`), 'utf8'));
    await step(`types: TypeScript ${exact}, ${ways.length} ways`, async () => {
      const found = [];
      const tsc = join(tools, `node_modules/ts-${version}/bin/tsc`);
      const check = async ([directory, ...how]) => {
        const text = await compile(tsc, directory);
        if (text !== '') found.push(`${how.join(', ')}:\n${text}`);
      };
      // Two at a time, because every machine has two processors.
      const [first, second, ...rest] = ways;
      await Promise.all([check(first), check(second)]);
      await Promise.all(rest.map(check));
      return found;
    });
  }
}

/** The programs of a document: without those that a comment marks, because they need other packages. */
function examplesOf(text) {
  return Array.from(text.matchAll(/^(<!-- test: .*? -->\n)?```ts\n(.*?)^```$/gms), ([, mark, code]) =>
    mark ? [] : [code],
  ).flat();
}

function nameOf(path, index) {
  return `${path.replace(/\W/g, '-').toLowerCase()}-${index + 1}.mts`;
}

/** Returns a compiler's output for a project: empty, or its first lines. */
function compile(tsc, directory) {
  return new Promise((resolve) => {
    execFile(process.execPath, [tsc, '-p', directory, '--pretty', 'false'], { maxBuffer: 1e8 }, (error, stdout, stderr) => {
      const lines = `${stdout}${stderr}`.trim().split('\n');
      const rest = lines.length > 12 ? [`... and ${lines.length - 12} more`] : [];
      resolve(error === null ? '' : [...lines.slice(0, 12), ...rest].join('\n') || error.message);
    });
  });
}

function write(project, name, resolution, { sources, lib, types, examples, consumer }) {
  const directory = join(project, name);
  mkdirSync(directory);
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions: { ...STRICT, ...resolution, lib, types } }));
  for (const source of sources) {
    copyFileSync(join(consumer, `${source}.mts`), join(directory, `${source}.mts`));
    copyFileSync(join(consumer, `${source}.mts`), join(directory, `${source}-cjs.cts`));
  }
  for (const [file, code] of examples) writeFileSync(join(directory, file), code);
  return directory;
}
