/** What `serve` reads from files, again from time to time and on SIGHUP: tokens, certificates, the password for etcd. */

import { createHash, X509Certificate } from 'node:crypto';
import type { UserInfo } from '../../apiserver/kinds/reviews.ts';
import {
  EVERY_MS,
  type Fault,
  FromFiles,
  fromPemFiles,
  type NamedFile,
  type Pair,
  type PemFile,
} from '../../operator/webhooks/from-files.ts';
import type { EtcdTls } from '../../storage/etcd/options.ts';
import type { Clock } from '../../watch/clock.ts';
import { whyOf } from '../../watch/errors.ts';
import { quote, UsageError } from '../usage.ts';
import type { ServeLog } from './log.ts';
import { isToken, type ServeCommand } from './serve-args.ts';

/** What is wrong with an option of `serve`. */
const fault: Fault = (text) => new UsageError(text, 'serve');

/** A value of any type. */
export type Reloadable = Pick<FromFiles<unknown>, 'files' | 'refresh'>;

interface ReloadsOptions {
  /** Those that the command line does not name are undefined. */
  readonly values: readonly (Reloadable | undefined)[];
  readonly log: Pick<ServeLog, 'info' | 'error'>;
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
      else if (news !== undefined) log.error('reload-failed', { files, error: whyOf(news).replace(/^watchmux serve: /, '') });
    }
  }
}

const NAME = /^[\w.@:-]{1,100}$/;

/** The name of a token, or an impersonated user. */
export type Identity = string | UserInfo;

/** Names by token. Only hashes of tokens are kept, so the time of a look-up does not reveal how much of a token is right. */
export class Tokens {
  private readonly names: Map<string, string> = new Map();

  /** Returns the other name that already has this token, if there is one. */
  add(token: string, name: string): string | undefined {
    const hash = hashOf(token);
    const before = this.names.get(hash);
    this.names.set(hash, name);
    return before === name ? undefined : before;
  }

  /** The name of the client that has this token; undefined if it is not known. */
  nameOf(token: string): string | undefined {
    return this.names.get(hashOf(token));
  }

  /** The names that had a token here that is not among the others. */
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

/** The tokens that clients must send: the current ones of `--token-file`, and that of `--token`. */
export function toTokens({ token, tokenFile }: TokenOptions): FromFiles<Tokens> | undefined {
  if (token === undefined && tokenFile === undefined) return undefined;
  const make = ([content]: readonly Buffer[]): Tokens => {
    const tokens = new Tokens();
    if (content !== undefined) readTokens(content.toString('utf8'), tokens);
    const other = token === undefined ? undefined : tokens.add(token, 'token');
    if (other !== undefined) throw fault(`--token is also the token of ${quote(other)} in --token-file`);
    return tokens;
  };
  return new FromFiles({ files: namedFiles('--token-file', tokenFile), make, fault });
}

function namedFiles(option: string, file: string | undefined): readonly NamedFile[] {
  return file === undefined ? [] : [{ option, file }];
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
    const other = tokens.add(token, name);
    if (other !== undefined)
      throw fault(`--token-file: line ${at + 1} gives the token of ${quote(other)} to ${quote(name)}, too`);
    count++;
  }
  if (count === 0) throw new UsageError('--token-file: there is no token in it', 'serve');
}

export function toServerTls({ tls }: Pick<ServeCommand, 'tls'>): FromFiles<Pair> | undefined {
  if (tls === undefined) return undefined;
  const files: readonly PemFile[] = [
    { option: '--tls-cert', file: tls.certFile, part: 'cert' },
    { option: '--tls-key', file: tls.keyFile, part: 'key' },
  ];
  return fromPemFiles<Pair>(files, fault);
}

/** Warns of an expired certificate: clients refuse it, but do not tell the server. */
export function warnIfExpired({ cert }: Pair, log: Pick<ServeLog, 'warn'>, now: number = Date.now()): void {
  const until = new Date(new X509Certificate(cert).validTo);
  if (until.getTime() < now) log.warn('certificate-expired', { until: until.toISOString() });
}

export function toEtcdTls({ etcdTls }: Pick<ServeCommand, 'etcdTls'>): FromFiles<EtcdTls> | undefined {
  if (etcdTls === undefined) return undefined;
  const { caFile, certFile, keyFile } = etcdTls;
  const named = [
    { option: '--etcd-ca', file: caFile, part: 'ca' },
    { option: '--etcd-cert', file: certFile, part: 'cert' },
    { option: '--etcd-key', file: keyFile, part: 'key' },
  ] as const;
  return fromPemFiles<EtcdTls>(
    named.filter((each): each is (typeof named)[number] & PemFile => each.file !== undefined),
    fault,
  );
}

/** Who the server is in etcd. */
export interface EtcdUser {
  readonly user: string;
  /** The current one. */
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
  const files = namedFiles('--etcd-password-file', etcdPasswordFile);
  const make = ([content]: readonly Buffer[]): string => (content === undefined ? given : toPassword(content));
  return { user, password: new FromFiles({ files, make, fault }) };
}

const PASSWORD = 'WATCHMUX_ETCD_PASSWORD';

/** Editors end a file with a line break. */
function toPassword(content: Buffer): string {
  const password = content.toString('utf8').replace(/\r?\n$/, '');
  if (password === '') throw new UsageError('--etcd-password-file: there is no password in it', 'serve');
  return password;
}
