// Delivery under jitter, shortened; see bench/bridge/jitter. Server and clients are separate processes, sockets break without a
// close, and every client reconnects by itself. No time is measured.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { bundle } from '../../bench/bridge/jitter/bundle.mjs';
import { numbersFrom } from '../../bench/bridge/jitter/client.ts';
import { DeliveryChecker, sumOf } from '../../bench/bridge/jitter/delivery-checker.ts';
import { endAll } from '../../bench/bridge/jitter/peer.ts';
import type { Outcome, Profile, Scripts } from '../../bench/bridge/jitter/profile.ts';
import { faultsOf, runProfile } from '../../bench/bridge/jitter/profile.ts';
import { toStatus } from '../../src/watch/event.ts';

const TRANSPORTS = ['websocket', 'sse', 'http'] as const;

let scripts: Scripts = { server: '', load: '' };
let remove = (): void => {};

beforeAll(async () => {
  const bundled = await bundle();
  scripts = { server: join(bundled.outDir, 'server.js'), load: join(bundled.outDir, 'load.js') };
  remove = bundled.remove;
});

afterAll(() => {
  endAll();
  remove();
});

const SHORT: Profile = {
  transports: TRANSPORTS,
  clients: 120,
  broadcasts: 40,
  perSecond: 20,
  eventBytes: 270,
  cutEveryMs: 500,
  offlineMs: 100,
  minMs: 20,
  maxMs: 100,
  loads: 1,
  seed: 7,
  weighs: false,
};

describe('clients that are cut again and again, over every transport', () => {
  test.concurrent('each gets every event once, in order', async () => {
    const outcome = await runProfile(SHORT, scripts);
    expect(faultsOf(outcome)).toEqual([]);
    for (const transport of TRANSPORTS) {
      expect(outcome.byTransport[transport]?.delivered).toBe(outcome.expected / TRANSPORTS.length);
    }
    expect(outcome.resumes).toBeGreaterThan(0);
  });

  test.concurrent('with a window that is too small, a late client gets one 410, and nothing is lost silently', async () => {
    const outcome = await runProfile({ ...SHORT, replayItems: 3 }, scripts);
    expect(faultsOf(outcome)).toEqual([]);
    for (const transport of TRANSPORTS) {
      expect(outcome.byTransport[transport]).toMatchObject({ silent: 0, repeated: 0, duplicates: 0 });
      expect(outcome.byTransport[transport]?.expired).toBeGreaterThan(0);
      expect(outcome.byTransport[transport]?.told).toBeGreaterThan(0);
    }
  });
});

describe('the judgement of what a client gets', () => {
  const gone = toStatus({ code: 410, reason: 'Expired', message: 'too old' });
  const heard = (...row: (number | '410' | 'again' | 'blind' | '500')[]): DeliveryChecker => {
    const checker = new DeliveryChecker();
    for (const one of row) {
      if (typeof one === 'number') checker.take(one);
      else if (one === 'blind') checker.refused({ ...gone, message: 'cut; no version' });
      else if (one === 'again') checker.refused({ ...gone, message: 'this one is too old, too' });
      else checker.refused({ ...gone, code: Number(one) });
    }
    return checker;
  };

  test.each([
    ['all of it', [1, 2, 3], { delivered: 3, told: 0, silent: 0 }],
    ['a gap behind a 410', [1, '410', 4], { delivered: 2, told: 2, silent: 0, expired: 1 }],
    ['a gap behind a second one that knew no version', [1, '410', 'blind', 4], { told: 2, expired: 1, blind: 1, repeated: 0 }],
    [
      'a gap behind a refusal, and one of the version that came then',
      [1, '410', 'again', 4],
      { told: 2, expired: 2, repeated: 0 },
    ],
    ['a gap', [1, 3], { delivered: 2, silent: 1 }],
    ['a gap at the beginning', [2], { delivered: 1, silent: 1 }],
    ['a gap behind a 410 that stood elsewhere', [1, '410', 2, 4], { told: 0, silent: 1 }],
    ['one twice', [1, 2, 2], { delivered: 2, duplicates: 1 }],
    ['an older one', [1, 3, 2], { delivered: 3, outOfOrder: 1 }],
    ['the same refusal twice', [1, '410', '410', 4], { repeated: 1 }],
    ['another ERROR', ['500'], { failures: ['500 too old'] }],
  ] as const)('%s', (_what, row, expected) => {
    expect(heard(...row)).toMatchObject(expected);
  });

  const outcome = (row: DeliveryChecker, more: Partial<Outcome> = {}): Outcome => ({
    profile: SHORT,
    expected: 3,
    received: sumOf([row]),
    byTransport: {},
    latencies: new Float64Array(0),
    cuts: 1,
    reconnects: 1,
    resumes: 1,
    refused: 0,
    left: 0,
    memory: [],
    ...more,
  });
  const small = { profile: { ...SHORT, replayItems: 1 } };

  test.each<[string, Outcome, string | undefined]>([
    ['all', outcome(heard(1, 2, 3)), undefined],
    ['a gap', outcome(heard(1, 3)), 'nothing says so'],
    ['the last one missing', outcome(heard(1, 2)), 'is not 3'],
    ['one twice', outcome(heard(1, 2, 2, 3)), 'twice'],
    ['two swapped', outcome(heard(1, 3, 2)), 'out of order'],
    ['a 410 where none is due', outcome(heard(1, '410', 3), { refused: 1 }), 'missed something'],
    ['the same where it is', outcome(heard(1, '410', 3), { refused: 1, ...small }), undefined],
    ['a 410 that nobody said', outcome(heard(1, '410', 3), small), 'were heard, and 0 said'],
    ['no 410 where one is due', outcome(heard(1, 2, 3), small), 'nobody was ever too late'],
    ['two 410s for one version', outcome(heard(1, '410', '410', 3), { refused: 2, ...small }), 'refused twice'],
    ['another ERROR', outcome(heard(1, 2, '500', 3)), '500'],
    ['no cut at all', outcome(heard(1, 2, 3), { cuts: 0 }), 'ever cut'],
    ['sessions left behind', outcome(heard(1, 2, 3), { left: 2 }), 'holds 2'],
  ])('%s', (_what, seen, fault) => {
    if (fault === undefined) expect(faultsOf(seen)).toEqual([]);
    else expect(faultsOf(seen).join('; ')).toContain(fault);
  });

  test('uses the same random numbers for the same seed', () => {
    const row = (seed: number): number[] => Array.from({ length: 100 }, numbersFrom(seed));
    expect(row(7)).toEqual(row(7));
    expect(row(7)).not.toEqual(row(8));
    expect(row(7).every((one) => one >= 0 && one < 1)).toBe(true);
    expect(new Set(row(7)).size).toBe(100);
  });
});
