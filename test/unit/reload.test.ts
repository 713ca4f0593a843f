// What is read again when it changes: replaced files, links to links as in Kubernetes' secrets, SIGHUP, and files that are broken.
import { createPrivateKey } from 'node:crypto';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { parseCommand } from '../../src/cli/args.ts';
import { ServeLog } from '../../src/cli/serve/log.ts';
import {
  type Reloadable,
  Reloads,
  toEtcdTls,
  toEtcdUser,
  toServerTls,
  toTokens,
  warnIfExpired,
} from '../../src/cli/serve/reload.ts';
import type { ServeCommand } from '../../src/cli/serve/serve-args.ts';
import { FakeClock } from '../../src/testing/index.ts';
import { eventually } from '../eventually.ts';
import { certify } from './certificates.ts';

const folder = mkdtempSync(join(tmpdir(), 'watchmux-reload-'));
let count = 0;
/** A folder of its own. */
function place(): string {
  const own = join(folder, `${++count}`);
  mkdirSync(own);
  return own;
}
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const command = (...args: string[]): ServeCommand => parseCommand(['serve', ...args]) as ServeCommand;
const tokensOf = (file: string) => toTokens(command('--token-file', file)) as NonNullable<ReturnType<typeof toTokens>>;

interface Running {
  readonly clock: FakeClock;
  readonly lines: string[];
  /** Lets the time come, and waits until everything has been read. */
  readonly pass: () => Promise<void>;
}

function start(...values: (Reloadable | undefined)[]): Running {
  const [clock, lines, listeners] = [new FakeClock(), [] as string[], process.listenerCount('SIGHUP')];
  const output = { writableLength: 0, write: (text: string) => lines.push(text.replace(/^watchmux serve: /, '').trimEnd()) };
  const reloads = new Reloads({ values, clock, log: new ServeLog({ format: 'text', output, now: () => 0 }) });
  onTestFinished(() => {
    reloads.end();
    expect([clock.pending, process.listenerCount('SIGHUP')]).toEqual([0, listeners]);
  });
  const pass = async (): Promise<void> => {
    clock.advance(5_000);
    await eventually(() => expect(clock.pending).toBe(1));
  };
  return { clock, lines, pass };
}

