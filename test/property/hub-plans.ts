// What is drawn for the property test of options that meet: a hub, its clients, and what happens to them.
import fc from 'fast-check';
import type { ClientOverflow } from '../../src/bridge/client/client-options.ts';
import { CLIENT_POLICIES } from '../../src/bridge/client/connect.ts';
import { OVERFLOWS } from '../../src/watch/overflow.ts';
import { KINDS } from '../unit/client-network.ts';
import { NAMES } from './copies.ts';
import type { Cut } from './wires.ts';

/** More than there ever is. */
export const EVERYTHING = 1_000;

const overflow = fc.constantFrom(...OVERFLOWS, 'coalesce' as const, 'disconnect' as const);
const hubs = fc.record({
  overflow,
  capacity: fc.constantFrom(1, 2, 5, 100),
  maxQueuedBytes: fc.constantFrom(undefined, undefined, 150, 1_000),
  replayItems: fc.constantFrom(0, 2, 5, EVERYTHING, EVERYTHING, EVERYTHING),
  replayBytes: fc.constantFrom(undefined, undefined, 400),
  snapshot: fc.constantFrom('none', 'at once', 'later', 'by object', 'fails', 'is stuck', 'is too large'),
  maxSnapshots: fc.integer({ min: 1, max: 3 }),
  flushIntervalMs: fc.constantFrom(0, 0, 250),
  bookmarkIntervalMs: fc.constantFrom(500, 30_000),
  maxConnectionAgeMs: fc.constantFrom(0, 20_000),
  hasTopics: fc.boolean(),
  hasOwnKey: fc.boolean(),
  hasSource: fc.boolean(),
  maxCatchUpItems: fc.constantFrom(undefined, 5),
  /** Whether new clients get what is kept. */
  replays: fc.boolean(),
  /** Whether there are places for all clients, and no more. */
  isFull: fc.boolean(),
  /** Whether there is another one on its stream, to which every other connection goes. */
  isPair: fc.boolean(),
  /** Whether it gets its events from a watch. */
  follows: fc.boolean(),
  /** Whether each event is published after the one before it, or all at once. */
  isPatient: fc.boolean(),
  /** Whether a client that comes or goes is an event itself. */
  tellsOfClients: fc.boolean(),
});
export type HubPlan = typeof hubs extends fc.Arbitrary<infer T> ? T : never;

const clients = fc.record({
  kind: fc.constantFrom(...KINDS, 'plain' as const, 'in process' as const),
  isCollection: fc.constantFrom(false, false, true),
  onExpired: fc.constantFrom('fail' as const, 'restart' as const),
  room: fc.constantFrom(1, 3, 100),
  maxBufferedBytes: fc.constantFrom(undefined, undefined, 100),
  bookmarks: fc.constantFrom(true, true, false),
  hasCodec: fc.boolean(),
  /** What it loses itself, besides what is lost for it. */
  loses: fc.constantFrom<ClientOverflow>('wait', 'wait', ...(Object.keys(CLIENT_POLICIES) as ClientOverflow[])),
  url: fc.constantFrom('text', 'text', 'later', 'fails'),
  query: fc.constantFrom('', '', '?allowWatchBookmarks=true', '?sendInitialEvents=true', '?timeoutSeconds=3'),
  filter: fc.constantFrom('none', 'none', 'visible', 'visible', 'fails', 'disconnects'),
  topics: fc.constantFrom<readonly string[] | undefined>(undefined, undefined, ['even'], ['even', 'odd']),
  overflow: fc.oneof(fc.constant(undefined), overflow),
  capacity: fc.constantFrom(undefined, undefined, 1, 4),
  maxQueuedBytes: fc.constantFrom(undefined, undefined, undefined, 150),
  /** Where it begins, if not now: it may have been elsewhere before. */
  after: fc.constantFrom(
    undefined,
    undefined,
    undefined,
    undefined,
    'x.5',
    'e1.99',
    'e1.0',
    'fake1~0.0',
    'fake1~zz.1',
    'fake1~zz.99',
  ),
  lastsMs: fc.constantFrom(undefined, undefined, 2_000, 15_000),
  hooks: fc.constantFrom('at once', 'later', 'fail'),
});
export type ClientPlan = typeof clients extends fc.Arbitrary<infer T> ? T : never;

const who = fc.nat(2);
const changes = fc.array(fc.tuple(fc.constantFrom(...NAMES), fc.boolean()), { minLength: 1, maxLength: 8 });
const count = fc.integer({ min: 1, max: 4 });
const how = fc.constantFrom<Cut>('break', 'break', 'end');
const steps = fc.array(
  fc.oneof(
    { weight: 9, arbitrary: fc.record({ op: fc.constant('change' as const), all: changes }) },
    {
      weight: 5,
      arbitrary: fc.record({ op: fc.constant('cut' as const), who, bytes: fc.oneof(fc.constant(0), fc.nat(600)), how }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ op: fc.constant('cut next' as const), who, bytes: fc.integer({ min: 1, max: 600 }), how }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('fault' as const, 'reset' as const) }) },
    { weight: 2, arbitrary: fc.record({ op: fc.constant('refuse' as const) }) },
    { weight: 6, arbitrary: fc.record({ op: fc.constantFrom('stall' as const, 'resume' as const), who }) },
    { weight: 6, arbitrary: fc.record({ op: fc.constant('read' as const), who, count }) },
    { weight: 4, arbitrary: fc.record({ op: fc.constant('pass' as const), ms: fc.constantFrom(300, 1_000, 6_000, 20_000) }) },
    {
      weight: 2,
      arbitrary: fc.record({ op: fc.constantFrom('continue' as const, 'reconnect' as const, 'disconnect' as const), who }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        op: fc.constantFrom('sever' as const, 'down' as const, 'up' as const, 'hold' as const, 'release' as const),
      }),
    },
    { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('trim' as const, 'lose' as const, 'recreate' as const), count }) },
    { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('crash' as const, 'leave' as const) }) },
  ),
  { minLength: 4, maxLength: 40 },
);
export const plans = fc.record({
  hub: hubs,
  clients: fc.array(clients, { minLength: 1, maxLength: 3 }),
  steps,
  /** Whether the stream ends, and not only its server goes; or whether what it follows fails. */
  ends: fc.constantFrom('no' as const, 'yes' as const, 'fails' as const),
});
export type Plan = typeof plans extends fc.Arbitrary<infer T> ? T : never;
