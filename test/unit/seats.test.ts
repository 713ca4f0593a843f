// The limits on the number of clients, in total and per address.
import { expect, test } from 'vitest';
import { Seats, Ticket } from '../../src/bridge/hub/seats.ts';

test('a seat is returned once, by its holder: the ticket, or the client that has taken it over', () => {
  const seats = new Seats({ maxClients: 1, maxClientsPerAddress: 9 });
  const ticket = seats.take('a') as Ticket;
  const full = { reason: 'full', message: '1 clients are connected, which is the limit' };
  ticket.keep();
  ticket.release();
  expect(seats.take('b')).toEqual(full);
  seats.give('a');
  const next = seats.take('b') as Ticket;
  expect(next).toBeInstanceOf(Ticket);
  next.release();
  next.release();
  seats.take('c');
  expect(seats.take('d')).toEqual(full);
});

test('an address without clients is forgotten', () => {
  const seats = new Seats({ maxClients: 9, maxClientsPerAddress: 2 });
  const known = (seats as unknown as { byAddress: Map<string, number> }).byAddress;
  const tickets = ['a', 'a', 'b', ''].map((address) => seats.take(address) as Ticket);
  expect(known).toEqual(new Map(Object.entries({ a: 2, b: 1, '': 1 })));
  for (const ticket of tickets) ticket.release();
  expect(known.size).toBe(0);
});
