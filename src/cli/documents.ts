// Files of YAML or JSON, several documents in each: what `serve --crd` and `types` read.
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubernetesObject } from '../cache/object.ts';
import { isRecord } from '../watch/errors.ts';
import { quote, type UsageError } from './usage.ts';

export interface FileDocument {
  readonly file: string;
  /** From 1; undefined if it is the only one in the file. */
  readonly number: number | undefined;
  readonly value: unknown;
}

/** Creates the error that names a file and says what is wrong with it. */
export type Fault = (file: string, why: string) => UsageError;

export const CRD = 'CustomResourceDefinition';
export const CRD_API_VERSION = 'apiextensions.k8s.io/v1';

const FILES = /\.(ya?ml|json)$/i;
const MAX_FILE_BYTES = 67_108_864;

/**
 * Reads a file, or all YAML and JSON files in a folder, at any depth, in the order of their names. The items of a List count as
 * documents.
 */
export async function documentsAt(path: string, fault: Fault): Promise<readonly FileDocument[]> {
  const found: FileDocument[] = [];
  for (const file of await filesAt(path, fault)) {
    let values: readonly unknown[];
    try {
      values = await documentsIn(await textOf(file));
    } catch (error) {
      throw fault(file, (error as Error).message);
    }
    for (const [at, value] of values.entries()) {
      const number = values.length === 1 ? undefined : at + 1;
      for (const item of itemsOf(value)) found.push({ file, number, value: item });
    }
  }
  return found;
}

/** The definition that a document is; undefined if it is something else. */
export function crdOf(document: FileDocument, fault: Fault): KubernetesObject | undefined {
  const { file, number, value } = document;
  if (!isRecord(value) || value.kind !== CRD) return undefined;
  const wrong = (why: string): UsageError => fault(file, `${number === undefined ? '' : `document ${number}: `}${why}`);
  if (value.apiVersion !== CRD_API_VERSION) {
    throw wrong(`apiVersion: expected ${CRD_API_VERSION}, not ${quote(String(value.apiVersion))}`);
  }
  const { metadata } = value;
  if (!isRecord(metadata) || typeof metadata.name !== 'string') throw wrong('metadata.name: expected the name of the definition');
  return value as KubernetesObject;
}

async function filesAt(path: string, fault: Fault): Promise<readonly string[]> {
  try {
    if (!(await stat(path)).isDirectory()) return [path];
    const entries = await readdir(path, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => FILES.test(entry.name) && !entry.isDirectory());
    return files.map((entry) => join(entry.parentPath ?? entry.path, entry.name)).sort();
  } catch (error) {
    throw fault(path, (error as Error).message);
  }
}

/** The text of a file. The size of anything but a regular file, such as a pipe, is unknown until it has been read. */
async function textOf(file: string): Promise<string> {
  const { size } = await stat(file);
  if (size > MAX_FILE_BYTES) throw new Error(`it has ${size} bytes, more than ${MAX_FILE_BYTES}`);
  const chunks: Buffer[] = [];
  for await (const chunk of createReadStream(file, { end: MAX_FILE_BYTES }) as AsyncIterable<Buffer>) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  if (bytes.length > MAX_FILE_BYTES) throw new Error(`it has more than ${MAX_FILE_BYTES} bytes`);
  try {
    // Removes the byte order mark that Windows programs write.
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error('it is not UTF-8');
  }
}

const itemsOf = (document: unknown): readonly unknown[] =>
  isRecord(document) && document.kind === 'List' && Array.isArray(document.items) ? document.items : [document];

/** JSON needs no package. */
async function documentsIn(text: string): Promise<readonly unknown[]> {
  try {
    return [JSON.parse(text)];
  } catch {
    const { parseAllDocuments } = await import('yaml').catch((cause: unknown) => {
      throw new Error('YAML needs the package yaml: npm install yaml', { cause });
    });
    const documents = [parseAllDocuments(text, { version: '1.1', logLevel: 'silent' })].flat();
    return documents.map((document) => {
      const [error] = document.errors;
      // Only the first line: the others show the place.
      if (error) throw new Error(error.message.split('\n', 1)[0]?.replace(/:$/, ''));
      const value: unknown = document.toJS();
      if (isEndless(value)) throw new Error('expected a value that JSON can represent, but an alias contains itself');
      return value;
    });
  }
}

/** Whether a value contains itself. Visits each part once, however many aliases it has. */
function isEndless(value: unknown): boolean {
  const open = new Set<unknown>();
  const closed = new Set<unknown>();
  const waiting = [value];
  while (waiting.length > 0) {
    const each = waiting.at(-1);
    if (typeof each !== 'object' || each === null || open.has(each) || closed.has(each)) {
      waiting.pop();
      // An open value that comes up again after its parts is done.
      if (open.delete(each)) closed.add(each);
      continue;
    }
    open.add(each);
    for (const part of Object.values(each)) {
      if (open.has(part)) return true;
      waiting.push(part);
    }
  }
  return false;
}
