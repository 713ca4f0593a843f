// Packs the package and uses it as its users will: checks the contents of the tarball, package linters, every entry point in both
// formats from an empty project, the types under old and new compilers, and the installed command line.
//
//     node test/pack/check-tarball.mjs            needs `npm run build` first; leaves nothing behind
//
// WATCHMUX_TYPESCRIPT=5.2,7 restricts the compilers, and what the older ones see twice.
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { homedir, tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { checkTypes } from './check-types.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const consumer = fileURLToPath(new URL('consumer', import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const temp = mkdtempSync(join(tmpdir(), 'watchmux-pack-'));
const problems = [];

/** Runs a program. A failure is a problem, with the program's output, unless the caller checks the result itself. */
function run(command, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    ...options,
  });
  if (error) throw error;
  return { ok: status === 0, status, stdout, stderr, text: `${stdout}${stderr}`.trim() };
}

async function step(name, check) {
  const start = Date.now();
  const found = (await check()) ?? [];
  problems.push(...found.map((problem) => `${name}: ${problem}`));
  const seconds = ((Date.now() - start) / 1000).toFixed(1);
  console.log(`${found.length === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`);
  for (const problem of found) console.log(`       ${problem.replaceAll('\n', '\n       ')}`);
}

function pack() {
  const { ok, stdout, text } = run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', temp], { cwd: root });
  if (!ok) throw new Error(text);
  const [{ filename, files }] = JSON.parse(stdout);
  return { tarball: join(temp, filename), paths: files.map(({ path }) => path) };
}

/** An empty project with the given dependencies. */
function project(name, dependencies) {
  const directory = join(temp, name);
  mkdirSync(directory);
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ name, private: true, dependencies }));
  const { ok, text } = run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: directory });
  if (!ok) throw new Error(`npm install in ${name}: ${text}`);
  return directory;
}

const version = (name) => manifest.devDependencies[name];

// The contents of the tarball.

const EXPECTED =
  /^(dist\/.+\.(js|cjs|d\.ts|d\.cts)|dist\/cli\/template\/.+|examples\/.+\.(mjs|js|jsx|html|md|sh|cfg|yaml)|docs\/.+\.(md|svg|png|json|yaml|service)|bench\/(README\.md|budgets\.json|charts\/.+\.svg)|[A-Z]+(\.md)?|package\.json)$/;

