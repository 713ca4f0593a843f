/**
 * What a server reads from files, and reads again when they change: certificates, tokens, passwords.
 *
 *     refresh ---> as before: nothing
 *             ---> valid: it replaces what was there
 *             ---> broken, or gone: what was there remains in use, and the caller learns why, once
 *
 * Files are read, not watched: in a Kubernetes secret they are links to links, of which only the first is replaced, and not every
 * file system reports changes. Files that belong together are replaced together: a new certificate without its key is broken
 * until the key has arrived.
 */
import { readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { WatchError } from '../../watch/errors.ts';

/** How often files are read. */
export const EVERY_MS = 5_000;

export interface NamedFile {
  readonly option: string;
  readonly file: string;
}

/** Creates the error that says what is wrong with an option. */
export type Fault = (text: string) => Error;

const INVALID: Fault = (text) => new WatchError('INVALID_ARGUMENT', text);

interface FromFilesOptions<T> {
  /** If there are none, the value is always the same. */
  readonly files: readonly NamedFile[];
  /** Creates the value from the contents of the files, in their order. Throws if they are invalid. */
  readonly make: (contents: readonly Buffer[]) => T;
  /** Default: INVALID_ARGUMENT. */
  readonly fault?: Fault;
}

export class FromFiles<T> {
  /** Called with each new value, and the one before. */
  onChange: (value: T, before: T) => void = () => {};
  readonly files: readonly NamedFile[];
  private readonly make: (contents: readonly Buffer[]) => T;
  private readonly fault: Fault;
  private current: T;
  /** What was read last, whether valid or not. */
  private contents: readonly Buffer[];
  /** Why the last attempt failed. */
  private failure: string | undefined = undefined;

  /** Reads the files. Throws if they cannot be read, or are invalid. */
  constructor({ files, make, fault = INVALID }: FromFilesOptions<T>) {
    this.files = files;
    this.make = make;
    this.fault = fault;
    this.contents = files.map((each) => this.firstContent(each));
    this.current = make(this.contents);
  }

  get value(): T {
    return this.current;
  }

  /**
   * Reads the files again. Resolves with news: that the value has changed, or an error. With `again`, even if nothing
   * is new.
   */
  async refresh(again: boolean): Promise<'changed' | Error | undefined> {
    try {
      const contents = await Promise.all(this.files.map((file, at) => this.contentOf(file, this.contents[at] as Buffer)));
      const same = contents.every((each, at) => each.equals(this.contents[at] as Buffer));
      if (same && this.failure === undefined && !again) return undefined;
      // Not tried again before the files change again.
      this.contents = contents;
      const before = this.current;
      this.current = this.make(contents);
      this.onChange(this.current, before);
      this.failure = undefined;
      return 'changed';
    } catch (error) {
      const failure = String(error);
      if (failure === this.failure && !again) return undefined;
      this.failure = failure;
      return error as Error;
    }
  }

  private firstContent({ option, file }: NamedFile): Buffer {
    try {
      return readFileSync(file);
    } catch (error) {
      throw this.fault(`${option}: ${(error as Error).message}`);
    }
  }

  /** A pipe can be read only once, and reading it again might wait forever. */
  private async contentOf({ option, file }: NamedFile, before: Buffer): Promise<Buffer> {
    try {
      return (await stat(file)).isFile() ? await readFile(file) : before;
    } catch (error) {
      throw this.fault(`${option}: ${(error as Error).message}`);
    }
  }
}

/** A certificate and its key, in PEM. */
export interface Pair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** A file in PEM, and what it is. */
export interface PemFile extends NamedFile {
  readonly part: 'ca' | 'cert' | 'key';
}

const CERTIFICATE = /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]*-----END [A-Z0-9 ]*-----/g;
const ENCRYPTED = /-----BEGIN ENCRYPTED |Proc-Type: 4,ENCRYPTED/;

/** OpenSSL treats a CA without a certificate as no CA, and then trusts nobody. */
function checkPem({ option, file, part }: PemFile, text: string, fault: Fault): void {
  if (!text.includes('-----BEGIN ')) throw fault(`${option}: ${file} is not in PEM`);
  if (part === 'key') {
    if (ENCRYPTED.test(text)) throw fault(`${option}: ${file} is encrypted: expected a key without a passphrase`);
    return;
  }
  const certificates = text.match(CERTIFICATE) ?? [];
  if (certificates.length === 0) throw fault(`${option}: there is no certificate in ${file}`);
  for (const [at, each] of certificates.entries()) {
    try {
      createSecureContext({ cert: each });
    } catch (error) {
      throw fault(`${option}: certificate ${at + 1} in ${file}: ${(error as Error).message}`);
    }
  }
}

/** The content of PEM files, which must match. */
export function fromPemFiles<T extends object>(files: readonly PemFile[], fault: Fault = INVALID): FromFiles<T> {
  const make = (contents: readonly Buffer[]): T => {
    for (const [at, each] of files.entries()) checkPem(each, contents[at]?.toString('latin1') ?? '', fault);
    const pem = Object.fromEntries(files.map(({ part }, at) => [part, contents[at]])) as T;
    try {
      createSecureContext(pem);
    } catch (error) {
      throw fault(`${files.map(({ option }) => option).join(', ')}: ${(error as Error).message}`);
    }
    return pem;
  };
  return new FromFiles({ files, make, fault });
}
