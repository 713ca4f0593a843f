import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parseCommand, READERS } from '../../src/cli/args.ts';
import { helpText } from '../../src/cli/help.ts';
import type { InputLine } from '../../src/cli/lines.ts';
import { InputLines, readLine } from '../../src/cli/lines.ts';
import { COMMANDS, UsageError } from '../../src/cli/usage.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';

const words = (line: string): string[] => line.split(' ').filter((word) => word !== '');

describe('the command line', () => {
  test('pipe has defaults', () => {
    expect(parseCommand(['pipe'])).toEqual({
      command: 'pipe',
      host: '127.0.0.1',
      port: 8080,
      capacity: 100,
      maxQueuedBytes: 67_108_864,
      overflow: 'disconnect',
      replay: 0,
      window: 1_000,
      raw: false,
      keepOpen: false,
      keepAliveMs: 120_000,
      drainMs: 5_000,
    });
  });

  test('pipe accepts every option', () => {
    const line =
      'pipe --port 0 --host ::1 --capacity 7 --max-queued-bytes 9999 --overflow wait --replay=3 --window 9 --raw --keep-open --keep-alive 90 --drain 0.5 --title Orders';
    expect(parseCommand(words(line))).toEqual({
      command: 'pipe',
      host: '::1',
      port: 0,
      capacity: 7,
      maxQueuedBytes: 9_999,
      overflow: 'wait',
      replay: 3,
      window: 9,
      raw: true,
      keepOpen: true,
      keepAliveMs: 90_000,
      title: 'Orders',
      drainMs: 500,
    });
  });

  test.each(OVERFLOWS)('the policy %s is accepted', (policy) => {
    expect(parseCommand(['pipe', '--overflow', policy])).toMatchObject({ overflow: policy });
  });

  test.each([
    ['http://127.0.0.1:8080', 'http://127.0.0.1:8080/', 'http'],
    ['127.0.0.1:8080', 'http://127.0.0.1:8080/', 'http'],
    ['localhost:8080/watch?x=1', 'http://localhost:8080/watch?x=1', 'http'],
    ['ws://h:1/watch', 'http://h:1/watch', 'websocket'],
    ['wss://h/watch', 'https://h/watch', 'websocket'],
  ])('watch understands %s', (given, meant, transport) => {
    expect(parseCommand(['watch', given])).toEqual({
      command: 'watch',
      url: new URL(meant),
      transport,
      resume: undefined,
      reconnect: true,
    });
  });

  test('watch uses the transport that is asked for, whatever the URL', () => {
    expect(parseCommand(words('watch ws://h --transport http'))).toMatchObject({ transport: 'http' });
    expect(parseCommand(words('watch http://h --transport websocket'))).toMatchObject({ transport: 'websocket' });
  });

  test.each(Object.entries(READERS))('the help of %s says what each option is by default', (topic, [options]) => {
    const help = helpText(topic as keyof typeof READERS);
    for (const [name, option] of Object.entries(options)) {
      const [, own] = help.split(new RegExp(`^ +(?:-\\w, |--[\\w-]+ \\S+, )*--${name}\\b`, 'm'));
      const ends = own?.search(/\n( +-|\n)/);
      const told = own?.slice(0, ends) ?? '';
      if (typeof option.default === 'string') expect(told).toMatch(new RegExp(`(?=[^]*default)[^]*\\b${option.default}\\b`, 'i'));
      if (option.multiple) expect(told).toContain('may be repeated');
      expect(`${name}: ${told}`).not.toBe(`${name}: `);
    }
  });

  test('the shortest time is not none', () => {
    expect(parseCommand(words('get pods --timeout 0.0001'))).toMatchObject({ responseTimeoutMs: 1 });
    expect(parseCommand(words('get pods --timeout 0.0'))).toMatchObject({ responseTimeoutMs: 0 });
  });

  test('of an option that is given twice, the last one counts', () => {
    expect(parseCommand(words('pipe --port 1 --raw --port=2 --raw'))).toMatchObject({ port: 2, raw: true });
    expect(() => parseCommand(words('pipe --port 1 --port x'))).toThrow('--port takes');
    expect(helpText(undefined)).toContain('If it is given more than once, the last one counts');
  });

  test.each([
    ['[::1]', '::1'],
    ['::', '::'],
    ['fe80::1%eth0', 'fe80::1%eth0'],
    ['my-host.local', 'my-host.local'],
  ])('pipe listens on %s', (given, host) => {
    expect(parseCommand(['pipe', '--host', given])).toMatchObject({ host });
  });

  test('new has defaults, and accepts every option', () => {
    expect(parseCommand(words('new operator web'))).toEqual({
      command: 'new',
      name: 'web',
      group: 'example.com',
      kind: 'Web',
      plural: 'webs',
    });
    expect(parseCommand(words('new operator web --kind Site --group a.b'))).toEqual({
      ...{ command: 'new', name: 'web', group: 'a.b', kind: 'Site', plural: 'sites' },
    });
  });

  test('demo accepts a directory and a duration', () => {
    expect(parseCommand(['demo'])).toEqual({ command: 'demo', directory: undefined, durationMs: 10_000 });
    expect(parseCommand(words('demo ./x --seconds 1.5'))).toEqual({ command: 'demo', directory: './x', durationMs: 1_500 });
  });

  test('every spelling of help and version', () => {
    for (const spelling of ['--help', '-h', 'help'])
      expect(parseCommand([spelling])).toEqual({ command: 'help', topic: undefined });
    for (const spelling of ['--version', '-v']) expect(parseCommand([spelling])).toEqual({ command: 'version' });
    for (const spelling of ['--help', '-h'])
      expect(parseCommand(['help', spelling])).toEqual({ command: 'help', topic: undefined });
    for (const topic of COMMANDS) {
      expect(parseCommand([topic, '--help'])).toEqual({ command: 'help', topic });
      expect(parseCommand(['help', topic])).toEqual({ command: 'help', topic });
      expect(helpText(topic)).toContain(`watchmux ${topic}`);
      expect(helpText(undefined)).toContain(`watchmux ${topic}`);
    }
  });

  test.each([
    ['', 'watchmux: missing command'],
    ['frob', 'watchmux: unknown command "frob"'],
    ['--frob', 'watchmux: unknown option "--frob"'],
    ['pip', 'watchmux: unknown command "pip": did you mean pipe?; see --help'],
    ['help serv', 'watchmux: unknown command "serv": did you mean serve?; see --help'],
    [`p${'x'.repeat(60)}`, `watchmux: unknown command "p${'x'.repeat(60)}"; see --help`],
    ['--help frob', 'watchmux: unknown command "frob"'],
    ['pipe --capcity 5', "watchmux pipe: Unknown option '--capcity': did you mean --capacity?; see watchmux pipe --help"],
    ['watch --resum=1.5', "watchmux watch: Unknown option '--resum': did you mean --resume?; see watchmux watch --help"],
    ['get --selectr', "watchmux get: Unknown option '--selectr': did you mean --selector?; see watchmux get --help"],
    ['demo --secnds', "watchmux demo: Unknown option '--secnds': did you mean --seconds?; see watchmux demo --help"],
    ['pipe -x', "watchmux pipe: Unknown option '-x'; see watchmux pipe --help"],
    ['pipe --frob', "watchmux pipe: Unknown option '--frob'"],
    ['pipe --max.events 1', "watchmux pipe: Unknown option '--max.events'; see watchmux pipe --help"],
    ['pipe --port', 'watchmux pipe: --port needs a value; see'],
    ['pipe --port --raw', 'watchmux pipe: --port needs a value; see'],
    ['pipe --raw=yes', "watchmux pipe: Option '--raw' does not take an argument"],
    ['pipe --host=', 'watchmux pipe: --host takes an address or a host name, without a port, not ""'],
    ['pipe --host 127.0.0.1:80', 'watchmux pipe: --host takes'],
    ['pipe --host [::1]:80', 'watchmux pipe: --host takes'],
    ['pipe --host http://localhost', 'watchmux pipe: --host takes'],
    ['help frob', 'watchmux: unknown command "frob"'],
    ['pipe --port x', 'watchmux pipe: --port takes a whole number from 0 to 65535, not "x"'],
    ['pipe --port 65536', 'watchmux pipe: --port takes'],
    ['pipe --port -1', 'watchmux pipe: --port takes'],
    ['pipe --port=-1', 'watchmux pipe: --port takes'],
    ['pipe --capacity 1.5', 'watchmux pipe: --capacity takes'],
    ['pipe --max-queued-bytes 0', 'watchmux pipe: --max-queued-bytes takes a whole number from 1'],
    ['pipe --capacity=', 'watchmux pipe: --capacity takes'],
    [
      'pipe --capacity 99999999999999999999',
      'watchmux pipe: --capacity takes a whole number from 1 to 9007199254740991, not "99999999999999999999"',
    ],
    ['pipe --replay many', 'watchmux pipe: --replay takes'],
    ['pipe --capacity 0', 'watchmux pipe: --capacity takes a whole number from 1'],
    ['pipe --window -1', 'watchmux pipe: --window takes a whole number from 0, not "-1"'],
    ['pipe --replay 10 --window 5', 'watchmux pipe: --window takes at least 10, the value of --replay, not "5"'],
    [`pipe --title ${'x'.repeat(101)}`, 'watchmux pipe: --title takes 1 to 100 visible characters'],
    ['pipe --title \u001b[2J', 'watchmux pipe: --title takes 1 to 100 visible characters'],
    ['pipe --title=', 'watchmux pipe: --title takes 1 to 100 visible characters'],
    ['pipe --overflow explode', 'watchmux pipe: --overflow takes one of'],
    ['pipe --overflow __proto__', 'watchmux pipe: --overflow takes one of'],
    ['pipe --drain soon', 'watchmux pipe: --drain takes'],
    ['pipe --drain 1e9', 'watchmux pipe: --drain takes'],
    ['pipe file', 'watchmux pipe: unexpected argument "file"'],
    ['watch', 'watchmux watch: missing URL'],
    ['watch h --transport carrier', 'watchmux watch: --transport takes one of http, sse, websocket'],
    ['watch h --resume', 'watchmux watch: --resume needs a value'],
    ['watch h --resume=', 'watchmux watch: --resume takes the resourceVersion of an event, not ""'],
    ['watch a b', 'watchmux watch: unexpected argument "b"'],
    ['watch ftp://x', 'watchmux watch: not an HTTP URL'],
    ['watch http://', 'watchmux watch: not an HTTP URL'],
    ['watch http://u:%zz@h:1/', 'watchmux watch: "http://h:1/": expected %25 for % in the user and the password'],
    ['watch ws://%@h', 'watchmux watch: "http://h": expected %25 for %'],
    ['watch http://u:secret@h:99999', 'watchmux watch: not an HTTP URL: "http://h:99999"'],
    ['watch ftp://u:secret@h', 'watchmux watch: not an HTTP URL: "ftp://h"'],
    ['demo a b', 'watchmux demo: unexpected argument "b"'],
    ['new', 'watchmux new: expected "operator" and a name, for example: watchmux new operator website-operator'],
    ['new operator', 'watchmux new: expected "operator" and a name'],
    ['new controller x', 'watchmux new: cannot start "controller": expected "operator"'],
    ['new operator a b', 'watchmux new: unexpected argument "b": new operator takes one name'],
    ['new operator A', 'watchmux new: NAME is "A": expected at most 63 characters of a-z, 0-9 and -'],
    ['new operator ../a', 'watchmux new: NAME is "../a": expected at most 63'],
    ['new operator 1a', 'watchmux new: NAME is "1a": expected'],
    ['new operator a-', 'watchmux new: NAME is "a-": expected'],
    [`new operator ${'a'.repeat(64)}`, 'watchmux new: NAME is "aaa'],
    ['new operator yaml', 'watchmux new: NAME is "yaml", a package that the project needs: choose another name'],
    [
      'new operator a --group example',
      'watchmux new: --group takes a domain name in lower case with a dot in it, such as example.com, not "example"',
    ],
    ['new operator a --group Example.com', 'watchmux new: --group takes a domain name in lower case'],
    ['new operator a --group a..b', 'watchmux new: --group takes a domain name'],
    ['new operator a --group=', 'watchmux new: --group takes a domain name'],
    [
      'new operator a --group apps.k8s.io',
      'watchmux new: --group takes a domain of your own, outside k8s.io and kubernetes.io, not',
    ],
    [
      'new operator a --kind website',
      'watchmux new: --kind takes at most 59 letters and digits, beginning with a capital letter, such as Website, not "website"',
    ],
    ['new operator a --kind Web-Site', 'watchmux new: --kind takes at most 59'],
    ['new operator a --group 1.5', 'watchmux new: --group takes a domain name'],
    ['new operator a --group 1.e3', 'watchmux new: --group takes a domain name'],
    [
      `new operator a --group ${'abc.'.repeat(62)}abcd`,
      'watchmux new: --group takes at most 253 characters together with "as.", not 255',
    ],
    ['new operator true', 'watchmux new: NAME is "true", which YAML does not read as text: choose another name'],
    ['new operator on --kind Web', 'watchmux new: NAME is "on", which YAML does not read as text'],
    ['new operator a --kind On', 'watchmux new: --kind takes a name that YAML reads as text (and its plural, too), not "On"'],
    ['new operator a --kind Thi', 'watchmux new: --kind takes a name whose plural can name a constant, which "this" cannot'],
    [
      'new operator a --kind Condition',
      'watchmux new: --kind takes a name that the project does not already import, not "Condition"',
    ],
    ['demo --seconds forever', 'watchmux demo: --seconds takes'],
  ])('"%s" is refused in one line', (line, message) => {
    const refusal = (): unknown => parseCommand(words(line));
    expect(refusal).toThrow(UsageError);
    expect(refusal).toThrow(message);
    expect(refusal).not.toThrow(/\n/);
  });

  test('does not echo control characters', () => {
    expect(() => parseCommand(['\u001b[31mred'])).toThrow('".[31mred"');
  });
});

