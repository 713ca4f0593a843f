/** Certificates, keys and the password of etcd, from the files that options name. */
import { createSecureContext } from 'node:tls';
import type { EtcdTls } from '../../storage/etcd/options.ts';
import { quote, UsageError } from '../usage.ts';
import { FromFiles, type NamedFile } from './reload.ts';
import type { ServeCommand } from './serve-args.ts';

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
