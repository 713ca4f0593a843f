// How programs of a language are built: what its toolchain is called, which version of it there is, and what it is asked.

import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { FLAGS, OUTPUT, release } from './binary.mjs';

/** Go, with caches of its own that other programs use, too. */
const GO = {
  command: 'go',
  environment: { CGO_ENABLED: '0' },
  absent: 'there is no Go: install Go 1.26 or newer, so that "go version" works',
  refusal: 'Go does not accept the module, it is probably older than 1.26',
  version: (ask) => ask('env', 'GOVERSION'),
  download: (ask) => ask('mod', 'download'),
  packages: async (ask) => (await ask('list', '-deps', '.')).split('\n').length,
  build: (peer, output) => {
    const symbol = `-X k8s.io/component-base/version.gitVersion=v${release(peer)}`;
    return ['build', '-v', ...FLAGS, '-ldflags', `-s -w ${symbol}`, '-o', output, '.'];
  },
  isPackage: (line) => line !== '',
  deliver: () => {},
};

const CARGO_FOLDER = join(OUTPUT, 'cargo');
const TARGET = join(CARGO_FOLDER, 'target');

/** Rust. What it downloads and compiles stays beside the binaries. It needs a C compiler to link with. */
const RUST = {
  command: 'cargo',
  environment: { CARGO_HOME: CARGO_FOLDER, CARGO_TARGET_DIR: TARGET, CARGO_TERM_COLOR: 'never' },
  absent: 'there is no Rust: install Rust 1.95 or newer, so that "cargo --version" works',
  refusal: 'cargo does not work here',
  version: async (ask) => `rust${(await ask('--version')).split(' ')[1]}`,
  // Of what Cargo.lock names it needs what is for this platform alone. The build finds out which that is.
  download: async () => {},
  packages: async () => undefined,
  build: () => ['build', '--locked'],
  isPackage: (line) => line.trimStart().startsWith('Compiling '),
  deliver: ({ name }, output) => copyFileSync(join(TARGET, 'debug', name), output),
};

/** The toolchain of a peer. */
export function toolchainOf({ language }) {
  return language === 'rust' ? RUST : GO;
}