describe('lines', () => {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
  const text = ({ number, bytes }: InputLine): string =>
    `${number}:${bytes === undefined ? 'too long' : new TextDecoder().decode(bytes)}`;

  function read(input: string, options: { raw?: boolean; size: number; maxLineBytes?: number }): string[] {
    const lines = new InputLines({ raw: false, maxLineBytes: 1_000, ...options });
    const all = bytes(input);
    const found: string[] = [];
    for (let at = 0; at < all.length; at += options.size)
      found.push(...Array.from(lines.push(all.slice(at, at + options.size)), text));
    return [...found, ...Array.from(lines.end(), text)];
  }

  test.each([1, 2, 3, 5, 100])('are numbered as in an editor, in chunks of %i', (size) => {
    expect(read('a\n\n  \nb\r\nnaïve ✓\nlast', { size })).toEqual(['1:a', '4:b', '5:naïve ✓', '6:last']);
    expect(read('a\n\nb\n', { size, raw: true })).toEqual(['1:a', '2:', '3:b']);
    expect(read('', { size, raw: true })).toEqual([]);
    expect(read('\ufeffa\nb', { size })).toEqual(['1:a', '2:b']);
  });

  test.each([1, 2, 3, 4, 7, 100])('that are too long are reported once, with their number, in chunks of %i', (size) => {
    const input = 'ok\n123456\n12345\n1234567890123\nend 1234567890';
    expect(read(input, { size, maxLineBytes: 5 })).toEqual(['1:ok', '2:too long', '3:12345', '4:too long', '5:too long']);
    expect(read(input, { size, maxLineBytes: 5, raw: true })).toEqual([
      '1:ok',
      '2:too long',
      '3:12345',
      '4:too long',
      '5:too long',
    ]);
  });

  const reading = (input: string | Uint8Array, raw: boolean = false): unknown =>
    readLine({ number: 1, bytes: typeof input === 'string' ? bytes(input) : input }, { raw });

  test('that are events pass unchanged', () => {
    const line = '{"type":"X", "object":{"n":12345678901234567890}, "more":1}';
    expect(reading(line)).toMatchObject({ event: { type: 'X' }, json: line });
  });

  test.each([
    '42',
    'null',
    '"text"',
    '[1,2]',
    '{}',
    '{"type":"X"}',
    '{"type":1,"object":2}',
    '{"object":2}',
    '{"type":"","object":2}',
  ])('%s, which is not an event, becomes an ADDED event', (line) => {
    expect(reading(line)).toEqual({
      event: { type: 'ADDED', object: JSON.parse(line) },
      json: `{"type":"ADDED","object":${line}}`,
    });
  });

  test('keep the stream intact: a CR between tokens would end the line in SSE', () => {
    expect(reading('{"type":"X",\r"object":1.0}')).toMatchObject({ json: '{"type":"X", "object":1.0}' });
    expect(reading('[1.0,\r2]')).toMatchObject({ json: '{"type":"ADDED","object":[1.0, 2]}' });
    expect(reading('"a\rb"')).toEqual({ fault: 'not JSON: "a.b"' });
  });

  test('may be nested more deeply than JSON.stringify allows, but not more deeply than a client reads', () => {
    const rest = `${'['.repeat(9_998)}${']'.repeat(9_999)}`;
    expect(reading(`[\r${rest}`)).toMatchObject({ json: `{"type":"ADDED","object":[ ${rest}}` });
    const event = (levels: number): string => `{"type":"X","object":${'['.repeat(levels)}${']'.repeat(levels)}}`;
    expect(reading(event(9_999))).toMatchObject({ json: event(9_999) });
    expect(reading(event(10_000))).toEqual({ fault: expect.stringContaining('nested deeper than 10000 levels: {"type"') });
    // It would become an object of an event, which is one level more.
    const value = `${'['.repeat(10_000)}${']'.repeat(10_000)}`;
    expect(reading(value)).toEqual({ fault: expect.stringContaining('nested deeper than 10000 levels: [[[') });
  });

  test('that are not JSON say what is wrong', () => {
    expect(reading('{"a":')).toEqual({ fault: 'not JSON: {"a":' });
    expect(reading(`\u001b[2J${'x'.repeat(200)}`)).toEqual({ fault: `not JSON: .[2J${'x'.repeat(76)}...` });
    expect(reading(new Uint8Array([0x22, 0xff, 0x22]))).toEqual({ fault: 'not UTF-8: "\ufffd"' });
    expect(readLine({ number: 1, bytes: undefined }, { raw: false })).toEqual({
      fault: 'longer than the limit of 16777216 bytes',
    });
  });

  test('are strings with raw, whatever stands in them', () => {
    expect(reading('{"a":', true)).toEqual({
      event: { type: 'ADDED', object: '{"a":' },
      json: '{"type":"ADDED","object":"{\\"a\\":"}',
    });
    expect(reading(new Uint8Array([0xff]), true)).toEqual({
      event: { type: 'ADDED', object: '\ufffd' },
      json: '{"type":"ADDED","object":"\ufffd"}',
      replaced: true,
    });
  });
});

test('the command line begins without any of its commands: an API server takes long to load', () => {
  const loaded = new Set<string>();
  const load = (file: string): void => {
    if (loaded.has(file)) return;
    loaded.add(file);
    const text = readFileSync(file, 'utf8');
    for (const [, path = ''] of text.matchAll(/^(?:import|export) (?!type )[^;]*? from '(\.[^']+\.ts)';$/gm))
      load(join(dirname(file), path));
  };
  load(fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url)));
  expect([...loaded].some((file) => file.endsWith('/serve-args.ts'))).toBe(true);
  expect(
    [...loaded].filter((file) => /\/src\/(apiserver|broadcast|nats|pages\/(pipe|serve)|storage)\/|\/hub\/hub\.ts$/.test(file)),
  ).toEqual([]);
});
