// Builds the programs of the tests of this folder: node test/peers/build.mjs [NAME...], by default kube-apiserver, kubectl, client-go,
// garbage-collector, schemas, structured-merge, controller-runtime and kube-rs, one after the other. With `all`, also what only .ci/full
// uses: etcdutl, helm-3, helm-4, e2e-suite, python-clients, java-clients, npm-clients and react-18. A kubectl after a kube-apiserver takes
// half a minute: they have most packages in common.
//
// They are kept in the folder that WATCHMUX_PEERS names, by default ~/.cache/watchmux/peers, so this happens once, for any number of clones;
// afterwards it only prints the paths. The first build downloads 90 MB of Go modules and takes both cores of a small
// machine for four to nine minutes and 2.4 GB of memory; that of kube-rs downloads 25 MB of crates and takes one to two minutes. The caches of
// Go and of cargo make the next one, after a change of main.go or main.rs, take seconds.

import { execFile, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { KUBE_APISERVER, MORE_PEERS, moduleOf, OUTPUT, PEERS, release, stem } from './binary.mjs';
import { toolchainOf } from './toolchains.mjs';

const ALL = [...PEERS, ...MORE_PEERS];
const PROGRESS_MS = 15_000;
/** Binaries of one peer that are kept: each has 20 to 140 MB. */
const KEPT = 3;
const ABORTED_MS = 3_600_000;
const run = promisify(execFile);
const started = performance.now();

let peer = KUBE_APISERVER;

function say(text) {
  console.log(`${peer.name}: ${text} (${Math.round((performance.now() - started) / 1000)} s)`);
}

/** Where and how the toolchain of the peer runs. */
function surroundings() {
  return { cwd: moduleOf(peer), env: { ...process.env, ...toolchainOf(peer).environment } };
}

async function ask(...args) {
  const { stdout } = await run(toolchainOf(peer).command, args, { ...surroundings(), maxBuffer: 64 * 2 ** 20 });
  return stdout.trim();
}

/** The toolchain and its version, such as `go1.26.8`; fails with what to do if there is none. */
async function version() {
  const { version, absent, refusal } = toolchainOf(peer);
  try {
    return await version(ask);
  } catch (error) {
    if (error.code === 'ENOENT') throw new Error(absent);
    throw new Error(`${refusal}: ${String(error.stderr ?? error).trim()}`);
  }
}

/** Builds, and prints now and then how many packages it has compiled. */
function compile(output, packages) {
  const { command, build, isPackage } = toolchainOf(peer);
  const child = spawn(command, build(peer, output), { ...surroundings(), stdio: ['ignore', 'ignore', 'pipe'] });
  const total = packages === undefined ? '' : ` of ${packages}`;
  let compiled = 0;
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    compiled += text.split('\n').filter(isPackage).length;
    log = (log + text).slice(-4000);
  });
  const end = () => {
    child.kill();
    process.exit(1);
  };
  process.once('SIGTERM', end);
  const timer = setInterval(() => say(`compiled ${compiled}${total} packages`), PROGRESS_MS);
  return new Promise((resolve, reject) => {
    child.on('error', reject).on('close', (code) => {
      clearInterval(timer);
      process.off('SIGTERM', end);
      if (code === 0) resolve(compiled);
      else reject(new Error(`${command} build failed (${code}):\n${log}`));
    });
  });
}

/**
 * Removes binaries of older sources, and what aborted builds left. The newest ones stay: other clones may be at other commits, or be
 * building.
 */
function removeOld() {
  const own = readdirSync(OUTPUT)
    .filter((name) => name.startsWith(`${peer.name}-`))
    .map((name) => ({ path: join(OUTPUT, name), ageMs: Date.now() - statSync(join(OUTPUT, name)).mtimeMs }))
    .sort((a, b) => a.ageMs - b.ageMs);
  for (const { path } of own.slice(KEPT)) rmSync(path, { recursive: true, force: true });
  for (const { path, ageMs } of own)
    if (path.endsWith('.part') && ageMs > ABORTED_MS) rmSync(path, { recursive: true, force: true });
}

async function build() {
  mkdirSync(OUTPUT, { recursive: true });
  const { download, packages, deliver } = toolchainOf(peer);
  const name = `${stem(peer)}${await version()}`;
  const output = join(OUTPUT, name);
  if (!readdirSync(OUTPUT).includes(name)) {
    say(`building release ${release(peer)}; downloading what it is made of`);
    await download(ask);
    const part = `${output}.${process.pid}.part`;
    const compiled = await compile(part, await packages(ask, peer));
    deliver(peer, part);
    chmodSync(part, 0o755);
    renameSync(part, output);
    removeOld();
    say(`compiled ${compiled} packages and linked them, ${Math.round(statSync(output).size / 2 ** 20)} MB`);
  }
  say('ready');
  console.log(output);
}

/** The peers that the command line names. */
function toBuild() {
  const names = process.argv.slice(2);
  if (names.length === 0) return PEERS;
  if (names.includes('all')) return ALL;
  const unknown = names.find((name) => !ALL.some((each) => each.name === name));
  if (unknown !== undefined) throw new Error(`there is no peer ${unknown}`);
  return ALL.filter(({ name }) => names.includes(name));
}

try {
  for (const each of toBuild()) {
    peer = each;
    await build();
  }
} catch (error) {
  console.error(`${peer.name}: ${error.message}`);
  process.exitCode = 1;
}