/** Replaces a file as careful programs do. */
function replace(file: string, text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

describe('tokens', () => {
  test('are those of the file as it is: replaced, or written again in its place', async () => {
    const file = join(place(), 'tokens');
    writeFileSync(file, 'one ada\n');
    const tokens = tokensOf(file);
    const { lines, pass } = start(tokens);
    const nameOf = (token: string): string | undefined => tokens.value.nameOf(token);
    await pass();
    expect([lines, nameOf('one')]).toEqual([[], 'ada']);
    replace(file, 'two bob\n');
    await pass();
    expect([nameOf('one'), nameOf('two')]).toEqual([undefined, 'bob']);
    writeFileSync(file, 'six eve\n'); // of the same size, perhaps within the same tick of the file system's clock
    await pass();
    expect([nameOf('two'), nameOf('six')]).toEqual([undefined, 'eve']);
    await pass();
    expect(lines).toEqual(Array(2).fill(`reloaded files=${file}`));
  });

  test("that are gone, or are somebody else's, are told by the names that lose them", async () => {
    const file = join(place(), 'tokens');
    writeFileSync(file, 'one ada\ntwo ada\nsix eve\nten bob\n');
    const tokens = tokensOf(file);
    const lost: string[][] = [];
    tokens.onChange = (now, before) => lost.push([...before.lostIn(now)]);
    const { pass } = start(tokens);
    replace(file, 'one ada\nsix zoe\nten bob\nnew eve\n');
    await pass();
    replace(file, 'one ada\nsix zoe\nten bob\nnew eve\nmore eve\n');
    await pass();
    expect(lost).toEqual([['ada', 'eve'], []]);
  });

  test('in a secret of Kubernetes, where a link is replaced and the file is not', async () => {
    const own = place();
    const version = (name: string, text: string): void => {
      mkdirSync(join(own, name));
      writeFileSync(join(own, name, 'tokens'), text);
      symlinkSync(name, join(own, '..data.new'));
      renameSync(join(own, '..data.new'), join(own, '..data'));
    };
    version('..1', 'one ada\n');
    symlinkSync('..data/tokens', join(own, 'tokens'));
    const tokens = tokensOf(join(own, 'tokens'));
    const { pass } = start(tokens);
    version('..2', 'two ada\n');
    rmSync(join(own, '..1'), { recursive: true });
    await pass();
    expect([tokens.value.nameOf('one'), tokens.value.nameOf('two')]).toEqual([undefined, 'ada']);
  });

  test('remain in use while the file is broken or gone, which is told once, without a token', async () => {
    const file = join(place(), 'tokens');
    writeFileSync(file, 'one ada\n');
    const tokens = tokensOf(file);
    const { lines, pass } = start(tokens);
    const told = (): string[] => lines.splice(0);
    const isKept = (): void => expect(tokens.value.nameOf('one')).toBe('ada');
    for (const text of ['two\n', '']) {
      replace(file, text);
      for (let times = 0; times < 3; times++) await pass();
      isKept();
      const [line, ...more] = told();
      expect(more).toEqual([]);
      expect(line).toMatch(/^reload-failed files=\S+ error="--token-file: /);
      expect(line).not.toContain('two');
    }
    unlinkSync(file);
    for (let times = 0; times < 2; times++) await pass();
    isKept();
    expect(told()).toEqual([expect.stringContaining('ENOENT')]);
    // It is back, as it was.
    replace(file, 'one ada\n');
    await pass();
    isKept();
    expect(told()).toEqual([`reloaded files=${file}`]);
  });

  test('SIGHUP reads at once, tells what came of it, and does not end anything', async () => {
    const file = join(place(), 'tokens');
    writeFileSync(file, 'one ada\n');
    const tokens = tokensOf(file);
    const { lines } = start(tokens);
    writeFileSync(file, 'two ada\n');
    // As many as there are at once are one.
    for (let times = 0; times < 100; times++) process.emit('SIGHUP');
    await eventually(() => expect(tokens.value.nameOf('two')).toBe('ada'));
    expect(lines).toEqual(['reload reason=SIGHUP', `reloaded files=${file}`]);
    process.emit('SIGHUP');
    await eventually(() => expect(lines).toHaveLength(4));
    writeFileSync(file, 'broken\n');
    for (let times = 0; times < 2; times++) {
      process.emit('SIGHUP');
      await eventually(() => expect(lines).toHaveLength(6 + 2 * times));
      expect(lines.at(-1)).toContain('reload-failed');
    }
  });

  test('of the command line alone need no timer; SIGHUP is answered all the same', () => {
    const tokens = toTokens(command('--token', 'secret'));
    const { clock, lines } = start(tokens, undefined);
    process.emit('SIGHUP');
    expect([clock.pending, lines, tokens?.value.nameOf('secret')]).toEqual([0, ['reload reason=SIGHUP'], 'token']);
  });

  test('of both: that of the command line stays', async () => {
    const file = join(place(), 'tokens');
    writeFileSync(file, 'one ada\n');
    const tokens = toTokens(command('--token-file', file, '--token', 'secret'));
    const { pass } = start(tokens);
    replace(file, 'two ada\n');
    await pass();
    const names = ['one', 'two', 'secret'].map((token) => tokens?.value.nameOf(token));
    expect(names).toEqual([undefined, 'ada', 'token']);
  });

  test('from something that can be read only once are not read again', async () => {
    const file = join(place(), 'tokens');
    writeFileSync(file, 'one ada\n');
    const tokens = tokensOf(file);
    const { lines, pass } = start(tokens);
    // Like a pipe, it is no file.
    unlinkSync(file);
    symlinkSync('/dev/null', file);
    await pass();
    expect([lines, tokens.value.nameOf('one')]).toEqual([[], 'ada']);
  });
});

test('a token has one tenant', () => {
  const file = join(place(), 'tokens');
  writeFileSync(file, 'one ada\none ada\n');
  expect(tokensOf(file).value.nameOf('one')).toBe('ada');
  expect(() => toTokens(command('--token-file', file, '--token', 'one'))).toThrow(
    'watchmux serve: --token is also the token of "ada" in --token-file',
  );
  writeFileSync(file, 'one ada\n# another\none bob\n');
  expect(() => tokensOf(file)).toThrow('watchmux serve: --token-file: line 3 gives the token of "ada" to "bob", too');
});

describe('a certificate and its key', () => {
  test('are replaced together: a new one whose key has not come is told, and waits', async () => {
    const own = place();
    const [cert, key] = [join(own, 'cert'), join(own, 'key')];
    const [old, next] = [certify().server, certify().server];
    writeFileSync(cert, old.cert);
    writeFileSync(key, old.key);
    const tls = toServerTls(command('--tls-cert', cert, '--tls-key', key));
    const seen: string[] = [];
    if (tls) tls.onChange = (pair) => seen.push(pair.cert.toString());
    const { lines, pass } = start(tls);
    replace(cert, next.cert);
    await pass();
    expect(lines).toEqual([expect.stringMatching(/^reload-failed .*--tls-cert, --tls-key: .*key values mismatch/)]);
    expect(tls?.value.cert.toString()).toBe(old.cert);
    replace(key, next.key);
    await pass();
    expect([seen, lines[1]]).toEqual([[next.cert], `reloaded files="${cert},${key}"`]);
    replace(key, 'nothing');
    await pass();
    expect(lines[2]).toContain('is not in PEM');
    expect(tls?.value.key.toString()).toBe(next.key);
  });

  test('that the server cannot take are told once', async () => {
    const own = place();
    const [cert, key] = [join(own, 'cert'), join(own, 'key')];
    const write = ({ server }: ReturnType<typeof certify>): void => {
      replace(cert, server.cert);
      replace(key, server.key);
    };
    write(certify());
    const tls = toServerTls(command('--tls-cert', cert, '--tls-key', key));
    if (tls)
      tls.onChange = () => {
        throw new Error('restart');
      };
    const { lines, pass } = start(tls);
    write(certify());
    for (let times = 0; times < 3; times++) await pass();
    expect(lines).toEqual([expect.stringMatching(/^reload-failed .*restart/)]);
  });

  test('that do not fit together are refused at the start', () => {
    const own = place();
    const [cert, key] = [join(own, 'cert'), join(own, 'key')];
    writeFileSync(cert, certify().server.cert);
    writeFileSync(key, certify().server.key);
    expect(() => toServerTls(command('--tls-cert', cert, '--tls-key', key))).toThrow(
      /^watchmux serve: --tls-cert, --tls-key: .*mismatch/,
    );
  });

  test('are certificates and a key without a passphrase: OpenSSL would take a broken CA for none', () => {
    const own = place();
    const { ca, server } = certify();
    const at = (name: string, text: string): string => {
      writeFileSync(join(own, name), text);
      return join(own, name);
    };
    const encrypted = createPrivateKey(server.key).export({
      type: 'pkcs8',
      format: 'pem',
      cipher: 'aes-256-cbc',
      passphrase: 'x',
    });
    const broken = ca.replace(/(?<=\n).{64}/, (line) => `${line.slice(0, 40)}${'A'.repeat(24)}`);
    const files = { cert: at('cert', server.cert), key: at('key', server.key), locked: at('locked', String(encrypted)) };
    expect(() => toServerTls(command('--tls-cert', files.cert, '--tls-key', files.locked))).toThrow(
      `watchmux serve: --tls-key: ${files.locked} is encrypted: expected a key without a passphrase`,
    );
    expect(() => toServerTls(command('--tls-cert', files.key, '--tls-key', files.cert))).toThrow(
      `watchmux serve: --tls-cert: there is no certificate in ${files.key}`,
    );
    const etcd = ['--etcd', 'https://a:2379', '--etcd-ca'];
    expect(() => toEtcdTls(command(...etcd, files.key))).toThrow(`--etcd-ca: there is no certificate in ${files.key}`);
    const both = at('both', ca + broken);
    expect(() => toEtcdTls(command(...etcd, both))).toThrow(`watchmux serve: --etcd-ca: certificate 2 in ${both}: `);
    expect(toEtcdTls(command(...etcd, at('chain', server.cert + ca)))).toBeDefined();
  });

  test('a certificate that has expired is in the log: its clients tell nobody here', () => {
    const pair = { cert: Buffer.from(certify().server.cert), key: Buffer.from('') };
    const lines: unknown[] = [];
    const log = { warn: (...line: unknown[]) => void lines.push(line) };
    const until = '2049-12-31T23:59:59.000Z';
    warnIfExpired(pair, log, Date.parse(until));
    expect(lines).toEqual([]);
    warnIfExpired(pair, log, Date.parse(until) + 1);
    expect(lines).toEqual([['certificate-expired', { until }]]);
  });

  test('for etcd: any of the three, each as it is at present', async () => {
    const own = place();
    const { ca, client } = certify();
    const { cert, key } = client('me');
    const files = { ca: join(own, 'ca'), cert: join(own, 'cert'), key: join(own, 'key') };
    for (const [name, text] of Object.entries({ ca, cert, key })) writeFileSync(files[name as 'ca'], text);
    const url = ['--etcd', 'https://a:2379'];
    expect(toEtcdTls(command(...url))).toBeUndefined();
    expect(toEtcdTls(command(...url, '--etcd-ca', files.ca))?.value).toEqual({ ca: Buffer.from(ca) });
    const all = toEtcdTls(command(...url, '--etcd-ca', files.ca, '--etcd-cert', files.cert, '--etcd-key', files.key));
    expect(all?.value).toEqual({ ca: Buffer.from(ca), cert: Buffer.from(cert), key: Buffer.from(key) });
    const { pass } = start(all);
    const next = certify();
    replace(files.ca, next.ca);
    await pass();
    expect(all?.value.ca).toEqual(Buffer.from(next.ca));
  });
});

describe('the user in etcd', () => {
  const url = ['--etcd', 'http://a:2379'];
  const of = (args: readonly string[], env: Record<string, string> = {}): unknown => {
    const found = toEtcdUser(command(...args), env);
    return found && [found.user, found.password.value];
  };
  const ENV = { WATCHMUX_ETCD_PASSWORD: 'of the environment' };

  test('has the password of a file, of the environment, or of the URL', () => {
    const file = join(place(), 'password');
    writeFileSync(file, 'of the file\n');
    const inUrl = ['--etcd', 'http://b:2379', '--etcd', 'http://root:p%40ss@a:2379'];
    expect(of(url, ENV)).toBeUndefined();
    expect(of([...url, '--etcd-user', 'root'], ENV)).toEqual(['root', 'of the environment']);
    expect(of([...url, '--etcd-user', 'root', '--etcd-password-file', file], ENV)).toEqual(['root', 'of the file']);
    expect(of(inUrl)).toEqual(['root', 'p@ss']);
    expect(of(inUrl, ENV)).toEqual(['root', 'of the environment']);
    expect(of([...inUrl, '--etcd-password-file', file], ENV)).toEqual(['root', 'of the file']);
    const without = /the user "root" needs a password: --etcd-password-file, or WATCHMUX_ETCD_PASSWORD$/;
    expect(() => of([...url, '--etcd-user', 'root'])).toThrow(without);
    expect(() => of(['--etcd', 'http://root@a:2379'], { WATCHMUX_ETCD_PASSWORD: '' })).toThrow(without);
    writeFileSync(file, '\n');
    expect(() => of([...url, '--etcd-user', 'root', '--etcd-password-file', file])).toThrow('there is no password in it');
  });

  test('whose password changes', async () => {
    const file = join(place(), 'password');
    writeFileSync(file, 'one\n');
    const user = toEtcdUser(command(...url, '--etcd-user', 'root', '--etcd-password-file', file), {});
    const { pass } = start(user?.password);
    replace(file, 'two');
    await pass();
    expect(user?.password.value).toBe('two');
  });

  test.each([
    [['--etcd-user', 'root'], '--etcd-user goes with --etcd'],
    [['--etcd-ca', 'f'], '--etcd-ca goes with --etcd'],
    [[...url, '--etcd-ca', 'f'], '--etcd-ca goes with an https: URL in --etcd'],
    [['--etcd', 'https://a', '--etcd-key', 'f'], '--etcd-cert and --etcd-key go together'],
    [[...url, '--etcd-password-file', 'f'], '--etcd-password-file goes with --etcd-user'],
    [['--etcd', 'http://root:x@a', '--etcd-user', 'me'], '--etcd-user and a user in --etcd cannot be combined'],
    [[...url, '--etcd-user', ''], '--etcd-user takes a non-empty value'],
  ])('%j: %s', (args, message) => {
    expect(() => command(...args)).toThrow(message);
  });
});
