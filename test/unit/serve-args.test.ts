import { describe, expect, test } from 'vitest';
import { parseCommand } from '../../src/cli/args.ts';
import { helpText } from '../../src/cli/help.ts';
import { isLoopback, SERVE_OPTIONS } from '../../src/cli/serve/serve-args.ts';

const parse = (...args: string[]): unknown => parseCommand(['serve', ...args]);
const order = { group: 'example.com', version: 'v1', plural: 'orders', kind: 'Order', namespaced: true };
const R = 'orders.example.com/v1=Order';

describe('watchmux serve: arguments', () => {
  test('defaults: the port at which kubectl looks, this machine only, memory', () => {
    expect(parse()).toEqual({
      ...{
        command: 'serve',
        host: '127.0.0.1',
        port: 8080,
        resources: [],
        kubernetesKinds: false,
        crdFiles: [],
        etcd: [],
        prefix: '/watchmux/',
      },
      ...{
        token: undefined,
        tls: undefined,
        webhookServices: undefined,
        managedFields: 'named',
        dataFile: undefined,
        sqliteFile: undefined,
        tokenFile: undefined,
        metrics: undefined,
      },
      ...{ log: 'text', keepAliveMs: 120_000, drainMs: 10_000, drainDelayMs: 0, clientHeader: undefined, limits: {} },
    });
  });

  test('every option', () => {
    const more = ['--resource', 'zones.io/v1beta1=Zone:cluster', '--token', 't', '--tls-cert', 'c', '--tls-key', 'k'];
    expect(parse('--port', '0', '--host', '[::]', '--resource', R, ...more, '--data', 'f')).toMatchObject({
      ...{ host: '::', port: 0, token: 't', tls: { certFile: 'c', keyFile: 'k' }, dataFile: 'f' },
      resources: [order, { group: 'io', version: 'v1beta1', plural: 'zones', kind: 'Zone', namespaced: false }],
    });
    expect(parse('--managed-fields', 'always')).toMatchObject({ managedFields: 'always' });
    expect(() => parse('--managed-fields', 'all')).toThrow(/--managed-fields takes one of named, always/);
    expect(parse('--sqlite', 's')).toMatchObject({ sqliteFile: 's', dataFile: undefined });
    expect(parse('--metrics', '[::1]:9090', '--log', 'json', '--drain', '20', '--drain-delay', '2.5')).toMatchObject({
      ...{ metrics: { host: '::1', port: 9090 }, log: 'json', drainMs: 20_000, drainDelayMs: 2_500 },
    });
    expect(parse('--metrics', '9090', '--client-address', 'X-Forwarded-For', '--token-file', 'f')).toMatchObject({
      ...{ metrics: { host: '127.0.0.1', port: 9090 }, clientHeader: 'x-forwarded-for', tokenFile: 'f' },
    });
    const limits = ['--max-watchers', '1', '--max-watchers-per-address', '2', '--max-requests-per-address', '3'];
    expect(parse(...limits)).toMatchObject({
      limits: { maxWatchers: 1, maxWatchersPerAddress: 2, maxConcurrentRequestsPerAddress: 3 },
    });
    const tenants = ['--max-watchers-per-tenant', '4', '--max-requests-per-tenant', '5'];
    for (const who of [
      ['--token-file', 'f'],
      ['--token', 't'],
    ]) {
      expect(parse(...who, ...tenants, '--max-writes-per-second-per-tenant', '0')).toMatchObject({
        limits: { maxWatchersPerTenant: 4, maxConcurrentRequestsPerTenant: 5, maxWritesPerSecondPerTenant: 0 },
      });
    }
    expect(parse('--keep-alive', '620')).toMatchObject({ keepAliveMs: 620_000 });
    const secured = ['--etcd-ca', 'ca', '--etcd-cert', 'c', '--etcd-key', 'k', '--etcd-user', 'me', '--etcd-password-file', 'p'];
    expect(parse('--etcd', 'https://a:1', ...secured)).toMatchObject({
      ...{ etcdTls: { caFile: 'ca', certFile: 'c', keyFile: 'k' }, etcdUser: 'me', etcdPasswordFile: 'p' },
    });
    expect(parse('--etcd', 'http://a:1', '--etcd', 'https://b', '--prefix', '/p/')).toMatchObject({
      etcd: [new URL('http://a:1'), new URL('https://b')],
      prefix: '/p/',
    });
  });

  test("Kubernetes' own kinds: none, or all", () => {
    expect([parse(), parse('--kubernetes-kinds')]).toMatchObject([{ kubernetesKinds: false }, { kubernetesKinds: true }]);
  });

  test('webhooks: none, by their URLs, and those of services', () => {
    expect(parse('--webhooks')).toMatchObject({ webhookServices: new Map() });
    const services = ['--webhook-service', 'shop/hooks=127.0.0.1:9443', '--webhook-service', 'a/b=[::1]:1'];
    expect(parse(...services)).toMatchObject({
      webhookServices: new Map([
        ['shop/hooks', '127.0.0.1:9443'],
        ['a/b', '[::1]:1'],
      ]),
    });
    for (const wrong of [
      'shop=x:1',
      'shop/hooks',
      'shop/hooks=:1',
      'shop/hooks=x',
      'shop/hooks=x:0',
      'shop/hooks=x:65536',
      'S/h=x:1',
      '',
    ])
      expect(() => parse('--webhook-service', wrong)).toThrow(/--webhook-service takes NAMESPACE\/NAME=HOST:PORT, such as/);
    expect(() => parse(...services, '--webhook-service', 'a/b=c:2')).toThrow('--webhook-service: a/b is given twice');
  });

  const form = 'PLURAL[.GROUP]/VERSION=Kind[:cluster][:status][:scale]';
  const follows = 'after the kind :cluster, :status and :scale may follow, each once, not ';
  test.each([
    ['orders', `"orders": the form is ${form}; for example`],
    ['', `"": the form is ${form}`],
    ['orders.example.com/v1', `: the form is ${form}`],
    ['orders./v1=Order', `: the form is ${form}`],
    ['/v1=Order', `: the form is ${form}`],
    ['Orders.example.com/v1=Order', 'the plural "Orders" is not in lower-case letters'],
    ['orders.Example.com/v1=Order', 'the group "Example.com" is not a domain name in lower case'],
    ['orders.example..com/v1=Order', 'the group "example..com" is not a domain name'],
    ['orders.example.com/1=Order', 'the version "1" is not like v1'],
    ['orders.example.com/v1=Or der', 'the kind "Or der" is not a word'],
    ['orders.example.com/v1=Order:clustr', `${follows}":clustr"`],
    ['orders.example.com/v1=Order:', `${follows}":"`],
    ['orders.example.com/v1=Order:status:', `${follows}":"`],
    ['orders.example.com/v1=Order:status:scale:status', `${follows}":status"`],
    ['\u001b[31m.example.com/v1=Order', 'the plural ".[31m" is not'],
  ])('--resource %s', (value, message) => {
    expect(() => parse('--resource', value)).toThrow(/^watchmux serve: --resource "/);
    expect(() => parse('--resource', value)).toThrow(message);
  });

  test('a kind of the core group is named as everywhere else', () => {
    expect(parse('--resource', 'nodes/v1=Node:cluster:status')).toMatchObject({
      resources: [{ group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false, status: true }],
    });
  });

  test('subresources of a kind', () => {
    const scale = {
      specReplicasPath: '.spec.replicas',
      statusReplicasPath: '.status.replicas',
      labelSelectorPath: '.status.selector',
    };
    expect(parse('--resource', `${R}:status`)).toMatchObject({ resources: [{ ...order, status: true }] });
    expect(parse('--resource', `${R}:scale:cluster`)).toMatchObject({
      resources: [{ ...order, namespaced: false, status: false, scale }],
    });
    expect(parse('--resource', `${R}:status:scale`)).toMatchObject({ resources: [{ namespaced: true, status: true, scale }] });
  });

  test('two resources of one name or one kind', () => {
    expect(() => parse('--resource', R, '--resource', `${R}:cluster`)).toThrow('another --resource has this name or this kind');
    expect(() => parse('--resource', R, '--resource', 'others.example.com/v1=Order')).toThrow('another --resource');
    expect(parse('--resource', R, '--resource', 'orders.example.com/v2=Order')).toMatchObject({ resources: { length: 2 } });
  });

  test('two versions of one resource are of one kind, and both in namespaces or neither', () => {
    for (const other of ['orders.example.com/v2=Purchase', 'orders.example.com/v2=Order:cluster'])
      expect(() => parse('--resource', R, '--resource', other)).toThrow(
        `watchmux serve: --resource "${other}": another version of it has a different kind, or :cluster`,
      );
    const apart = ['orders.example.org/v2=Purchase', 'others.example.com/v2=Purchase', 'others.example.com/v3=Purchase'];
    expect(parse('--resource', R, ...apart.flatMap((each) => ['--resource', each]))).toMatchObject({ resources: { length: 4 } });
  });

  test('other machines are let in with a token only, and the error says what kubectl needs', () => {
    for (const host of ['0.0.0.0', '::', 'example.com', '10.0.0.1', '127.evil.com']) {
      expect(() => parse('--host', host)).toThrow(
        /lets other machines in, and needs --token; kubectl sends a token over HTTPS only/,
      );
      expect(parse('--host', host, '--token', 'x')).toMatchObject({ host });
    }
    expect(() => parse('--host', '::', '--tls-cert', 'c', '--tls-key', 'k')).toThrow(/needs --token$/);
    expect(['127.0.0.1', '127.9.9.9', '::1', 'LocalHost'].map(isLoopback)).toEqual([true, true, true, true]);
  });

  test.each([
    [['--port', '70000'], '--port takes a whole number from 0 to 65535, not "70000"'],
    [['--port', '-1'], '--port takes a whole number'],
    [['--host', 'a b'], '--host takes an address'],
    [['--host', ''], '--host takes an address'],
    [['--token', ''], '--token takes 1 to 1000 visible ASCII characters'],
    [['--token', 'a b'], '--token takes 1 to 1000 visible ASCII characters'],
    [['--tls-cert', 'c'], '--tls-cert and --tls-key go together'],
    [['--tls-key', ''], '--tls-key takes a non-empty value'],
    [['--data', ''], '--data takes a non-empty value'],
    [['--data', 'f', '--etcd', 'http://a'], '--data and --etcd cannot be combined'],
    [['--data', 'f', '--sqlite', 'g'], '--data and --sqlite cannot be combined'],
    [['--sqlite', 'g', '--etcd', 'http://a'], '--sqlite and --etcd cannot be combined'],
    [['--sqlite', ''], '--sqlite'],
    [['--prefix', '/p'], '--prefix goes with --etcd'],
    [['--etcd', 'a:1'], '--etcd takes a URL such as http://127.0.0.1:2379, not "a:1"'],
    [['--metrics', 'x'], '--metrics takes a port, or a host and a port such as 0.0.0.0:9090, not "x"'],
    [['--metrics', ':9090'], '--metrics takes a port'],
    [['--metrics', '99999'], '--metrics takes a port'],
    [['--metrics', 'a b:9090'], '--metrics takes a port, or a host and a port such as 0.0.0.0:9090, not "a b:9090"'],
    [['--etcd', 'http://h:1/path'], '--etcd takes a URL without a path and a query: expected http://h:1'],
    [['--etcd', 'http://h:1/?x'], '--etcd takes a URL without a path and a query: expected http://h:1'],
    [['--etcd', 'http://u:%zz@h:1'], '"http://h:1": expected %25 for % in the user and the password'],
    [['--etcd', 'tcp://u:secret@h:1'], '--etcd takes a URL such as http://127.0.0.1:2379, not "tcp://h:1"'],
    [
      ['--etcd', 'http://u:p@h:1', '--etcd', 'http://u:q@h:2'],
      '--etcd takes one user and one password for all members, not several',
    ],
    [['--log', 'xml'], '--log takes text or json, not "xml"'],
    [['--keep-alive', '0'], '--keep-alive takes seconds, from 1 to 86400, not "0"'],
    [['--keep-alive', 'long'], '--keep-alive takes seconds, from 1 to 86400, not "long"'],
    [['--drain', 'soon'], '--drain takes seconds'],
    [['--drain', '1', '--drain-delay', '2'], '--drain-delay is part of --drain, and cannot be longer'],
    [['--client-address', 'a:b'], '--client-address takes the name of a header'],
    [['--max-watchers', '0'], '--max-watchers takes a whole number from 1'],
    [['--token-file', 'f', '--max-watchers-per-tenant', '0'], '--max-watchers-per-tenant takes a whole number from 1'],
    [['--max-writes-per-second-per-tenant', '5'], '--max-writes-per-second-per-tenant goes with --token-file'],
    [['--resorce', R], "Unknown option '--resorce': did you mean --resource?; see watchmux serve --help"],
    [['--token-file', ''], '--token-file takes a non-empty value'],
    [['x'], 'unexpected argument "x": serve takes options only'],
    [['--nothing'], "Unknown option '--nothing'; see watchmux serve --help"],
  ])('%j', (args, message) => {
    expect(() => parse(...args)).toThrow(`watchmux serve: ${message}`);
  });

  test('a token is not shown by any message', () => {
    for (const args of [
      ['--token', 'se cret'],
      ['--token', 'se\ncret', '--host', '::'],
    ]) {
      expect(() => parse(...args)).toThrow(expect.objectContaining({ message: expect.not.stringMatching(/cret/) }));
    }
  });

  test('the help names every option', () => {
    expect(parse('--help')).toEqual({ command: 'help', topic: 'serve' });
    expect(parseCommand(['help', 'serve'])).toEqual({ command: 'help', topic: 'serve' });
    for (const option of Object.keys(SERVE_OPTIONS)) expect(helpText('serve')).toContain(`--${option} `);
    expect(helpText(undefined)).toContain('watchmux serve');
    for (const line of helpText('serve').split('\n')) expect(line.length).toBeLessThanOrEqual(125);
  });
});
