// How programs of a language are built: what its toolchain is called, which version of it there is, and what it is asked.

import { execFileSync } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { FLAGS, moduleOf, OUTPUT, release } from './binary.mjs';

const nothing = () => {};

/** Go, with caches of its own that other programs use, too. */
const GO = {
  command: 'go',
  environment: { CGO_ENABLED: '0' },
  absent: 'there is no Go: install Go 1.26 or newer, so that "go version" works',
  refusal: 'Go does not accept the module, it is probably older than 1.26',
  version: (ask) => ask('env', 'GOVERSION'),
  download: (ask) => ask('mod', 'download'),
  packages: async (ask, { command = '.' }) => (await ask('list', '-deps', command)).split('\n').length,
  build: (peer, output) => {
    // What of Kubernetes says its version has it from here.
    const symbol = peer.requires.startsWith('k8s.io/') ? ` -X k8s.io/component-base/version.gitVersion=v${release(peer)}` : '';
    return ['build', '-v', ...FLAGS, '-ldflags', `-s -w${symbol}`, '-o', output, peer.command ?? '.'];
  },
  isPackage: (line) => line !== '',
  deliver: nothing,
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
  download: nothing,
  packages: async () => undefined,
  build: () => ['build', '--locked'],
  isPackage: (line) => line.trimStart().startsWith('Compiling '),
  deliver: ({ name }, output) => copyFileSync(join(TARGET, 'debug', name), output),
};

/** What only has to be installed, into a folder. */
const INSTALLED = {
  environment: {},
  download: nothing,
  packages: async () => undefined,
  isPackage: () => false,
  deliver: nothing,
};

/** Python: a folder for PYTHONPATH. */
const PYTHON = {
  ...INSTALLED,
  command: 'python3',
  absent: 'there is no Python: install Python 3.11 or newer with pip',
  refusal: 'Python does not work here',
  version: async (ask) => (await ask('--version')).replace(/^Python /, 'python'),
  build: (_, output) => ['-m', 'pip', 'install', '--quiet', '--no-deps', '--target', output, '--requirement', 'requirements.txt'],
};

/** Java: a folder with `lib` and `classes`. */
const JAVA = {
  ...INSTALLED,
  command: 'mvn',
  absent: 'there is no Maven: apt-get install maven openjdk-17-jdk-headless',
  refusal: 'Maven does not work here',
  version: async (ask) => `java${/Java version: ([\d.]+)/.exec(await ask('--version'))?.[1]}`,
  build: (_, output) => ['--batch-mode', '--quiet', 'dependency:copy-dependencies', `-DoutputDirectory=${output}/lib`],
  deliver: (peer, output) => {
    const paths = ['-cp', join(output, 'lib', '*'), '-d', join(output, 'classes')];
    execFileSync('javac', ['-proc:none', ...paths, join(moduleOf(peer), 'Clients.java')]);
  },
};

/** npm: a folder with `node_modules`. */
const NPM = {
  ...INSTALLED,
  command: 'npm',
  absent: 'there is no npm',
  refusal: 'npm does not work here',
  version: async (ask) => `npm${await ask('--version')}`,
  build: ({ requires, ...peer }, output) => [
    ...['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--prefix', output],
    `${requires}@${release({ requires, ...peer })}`,
  ],
};

const TOOLCHAINS = { go: GO, rust: RUST, python: PYTHON, java: JAVA, npm: NPM };

/** The toolchain of a peer. */
export function toolchainOf({ language = 'go' }) {
  return TOOLCHAINS[language];
}
