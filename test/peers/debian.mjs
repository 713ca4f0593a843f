// Unpacks Debian's kubectl, which is 1.20, for the tests of this folder: node test/peers/debian.mjs
//
// It is not installed: a machine may have another kubectl already, and two packages cannot both own /usr/bin/kubectl.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OUTPUT } from './binary.mjs';

const PACKAGE = 'kubernetes-client';
const FOLDER = join(OUTPUT, 'debian');

/** Where it is, or would be. */
export function debianKubectl() {
  return process.env.WATCHMUX_KUBECTL_DEBIAN || join(FOLDER, 'usr', 'bin', 'kubectl');
}

function unpack() {
  if (existsSync(debianKubectl())) return;
  mkdirSync(OUTPUT, { recursive: true });
  const part = mkdtempSync(join(OUTPUT, 'debian-'));
  try {
    // Without the sandbox, whose user could not write here.
    execFileSync('apt-get', ['-qq', '-o', 'APT::Sandbox::User=root', 'download', PACKAGE], { cwd: part, stdio: 'inherit' });
    const file = readdirSync(part).find((name) => name.endsWith('.deb'));
    execFileSync('dpkg-deb', ['-x', join(part, file), part]);
    rmSync(join(part, file));
    rmSync(FOLDER, { recursive: true, force: true });
    renameSync(part, FOLDER);
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  unpack();
  console.log(debianKubectl());
}
