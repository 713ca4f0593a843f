/**
 * What a server has read from files, and reads again when they change: tokens, certificates, the password for etcd.
 *
 *     timer, SIGHUP ---> read ---> as before: nothing
 *                             ---> valid: it replaces what was there, and is logged
 *                             ---> broken, or gone: what was there remains in use, and the log says why, once
 *
 * Files are read, not watched: in a Kubernetes secret they are links to links, of which only the first is replaced, and not every
 * file system reports changes. What belongs together is replaced together: a new certificate without its key is broken until the key
 * has come.
 */

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { EtcdTls } from '../../storage/etcd/options.ts';
import type { Clock } from '../../watch/clock.ts';
import { quote, UsageError } from '../usage.ts';
import { errorText, type Log } from './log.ts';
import { isToken, type ServeCommand } from './serve-args.ts';

/** How often files are read. */
const EVERY_MS = 5_000;

/** A file, and the option that names it. */
interface NamedFile {
  readonly option: string;
  readonly file: string;
}

/** Options of {@link FromFiles}. */
interface FromFilesOptions<T> {
  /** If there are none, the value is always the same. */
  readonly files: readonly NamedFile[];
  /** Makes the value of the content of the files, in their order. Throws {@link UsageError}, which says what is wrong. */
  readonly make: (contents: readonly Buffer[]) => T;
}

/** A value that is made of files. */
export class FromFiles<T> {
  /** Called with each new value, and the one before. */
  onChange: (value: T, before: T) => void = () => {};
  readonly files: readonly NamedFile[];
  private readonly make: (contents: readonly Buffer[]) => T;
  private current: T;
  /** What was read last, whether valid or not. */
  private contents: readonly Buffer[];
  /** Why the last attempt failed. */
  private failure: string | undefined = undefined;

  /** Reads the files. Throws {@link UsageError} if they cannot be read, or are invalid. */
  constructor({ files, make }: FromFilesOptions<T>) {
    this.files = files;
    this.make = make;
    this.contents = files.map(firstContent);
    this.current = make(this.contents);
  }

  get value(): T {
    return this.current;
  }

  /** Reads the files again. Resolves with what is news: that the value has changed, or an error. With `again`, everything is. */
  async refresh(again: boolean): Promise<'changed' | Error | undefined> {
    try {
      const contents = await Promise.all(this.files.map((file, at) => contentOf(file, this.contents[at] as Buffer)));
      const same = contents.every((each, at) => each.equals(this.contents[at] as Buffer));
      if (same && this.failure === undefined && !again) return undefined;
      // Not tried again before it has changed again.
      this.contents = contents;
      const before = this.current;
      this.current = this.make(contents);
      this.failure = undefined;
      this.onChange(this.current, before);
      return 'changed';
    } catch (error) {
      const failure = errorText(error);
      if (failure === this.failure && !again) return undefined;
      this.failure = failure;
      return error as Error;
    }
  }
}

function firstContent({ option, file }: NamedFile): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new UsageError(`--${option}: ${(error as Error).message}`, 'serve');
  }
}

/** A pipe can be read only once, and reading it again might wait for ever. */
async function contentOf({ option, file }: NamedFile, before: Buffer): Promise<Buffer> {
  try {
    return (await stat(file)).isFile() ? await readFile(file) : before;
  } catch (error) {
    throw new UsageError(`--${option}: ${(error as Error).message}`, 'serve');
  }
}

/** A value of any type. */
export type Reloadable = Pick<FromFiles<unknown>, 'files' | 'refresh'>;

/** Options of {@link Reloads}. */
interface ReloadsOptions {
  /** Those that the command line does not name are undefined. */
  readonly values: readonly (Reloadable | undefined)[];
  readonly log: Pick<Log, 'info' | 'error'>;
  readonly clock: Clock;
}

/** Reads files again from time to time, and on SIGHUP, which does not end the process. */
export class Reloads {
  private readonly options: ReloadsOptions;
  private readonly values: readonly Reloadable[];
  private cancel: () => void = () => {};
  private running: Promise<void> = Promise.resolve();
  private isDue: boolean = false;
  private ended: boolean = false;
  private readonly onHangUp = (): void => this.hangUp();

  constructor(options: ReloadsOptions) {
    this.options = options;
    this.values = options.values.filter((each) => each !== undefined && each.files.length > 0) as Reloadable[];
    process.on('SIGHUP', this.onHangUp);
    if (this.values.length > 0) this.wait();
  }

  /** Stops reading. */
  end(): void {
    this.ended = true;
    this.cancel();
    process.off('SIGHUP', this.onHangUp);
  }

  private wait(): void {
    if (this.ended) return;
    this.cancel = this.options.clock.schedule(EVERY_MS, () => {
      this.running = this.running.then(() => this.look(false)).then(() => this.wait());
    });
  }

  private hangUp(): void {
    if (this.isDue || this.ended) return;
    this.isDue = true;
    this.options.log.info('reload', { reason: 'SIGHUP' });
    this.running = this.running.then(() => {
      this.isDue = false;
      return this.look(true);
    });
  }

  private async look(again: boolean): Promise<void> {
    const { log } = this.options;
    for (const each of this.values) {
      const news = await each.refresh(again);
      if (this.ended) return;
      const files = each.files.map(({ file }) => file).join(',');
      if (news === 'changed') log.info('reloaded', { files });
      else if (news !== undefined) log.error('reload-failed', { files, error: errorText(news).replace(/^watchmux serve: /, '') });
    }
  }
}

const NAME = /^[\w.@:-]{1,100}$/;

/** Who has which token. Only hashes of tokens are kept: the time of a look-up does not reveal how much of a token is right. */
export class Tokens {
  private readonly names: Map<string, string> = new Map();