/** Every relative link and picture of a document must be in the tarball: readers of an installed package have nothing else. */
function checkLinks({ tarball, paths }) {
  const found = [];
  const unpacked = join(temp, 'linked');
  mkdirSync(unpacked);
  execFileSync('tar', ['-xzf', tarball, '-C', unpacked]);
  let links = 0;
  for (const path of paths.filter((each) => each.endsWith('.md'))) {
    // Not the code, in which brackets and parentheses mean something else.
    const text = readFileSync(join(unpacked, 'package', path), 'utf8').replace(/```[\s\S]*?```|`[^`\n]*`/g, '');
    for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^(https?:|mailto:|#)/.test(target)) continue;
      links++;
      const linked = posix.join(posix.dirname(path), target.replace(/#.*$/, ''));
      const inside = paths.includes(linked) || paths.some((each) => each.startsWith(`${linked.replace(/\/$/, '')}/`));
      if (!inside) found.push(`${path} links to ${target}, which is not in the tarball`);
    }
  }
  return links < 10 ? [...found, `only ${links} links were found`] : found;
}

/** What a file of dist imports, in any form. Examples in comments may match, too, and have the right names. */
const IMPORTS = /\b(?:from|import|import\(|require\() ?["']([\w:/]+)["']/g;

function checkContents({ tarball, paths }) {
  const found = [];
  const unpacked = join(temp, 'unpacked');
  mkdirSync(unpacked);
  execFileSync('tar', ['-xzf', tarball, '-C', unpacked]);
  for (const path of [
    'LICENSE',
    'NOTICE',
    'README.md',
    'CHANGELOG.md',
    'PROTOCOL.md',
    'SECURITY.md',
    'docs/README.md',
    'examples/README.md',
    'package.json',
    manifest.bin.watchmux,
  ]) {
    if (!paths.includes(path)) found.push(`${path} is missing`);
  }
  const registry = new URL(run('npm', ['config', 'get', 'registry'], { cwd: root }).stdout.trim()).host;
  // The tarball must not tell where or by whom it was built.
  const secrets = [root.replace(/\/$/, ''), process.cwd(), tmpdir() === '/tmp' ? '/tmp/watchmux' : tmpdir(), registry, 'file://'];
  if (homedir().length > 1) secrets.push(`${homedir()}/`);
  for (const path of paths) {
    if (path.endsWith('.map')) found.push(`${path} is a source map`);
    if (!EXPECTED.test(path)) found.push(`${path} is not expected here`);
    const text = readFileSync(join(unpacked, 'package', path), 'utf8');
    for (const secret of secrets) if (text.includes(secret)) found.push(`${path} contains ${secret}`);
    if (/^\/\/# sourceMappingURL/m.test(text)) found.push(`${path} names a source map`);
    if (path.startsWith('dist/') && /["'](?:\/(?:root|home|Users|work|tmp)\/)/.test(text))
      found.push(`${path} contains a machine path`);
    // Deno, Cloudflare's runtime and bundlers for them know a module of Node by the name with `node:` alone.
    for (const [, name] of /^dist\/.+\.c?js$/.test(path) ? text.matchAll(IMPORTS) : [])
      if (isBuiltin(name) && !name.startsWith('node:')) found.push(`${path} imports ${name} in place of node:${name}`);
  }
  return found;
}

async function checkPublint(tarball) {
  const bytes = readFileSync(tarball);
  const { messages, pkg } = await publint({
    pack: { tarball: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) },
    strict: true,
  });
  return messages.map((message) => formatMessage(message, pkg, { color: false }));
}

function checkAttw(tarball) {
  // attw may delete its input.
  const copy = join(temp, 'attw.tgz');
  copyFileSync(tarball, copy);
  const attw = join(root, 'node_modules/@arethetypeswrong/cli/dist/index.js');
  const { ok, text } = run('node', [attw, copy, '--profile', 'node16', '--no-color', '--no-emoji', '--format', 'ascii']);
  return ok ? [] : [text];
}

// Every entry point, in both formats, in an empty project.

function checkRuns(directory) {
  const found = [];
  for (const file of ['exercise.cjs', 'smoke.mjs', 'smoke.cjs']) {
    copyFileSync(join(consumer, file), join(directory, file));
    if (file === 'exercise.cjs') continue;
    const { ok, stdout, text } = run('node', ['--throw-deprecation', file], { cwd: directory, timeout: 30_000 });
    if (!ok || stdout !== 'ok\n') found.push(`${file}: ${text}`);
  }
  return found;
}

/**
 * Bundlers for browsers must find the browser client. Node stands in for a bundler, because it can be told to use that condition.
 */
function checkBrowser(directory) {
  const code = `console.log(import.meta.resolve('watchmux/client')); console.log(typeof (await import('watchmux/client')).connect);
    console.log(typeof (await import('watchmux/react')).useWatch)`;
  const { text } = run('node', ['--conditions=browser', '--input-type=module', '-e', code], { cwd: directory });
  return /\/dist\/client-browser\.js\nfunction\nfunction$/.test(text) ? [] : [text];
}

const ENTRY_POINTS = Object.keys(manifest.exports)
  .filter((name) => !name.endsWith('.json'))
  .map((name) => name.replace('.', 'watchmux'));

/** Entry points that are nothing without a peer. */
const NEEDS = {
  'watchmux/rxjs': 'rxjs',
  'watchmux/nats': '@nats-io/jetstream',
  'watchmux/opentelemetry': '@opentelemetry/api',
  'watchmux/react': 'react',
};

/** A program that prints how each entry point loads. */
const LOADS_ALL = `(async () => {
  const said = {};
  for (const name of ${JSON.stringify(ENTRY_POINTS)})
    said[name] = await (async () => (LOAD)(name))().then(() => 'loaded', (error) => error.message);
  console.log(JSON.stringify(said));
})()`;

/**
 * Without the peers: entry points that need none work, the others say what is missing, and the CLI serves without WebSocket.
 */
function checkBare(directory) {
  const found = [];
  writeFileSync(join(directory, 'config'), KUBECONFIG);
  for (const load of ['(name) => import(name)', '(name) => require(name)']) {
    const { stdout, text } = run('node', ['-e', LOADS_ALL.replace('LOAD', load)], { cwd: directory });
    const said = stdout.startsWith('{') ? JSON.parse(stdout) : {};
    for (const name of ENTRY_POINTS) {
      const needs = NEEDS[name];
      if (needs === undefined && said[name] !== 'loaded') found.push(`${name} without peers: ${said[name] ?? text}`);
      if (needs !== undefined && !said[name]?.includes(`'${needs}'`))
        found.push(`${name} without ${needs} says: ${said[name] ?? text}`);
    }
  }
  for (const code of READS) {
    const { text } = run('node', ['-e', code], { cwd: directory });
    if (!text.includes('npm install yaml')) found.push(`loadCluster without yaml says: ${text}`);
  }
  const got = run('node_modules/.bin/watchmux', ['get', 'pods', '--kubeconfig', 'config'], { cwd: directory });
  if (got.status !== 2 || !got.stderr.includes('npm install yaml')) found.push(`watchmux get without yaml says: ${got.text}`);
  const piped = run('node_modules/.bin/watchmux', ['pipe', '--port', '0'], { cwd: directory, input: '1\n', stdio: 'pipe' });
  if (!piped.ok) found.push(`watchmux pipe without ws: ${piped.text}`);
  return found;
}

/** A program that reads a kubeconfig, in one of the two formats. */
const READS = [
  "import('watchmux/kubernetes').then(({ loadCluster }) => loadCluster({ file: 'config' })",
  "Promise.resolve(require('watchmux/kubernetes')).then(({ loadCluster }) => loadCluster({ file: 'config' })",
].map((code) => {
  const ask = "cluster.resource('pods').list().catch((e) => console.log(cluster.server.href, e.message))";
  return `${code}.then((cluster) => ${ask}).catch((e) => console.log(e.message)))`;
});

/** A kubeconfig in YAML, for which a package is needed. */
const KUBECONFIG = `
clusters: [{ name: c, cluster: { server: 'https://127.0.0.1:1', proxy-url: 'http://127.0.0.1:2' } }]
contexts: [{ name: x, context: { cluster: c } }]
current-context: x
`;

/** The packages that read a kubeconfig and reach a proxy must be found from both formats; that for proxies is an ES module only. */
function checkKubeconfig(directory) {
  writeFileSync(join(directory, 'config'), KUBECONFIG);
  return READS.flatMap((code) => {
    const { stdout } = run('node', ['-e', code], { cwd: directory });
    return /^https:\/\/127\.0\.0\.1:1\/ .*ECONNREFUSED 127\.0\.0\.1:2/.test(stdout) ? [] : [stdout];
  });
}

function checkBin(directory) {
  const found = [];
  for (const [command, ...args] of [['npx', '--no-install', 'watchmux'], ['node_modules/.bin/watchmux']]) {
    const { ok, stdout, text } = run(command, [...args, '--version'], { cwd: directory });
    if (!ok || stdout !== `${manifest.version}\n`) found.push(`${command} --version: ${text}`);
  }
  return found;
}

/** The project that `watchmux new operator` writes, with this package, and with others from the registry. */
function checkNewOperator(directory, tarball) {
  const created = run(join(directory, 'node_modules/.bin/watchmux'), ['new', 'operator', 'website-operator'], { cwd: temp });
  if (!created.ok) return [created.text];
  const cwd = join(temp, 'website-operator');
  const file = join(cwd, 'package.json');
  writeFileSync(file, readFileSync(file, 'utf8').replace(/"watchmux": ".*?"/, `"watchmux": "file:${tarball}"`));
  for (const args of [['install', '--no-audit', '--no-fund', '--loglevel=error'], ['test']]) {
    const { ok, text } = run('npm', args, { cwd });
    if (!ok) return [`npm ${args[0]}: ${text}`];
  }
  return [];
}

try {
  const packed = pack();
  const { tarball } = packed;
  console.log(`${packed.paths.length} files`);
  await step('contents', () => checkContents(packed));
  await step('links of the documents', () => checkLinks(packed));
  await step('publint', () => checkPublint(tarball));
  await step('attw', () => checkAttw(tarball));
  const peers = Object.fromEntries(
    ['react', 'react-dom', 'rxjs', 'ws', '@opentelemetry/api'].map((name) => [name, version(name)]),
  );
  let full;
  await step('install', () => {
    const clusters = Object.fromEntries(['yaml', 'https-proxy-agent', 'socks-proxy-agent'].map((name) => [name, version(name)]));
    const nats = Object.fromEntries(['@nats-io/jetstream', '@nats-io/transport-node'].map((name) => [name, version(name)]));
    full = project('full', { watchmux: `file:${tarball}`, ...peers, ...clusters, ...nats });
  });
  await step('every entry point as ES module and as CommonJS', () => checkRuns(full));
  await step('the client for browsers', () => checkBrowser(full));
  await step('a kubeconfig', () => checkKubeconfig(full));
  await step('npx watchmux --version', () => checkBin(full));
  await step('npx watchmux new operator', () => checkNewOperator(full, tarball));
  await step('without the peers', () => checkBare(project('bare', { watchmux: `file:${tarball}` })));
  const types = { '@types/node': version('@types/node'), '@types/ws': version('@types/ws') };
  await checkTypes({
    step,
    project,
    consumer,
    documents: packed.paths
      .filter((path) => /^(README|docs\/.+)\.md$/.test(path))
      .map((path) => [path, readFileSync(join(root, path), 'utf8')]),
    dependencies: { watchmux: `file:${tarball}`, ...peers },
    types,
    only: process.env.WATCHMUX_TYPESCRIPT?.split(','),
  });
} finally {
  rmSync(temp, { recursive: true, force: true });
}

if (problems.length > 0) {
  console.error(`\ntarball: ${problems.length} problems`);
  process.exit(1);
}
console.log('\ntarball: all is well');
