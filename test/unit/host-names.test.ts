// The names under which a server on the loopback address may be asked: a page could have mapped any other to that address.
import type { IncomingMessage, Server } from 'node:http';
import { describe, expect, test } from 'vitest';
import { isMeant, isSame } from '../../src/cli/server/server.ts';

const at = (address: string): Server => ({ address: () => ({ address, port: 1, family: '' }) }) as unknown as Server;
const asking = (host: string | undefined): IncomingMessage => ({ headers: { host } }) as IncomingMessage;
const local = { server: at('127.0.0.1'), host: 'Own-Name' };

describe('a server that only this machine can reach', () => {
  test.each([
    ...['localhost', 'localhost:80', 'LOCALHOST:65535', 'a.localhost', 'a-b.c.localhost:1', 'own-name', 'OWN-NAME:1'],
    ...['127.0.0.1', '127.0.0.1:1', '10.0.0.1', '[::1]', '[::1]:1', '[::ffff:127.0.0.1]:1', undefined],
  ])('is meant by the header Host %j', (host) => expect(isMeant(asking(host), local)).toBe(true));

  test.each([
    ...['evil.example', 'evil.example:80', 'localhost.evil.example', '127.0.0.1.evil.example', 'evillocalhost', ''],
    ...['evil.example/.localhost', 'evil.example\\.localhost', 'evil.example?.localhost', 'evil.example#.localhost'],
    ...[
      'evil.example@localhost',
      'localhost@evil.example',
      'evil.example:80/.localhost',
      'evil.example .localhost',
      'evil.example,localhost',
    ],
    ...[
      'localhost:80:80',
      'localhost/',
      'localhost:x',
      '[evil.example].localhost',
      '[localhost]',
      '::1',
      '[::1',
      '[::1]x',
      '%.localhost',
    ],
    ...['evil.example\t.localhost', 'évil.localhost'],
  ])('is not meant by %j', (host) => {
    expect(isMeant(asking(host), local)).toBe(false);
    expect(isSame(`http://${host}`, asking(host), local)).toBe(false);
  });
});

test('a server that others can reach has names that it does not know', () => {
  expect(isMeant(asking('anything.example'), { server: at('10.0.0.1'), host: '0.0.0.0' })).toBe(true);
});