  add(token: string, name: string): void {
    this.names.set(hashOf(token), name);
  }

  /** The name of the client that sends this header; undefined if it has no known token. */
  nameOf(authorization: string | undefined): string | undefined {
    const [, token] = /^bearer +(\S+)$/i.exec(authorization ?? '') ?? [];
    return token === undefined ? undefined : this.names.get(hashOf(token));
  }

  /** The names that had a token here, and have it no longer among others. */
  lostIn(others: Tokens): Set<string> {
    return new Set([...this.names].flatMap(([hash, name]) => (others.names.get(hash) === name ? [] : [name])));
  }
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64');
}

/** The options that name tokens. */
interface TokenOptions {
  readonly token: string | undefined;
  readonly tokenFile: string | undefined;
}

/** The tokens that clients must send: those of `--token-file`, as it is at present, and the one of `--token`. */
export function toTokens({ token, tokenFile }: TokenOptions): FromFiles<Tokens> | undefined {
  if (token === undefined && tokenFile === undefined) return undefined;
  const make = ([content]: readonly Buffer[]): Tokens => {
    const tokens = new Tokens();
    if (content !== undefined) readTokens(content.toString('utf8'), tokens);
    if (token !== undefined) tokens.add(token, 'token');
    return tokens;
  };
  return new FromFiles({ files: tokenFile === undefined ? [] : [{ option: 'token-file', file: tokenFile }], make });
}

/** Adds the tokens of a file: a token and a name in each line; what follows `#` is a comment. Its messages show no token. */
function readTokens(text: string, tokens: Tokens): void {
  let count = 0;
  for (const [at, line] of text.split('\n').entries()) {
    const [token, name, more] = line
      .replace(/(^|\s)#.*$/, '')
      .trim()
      .split(/\s+/);
    if (token === undefined || token === '') continue;
    if (!isToken(token) || name === undefined || !NAME.test(name) || more !== undefined) {
      throw new UsageError(`--token-file: line ${at + 1} is not a token, a space, and the name of its tenant`, 'serve');
    }
    tokens.add(token, name);
    count++;
  }
  if (count === 0) throw new UsageError('--token-file: there is no token in it', 'serve');
}

/** A certificate and its key, in PEM. */
export interface Pair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/** Those of the server. */
export function toServerTls({ tls }: Pick<ServeCommand, 'tls'>): FromFiles<Pair> | undefined {
  if (tls === undefined) return undefined;
  const files = [
    { option: 'tls-cert', file: tls.certFile },
    { option: 'tls-key', file: tls.keyFile },
  ];
  return new FromFiles({ files, make: (contents) => checked(files, contents) as Pair });
}

/** Those for etcd. */
export function toEtcdTls({ etcdTls }: Pick<ServeCommand, 'etcdTls'>): FromFiles<EtcdTls> | undefined {
  if (etcdTls === undefined) return undefined;
  const { caFile, certFile, keyFile } = etcdTls;
  const named = [
    { option: 'etcd-ca', file: caFile },
    { option: 'etcd-cert', file: certFile },
    { option: 'etcd-key', file: keyFile },
  ];
  const files = named.filter((each): each is NamedFile => each.file !== undefined);
  return new FromFiles<EtcdTls>({ files, make: (contents) => checked(files, contents) });
}

interface Pem {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/** What the files contain, by the last word of their options. They must fit together. */
function checked(files: readonly NamedFile[], contents: readonly Buffer[]): Pem {
  for (const [at, { option, file }] of files.entries()) {
    if (contents[at]?.includes('-----BEGIN ') !== true) throw new UsageError(`--${option}: ${file} is not in PEM`, 'serve');
  }
  const pem: Pem = Object.fromEntries(files.map(({ option }, at) => [option.replace(/^.*-/, ''), contents[at]]));
  try {
    createSecureContext(pem);
  } catch (error) {
    const options = files.map(({ option }) => `--${option}`).join(', ');
    throw new UsageError(`${options}: ${(error as Error).message}`, 'serve');
  }
  return pem;
}

/** Who the server is in etcd. */
export interface EtcdUser {
  readonly user: string;
  /** As it is at present. */
  readonly password: FromFiles<string>;
}

/** The user of `--etcd-user`, or of the first URL that has one; the password of a file, the environment, or that URL. */
export function toEtcdUser(
  { etcd, etcdUser, etcdPasswordFile }: Pick<ServeCommand, 'etcd' | 'etcdUser' | 'etcdPasswordFile'>,
  env: Readonly<Record<string, string | undefined>>,
): EtcdUser | undefined {
  const named = etcd.find(({ username }) => username !== '');
  const user = etcdUser ?? (named && decodeURIComponent(named.username));
  if (user === undefined) return undefined;
  const given = env[PASSWORD] || decodeURIComponent(named?.password ?? '');
  if (etcdPasswordFile === undefined && given === '') {
    throw new UsageError(`the user ${quote(user)} needs a password: --etcd-password-file, or ${PASSWORD}`, 'serve');
  }
  const files = etcdPasswordFile === undefined ? [] : [{ option: 'etcd-password-file', file: etcdPasswordFile }];
  return { user, password: new FromFiles({ files, make: ([content]) => (content === undefined ? given : toPassword(content)) }) };
}

const PASSWORD = 'WATCHMUX_ETCD_PASSWORD';

/** Editors end a file with a line break. */
function toPassword(content: Buffer): string {
  const password = content.toString('utf8').replace(/\r?\n$/, '');
  if (password === '') throw new UsageError('--etcd-password-file: there is no password in it', 'serve');
  return password;
}
