// The limits on the number of clients, in total and per address.
import { expect, test } from 'vitest';
import { ConnectionSlots, Reservation } from '../../src/bridge/hub/admission/connection-slots.ts';

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
