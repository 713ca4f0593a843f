// The limits on the number of clients, in total and per address.
import { expect, test } from 'vitest';
import { ConnectionSlots, networkOf, Reservation } from '../../src/bridge/hub/admission/connection-slots.ts';

test('a slot is returned once, by its holder: the reservation, or the client that has taken it over', () => {
  const slots = new ConnectionSlots({ maxClients: 1, maxClientsPerAddress: 9 });
  const reservation = slots.reserve('a') as Reservation;
  const full = { reason: 'full', message: '1 clients are connected, which is the limit' };
  reservation.keep();
  reservation.release();
  expect(slots.reserve('b')).toEqual(full);
  slots.release('a');
  const next = slots.reserve('b') as Reservation;
  expect(next).toBeInstanceOf(Reservation);
  next.release();
  next.release();
  slots.reserve('c');
  expect(slots.reserve('d')).toEqual(full);
});

test('an address without clients is forgotten', () => {
  const slots = new ConnectionSlots({ maxClients: 9, maxClientsPerAddress: 2 });
  const known = (slots as unknown as { byAddress: Map<string, number> }).byAddress;
  const reservations = ['a', 'a', 'b', ''].map((address) => slots.reserve(address) as Reservation);
  expect(known).toEqual(new Map(Object.entries({ a: 2, b: 1, '': 1 })));
  for (const reservation of reservations) reservation.release();
  expect(known.size).toBe(0);
});

test.each([
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:DB8:1:2::9', '2001:db8:1:2::/64'],
  ['2001:0db8:0001:0002::', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['2001:db8:1:2:3:4:10.0.0.1', '2001:db8:1:2::/64'],
  ['64:ff9b::10.0.0.1', '64:ff9b:0:0::/64'],
  // IPv4 on a socket for both, in both spellings.
  ['::ffff:10.0.0.1', '10.0.0.1'],
  ['::FFFF:0a00:1', '10.0.0.1'],
  ['10.0.0.1', '10.0.0.1'],
  // Hosts of private networks.
  ['fd00::1', 'fd00::1'],
  ['fe80::1%eth0', 'fe80::1%eth0'],
  ['2001:db8::1%eth0', '2001:db8:0:0::/64'],
  // No addresses.
  ...[
    '',
    'a',
    '[2001:db8::1]',
    '2001:db8::1::2',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7::8',
    'g::1',
    '12345::',
    'system:node',
  ].map((text): [string, string] => [text, text]),
])('the address %j counts as %j', (address, network) => expect(networkOf(address)).toBe(network));

test('the addresses of a network share its slots, and names are not taken for addresses', () => {
  const slots = new ConnectionSlots({ maxClients: 9, maxClientsPerAddress: 2 });
  expect(['2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8:1::1'].map((each) => slots.take(each)?.reason)).toEqual([
    ...[undefined, undefined, 'address', undefined],
  ]);
  slots.release('2001:db8::9');
  expect(slots.take('2001:db8::3')).toBeUndefined();
  const tenants = new ConnectionSlots({ maxClients: 9, maxClientsPerAddress: 1 }, String);
  expect(['2001:db8::1', '2001:db8::2'].map((each) => tenants.take(each))).toEqual([undefined, undefined]);
});
