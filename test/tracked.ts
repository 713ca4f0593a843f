// The files of this repository, without what was installed or built.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT: string = fileURLToPath(new URL('..', import.meta.url));

export const readText = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

function fromGit(): string[] {
  const { status, stdout } = spawnSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' });
  return status === 0 ? stdout.split('\0').filter((path) => path !== '' && existsSync(join(ROOT, path))) : [];
}

const NOT_OURS = /^(?:node_modules|dist|reports|coverage|target|\.git|\.build|\.stryker-tmp)$/;

/** All files below a folder: git may be missing, or this copy may be one that it ignores. */
export function walk(folder: string = ''): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (!entry.isDirectory()) return entry.isFile() ? [path] : [];
    return NOT_OURS.test(entry.name) ? [] : walk(path);
  });
}

const tracked = fromGit();

/** Paths relative to the root. */
export const FILES: readonly string[] = [...new Set(tracked.length > 0 ? tracked : walk())].sort();

/** What people read; the two lists of tests in test/ are tables for tests. */
export const DOCUMENTS: readonly string[] = FILES.filter((path) => path.endsWith('.md') && !path.startsWith('test/'));

/** Whether a file holds text. Those that do not are few, and small. */
export function isText(path: string): boolean {
  return !readText(path).includes('\0');
}
