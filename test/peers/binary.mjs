// Where the programs of these tests lie once they are built, which are in Go and in Rust. Shared by the build and by the tests.

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));

/** A kube-apiserver with an etcd inside. A peer in Go has a module: main.go, go.mod and go.sum in a folder of its name. */
export const KUBE_APISERVER = { name: 'kube-apiserver', requires: 'k8s.io/kubernetes', variable: 'WATCHMUX_KUBE_APISERVER' };

/** A kubectl of the same release. */
export const KUBECTL = { name: 'kubectl', requires: 'k8s.io/kubectl', variable: 'WATCHMUX_KUBECTL' };

/** Clients of the same release: see its main.go. */
export const CLIENT_GO = { name: 'client-go', requires: 'k8s.io/client-go', variable: 'WATCHMUX_CLIENT_GO' };

/** What a kube-apiserver makes of schemas: see its main.go. */
export const SCHEMAS = { name: 'schemas', requires: 'k8s.io/apiextensions-apiserver', variable: 'WATCHMUX_SCHEMAS' };

/** Kubernetes' own garbage collector, of the same release. */
export const GARBAGE_COLLECTOR = {
  name: 'garbage-collector',
  requires: 'k8s.io/kubernetes',
  variable: 'WATCHMUX_GARBAGE_COLLECTOR',
};

/** The watcher of kube-rs. A peer in Rust has a crate: src/main.rs, Cargo.toml and Cargo.lock. */
export const KUBE_RS = { name: 'kube-rs', requires: 'kube', variable: 'WATCHMUX_KUBE_RS', language: 'rust' };

/** Where users' caches are. */
const CACHE = process.env.XDG_CACHE_HOME || join(homedir() || tmpdir(), '.cache');

/** Where binaries are, by the hash of their sources. It is outside of the clone, so that the next clone builds nothing. */
export const OUTPUT = resolve(process.env.WATCHMUX_PEERS || join(CACHE, 'watchmux', 'peers'));

/** What tells how to get the binary, in one line. */
export const HOW =
  'run "node test/peers/build.mjs", which needs Go 1.26 and four to nine minutes once, or name a binary in WATCHMUX_KUBE_APISERVER';

/** The flags of a compile in Go. Without optimization it takes three quarters of the time, once, and each start of a server twice. */
export const FLAGS = ['-trimpath', '-buildvcs=false', '-gcflags=all=-dwarf=false'];

/** The folder of a peer's sources. */
export function moduleOf({ name }) {
  return join(HERE, name);
}

/** The release that go.mod or Cargo.toml names, such as `1.37.2`. Parts of Kubernetes call it 0.37.2. */
export function release(peer = KUBE_APISERVER) {
  const name = peer.requires.replaceAll('.', '\\.');
  const [manifest, line] = isRust(peer)
    ? ['Cargo.toml', new RegExp(`^${name} = .*"=(\\d[^"]*)"`, 'm')]
    : ['go.mod', new RegExp(`^\\s*(?:require )?${name} v(\\S+)$`, 'm')];
  const [, version] = line.exec(readFileSync(join(moduleOf(peer), manifest), 'utf8')) ?? [];
  if (version === undefined) throw new Error(`${manifest} requires no ${peer.requires}`);
  return version.replace(/^0\./, '1.');
}

/** The first part of the binary's name: it changes with the sources and the flags. */
export function stem(peer = KUBE_APISERVER) {
  const hash = createHash('sha256');
  if (!isRust(peer)) hash.update(JSON.stringify(FLAGS));
  const sources = isRust(peer) ? ['src/main.rs', 'Cargo.toml', 'Cargo.lock'] : ['main.go', 'go.mod', 'go.sum'];
  for (const file of sources) hash.update(readFileSync(join(moduleOf(peer), file)));
  return `${peer.name}-${release(peer)}-${hash.digest('hex').slice(0, 12)}-`;
}

function isRust({ language }) {
  return language === 'rust';
}

/** The built binary, or undefined. It needs no compiler, so a binary from a cache will do. */
export function builtBinary(peer = KUBE_APISERVER) {
  const named = process.env[peer.variable];
  if (named !== undefined && named !== '') return existsSync(named) ? named : undefined;
  if (!existsSync(OUTPUT)) return undefined;
  const wanted = stem(peer);
  const found = readdirSync(OUTPUT).find((name) => name.startsWith(wanted) && !name.endsWith('.part'));
  return found === undefined ? undefined : join(OUTPUT, found);
}
