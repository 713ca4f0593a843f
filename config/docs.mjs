// Writes the documents and the reference of all entry points as a site: npm run docs [-- --help]
//
// Its tools are a package of their own, config/site, which is installed when it is first used.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TOOLS = join(ROOT, 'config/site');
const HELP = `npm run docs [-- OPTIONS]

Writes docs/, README.md and the other documents, and the reference of all entry points, as a static site. It can be published below
any address as it is. Fails if a link leads nowhere, or if an export has no TSDoc.

  --out DIR    where to write it (default: reports/site)
  --serve      serves it on 127.0.0.1 afterwards
  --no-build   with --serve: serves what was written before
  --port N     where to serve it (default: 8000)
  --help       shows this
`;

const started = performance.now();
const say = (text) => console.log(`docs: ${text} (${Math.round((performance.now() - started) / 1000)} s)`);

function parse() {
  const { values } = parseArgs({
    options: {
      out: { type: 'string', default: join(ROOT, 'reports/site') },
      serve: { type: 'boolean', default: false },
      'no-build': { type: 'boolean', default: false },
      port: { type: 'string', default: '8000' },
      help: { type: 'boolean', default: false },
    },
  });
  return { ...values, out: resolve(values.out), port: Number(values.port) };
}

/** Installs the tools, if those that package.json names are not there. */
function install() {
  const versionOf = (name) => {
    const path = join(TOOLS, 'node_modules', name, 'package.json');
    return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).version : undefined;
  };
  const { dependencies } = JSON.parse(readFileSync(join(TOOLS, 'package.json'), 'utf8'));
  if (Object.entries(dependencies).every(([name, version]) => versionOf(name) === version)) return;
  say('installing TypeDoc into config/site, once');
  // Lighthouse is for the test of the site alone: npm ci --prefix config/site installs it, too.
  const { status } = spawnSync('npm', ['ci', '--omit=dev', '--ignore-scripts'], {
    cwd: TOOLS,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (status !== 0) throw new Error('npm ci failed in config/site');
}

async function build(out) {
  install();
  const { write, HAS_REPOSITORY } = await import('./site/typedoc.mjs');
  const { check } = await import('./site/check.mjs');
  rmSync(out, { recursive: true, force: true });
  const complaints = await write(out, say);
  say('checking the links');
  const { faults, pages, links } = check(out, { forbidden: HAS_REPOSITORY ? [] : ['/watchmux'] });
  for (const each of [...complaints, ...faults]) console.error(each);
  say(`${pages} pages with ${links} links; ${complaints.length} complaints of TypeDoc, ${faults.length} dead links`);
  if (complaints.some((each) => each.includes('not included in the documentation')))
    console.error('A type that is named by an export, and not exported on purpose, belongs into config/site/not-exported.json.');
  if (complaints.length + faults.length > 0) throw new Error('the site has the faults above');
}

async function main() {
  const { help, out, serve: isServed, port, 'no-build': isBuilt } = parse();
  if (help) {
    process.stdout.write(HELP);
    return;
  }
  if (!isBuilt) await build(out);
  if (!isServed) {
    console.log(`It is in ${relative(process.cwd(), out) || '.'}. To look at it: npm run docs -- --serve --no-build`);
    return;
  }
  const { serve } = await import('./site/server.mjs');
  await serve(out, { port });
  console.log(`It is at http://127.0.0.1:${port}/ until you press Ctrl+C.`);
}

try {
  await main();
} catch (error) {
  console.error(`docs: ${error.message}`);
  process.exitCode = 1;
}
