// The table of the reflector's machine: every input in every state.
import { describe, expect, test } from 'vitest';
import { type MachineInput, type MachineState, ReflectorMachine } from '../../src/cache/reflector/machine.ts';
import type { MachineSettings, ReflectorFailureKind } from '../../src/cache/reflector/reflector-options.ts';

const settings: MachineSettings = {
  ...{ minMs: 800, maxMs: 30_000, factor: 2, resetMs: 120_000, random: () => 0.5 },
  ...{ streamingList: true, consistentList: false, pageSize: undefined, internalErrorRetryMs: 0 },
};
const failed = (kind: ReflectorFailureKind, ranMs: number = 0) => ({ kind, error: new Error(kind), ranMs });

/** One input of each type. */
const INPUTS: { readonly [Type in MachineInput['type']]: Extract<MachineInput, { type: Type }> } = {
  start: { type: 'start' },
  opened: { type: 'opened' },
  listed: { type: 'listed', paged: false },
  event: { type: 'event', resourceVersion: '8' },
  bookmark: { type: 'bookmark', resourceVersion: '8' },
  initialEnd: { type: 'initialEnd', resourceVersion: '8' },
  stored: { type: 'stored', resourceVersion: '8' },
  replaced: { type: 'replaced', resourceVersion: '7' },
  storeFailed: { type: 'storeFailed', ...failed('store') },
  refused: { type: 'refused', ...failed('other') },
  error: { type: 'error', ...failed('other') },
  silent: { type: 'silent', ...failed('silent') },
  ended: { type: 'ended', ranMs: 5_000, empty: false },
  due: { type: 'due' },
  refresh: { type: 'refresh' },
  stop: { type: 'stop' },
};

/** How to get into each state. */
const PATHS: { readonly [In in MachineState]: readonly MachineInput[] } = {
  idle: [],
  streaming: [INPUTS.start],
  listing: [INPUTS.start, INPUTS.refused],
  watching: [INPUTS.start, INPUTS.opened, INPUTS.initialEnd, INPUTS.replaced],
  checking: [
    ...[INPUTS.start, INPUTS.opened, INPUTS.initialEnd, INPUTS.replaced],
    ...[{ type: 'refused', ...failed('unreachable') } as const, INPUTS.due],
  ],
  waiting: [INPUTS.start, { type: 'refused', ...failed('throttled') }],
  stopped: [INPUTS.stop],
};

/** What each cell leads to: the next state, and the action. No cell: an input that the state cannot have. */
const CELLS: { readonly [In in MachineState]: Partial<Record<MachineInput['type'], string>> } = {
  idle: { start: 'streaming stream', stop: 'stopped end' },
  streaming: {
    opened: 'streaming read',
    event: 'streaming collect',
    bookmark: 'streaming read',
    initialEnd: 'streaming replace',
    stored: 'streaming read',
    replaced: 'watching read',
    storeFailed: 'waiting wait',
    refused: 'listing list',
    error: 'listing list',
    silent: 'listing list',
    ended: 'waiting wait',
    refresh: 'streaming stream',
    stop: 'stopped end',
  },
  listing: {
    listed: 'listing replace',
    replaced: 'watching watch',
    storeFailed: 'waiting wait',
    refused: 'waiting wait',
    refresh: 'streaming stream',
    stop: 'stopped end',
  },
  watching: {
    opened: 'watching read',
    event: 'watching apply',
    bookmark: 'watching apply',
    initialEnd: 'watching apply',
    stored: 'watching read',
    storeFailed: 'waiting wait',
    refused: 'waiting wait',
    error: 'waiting wait',
    silent: 'waiting wait',
    ended: 'waiting wait',
    refresh: 'streaming stream',
    stop: 'stopped end',
  },
  checking: { listed: 'watching watch', refused: 'waiting wait', refresh: 'streaming stream', stop: 'stopped end' },
  waiting: { due: 'streaming stream', refresh: 'streaming stream', stop: 'stopped end' },
  stopped: Object.fromEntries(Object.keys(INPUTS).map((type) => [type, 'stopped end'])),
};

function machineIn(state: MachineState, given: Partial<MachineSettings> = {}): ReflectorMachine {
  const machine = new ReflectorMachine({ ...settings, ...given });
  for (const input of PATHS[state]) machine.take(input, 0);
  expect(machine.state).toBe(state);
  return machine;
}

describe.each(Object.keys(PATHS) as MachineState[])('in state %s', (state) => {
  test.each(Object.keys(INPUTS) as MachineInput['type'][])('%s', (type) => {
    const machine = machineIn(state);
    const take = (): string => {
      const { action } = machine.take(INPUTS[type], 0);
      return `${machine.state} ${action.do}`;
    };
    const expected = CELLS[state][type];
    if (expected === undefined) expect(take).toThrow('its state cannot have');
    else expect(take()).toBe(expected);
  });
});

test.each([
  ['idle', 'waiting'],
  ['streaming', 'listing'],
  ['listing', 'listing'],
  ['watching', 'watching'],
  ['checking', 'watching'],
  ['waiting', 'waiting'],
  ['stopped', 'stopped'],
] as const)('the state %s is the phase %s', (state, phase) => {
  expect(machineIn(state).phase).toBe(phase);
});

test.each(['event', 'bookmark', 'initialEnd'] as const)(
  'a watch whose %s goes back: the newest state, whatever version it has',
  (type) => {
    const machine = machineIn('watching');
    const { action, failure } = machine.take({ type, resourceVersion: '6' }, 0);
    expect([machine.state, action, failure?.kind]).toEqual(['streaming', { do: 'stream', resourceVersion: '' }, 'expired']);
    for (const input of [
      INPUTS.opened,
      { ...INPUTS.initialEnd, resourceVersion: '5' },
      { ...INPUTS.replaced, resourceVersion: '5' },
    ]) {
      machine.take(input as MachineInput, 0);
    }
    expect([machine.state, machine.resourceVersion]).toEqual(['watching', '5']);
  },
);

describe('a watch that was refused, or has delivered an ERROR', () => {
  const waitThenWatch = ['wait', 'watch 7'];
  const waitThenCheck = ['wait', 'check 7'];
  const waitThenBegin = ['wait', 'stream 7'];
  const cases: readonly (readonly [ReflectorFailureKind, 'refused' | 'error', readonly string[]])[] = [
    ['throttled', 'refused', waitThenWatch],
    ['unreachable', 'refused', waitThenCheck],
    ['expired', 'refused', ['stream 7']],
    ['internal', 'refused', waitThenBegin],
    ['denied', 'refused', waitThenBegin],
    ['other', 'refused', waitThenBegin],
    ['throttled', 'error', waitThenWatch],
    ['unreachable', 'error', waitThenCheck],
    ['expired', 'error', ['stream 7']],
    ['internal', 'error', waitThenBegin],
    ['denied', 'error', waitThenBegin],
    ['other', 'error', waitThenBegin],
  ];
  test.each(cases)('%s as %s: %j', (kind, type, expected) => {
    const machine = machineIn('watching');
    const did: string[] = [];
    let input: MachineInput = { type, ...failed(kind) };
    for (const _ of expected) {
      const { action } = machine.take(input, 0);
      did.push('resourceVersion' in action ? `${action.do} ${action.resourceVersion}` : action.do);
      input = INPUTS.due;
    }
    expect(did).toEqual(expected);
  });

  test('a second 410 in a row waits, and then asks for the newest state', () => {
    const machine = machineIn('watching');
    expect(machine.take({ type: 'error', ...failed('expired') }, 0).action).toEqual({ do: 'stream', resourceVersion: '7' });
    for (const type of ['opened', 'initialEnd', 'replaced'] as const) machine.take(INPUTS[type], 0);
    expect(machine.take({ type: 'error', ...failed('expired') }, 0).action).toEqual({ do: 'wait', delayMs: 1_600 + 800 });
    expect(machine.take(INPUTS.due, 0).action).toEqual({ do: 'stream', resourceVersion: '' });
  });
});

describe('a source that may be at an older version', () => {
  /** What follows a reason to ask, and the answers to the questions. */
  const follow = (input: MachineInput, ...answers: MachineInput[]): string[] => {
    const machine = machineIn('watching');
    const did: string[] = [];
    for (const each of [input, ...answers]) {
      let { action } = machine.take(each, 0);
      if (action.do === 'wait') ({ action } = machine.take(INPUTS.due, 0));
      did.push('resourceVersion' in action ? `${action.do} ${action.resourceVersion}` : action.do);
    }
    return did;
  };

  test.each<[MachineInput, boolean]>([
    [{ type: 'refused', ...failed('unreachable') }, true],
    [{ type: 'error', ...failed('unreachable') }, true],
    [{ type: 'silent', ...failed('silent') }, true],
    [{ type: 'ended', ranMs: 300_000, empty: true }, true],
    [{ type: 'ended', ranMs: 300_000, empty: false }, false],
    [{ type: 'refused', ...failed('throttled') }, false],
  ])('is asked after %j: %j', (input, isAsked) => {
    expect(follow(input)).toEqual([isAsked ? 'check 7' : 'watch 7']);
  });

  test('is asked until it has answered; then the watch begins, and the next one without a question', () => {
    const away = { type: 'refused', ...failed('unreachable') } as const;
    const busy = { type: 'refused', ...failed('throttled') } as const;
    expect(follow(away, away, busy, INPUTS.listed, busy, INPUTS.opened, INPUTS.ended)).toEqual([
      ...['check 7', 'check 7', 'check 7', 'watch 7', 'watch 7', 'read', 'watch 7'],
    ]);
  });

  test('has not reached it: the state that it has, and a watch from there, without a question', () => {
    const older = { type: 'refused', ...failed('expired') } as const;
    const end = { ...INPUTS.initialEnd, resourceVersion: '5' };
    expect(
      follow(INPUTS.silent, older, older, INPUTS.opened, end, { ...INPUTS.replaced, resourceVersion: '5' }, INPUTS.ended),
    ).toEqual([...['check 7', 'stream 7', 'stream ', 'read', 'replace', 'read', 'watch 5']]);
  });

  test('is not asked for a version that is no number', () => {
    const machine = machineIn('idle');
    for (const input of [INPUTS.start, INPUTS.opened, INPUTS.initialEnd, { ...INPUTS.replaced, resourceVersion: 'a-7' }])
      machine.take(input, 0);
    machine.take(INPUTS.silent, 0);
    expect(machine.take(INPUTS.due, 0).action).toEqual({ do: 'watch', resourceVersion: 'a-7' });
  });
});

test.each(['streaming', 'listing', 'watching', 'checking', 'waiting'] as const)(
  'a refresh in state %s asks for the newest state until the store has it',
  (state) => {
    const machine = machineIn(state);
    expect(machine.take(INPUTS.refresh, 0).action).toEqual({ do: 'stream', resourceVersion: '' });
    machine.take({ type: 'refused', ...failed('throttled') }, 0);
    expect(machine.take(INPUTS.due, 0).action).toEqual({ do: 'stream', resourceVersion: '' });
    for (const input of [INPUTS.opened, INPUTS.initialEnd, INPUTS.replaced] as const) machine.take(input, 0);
    machine.take({ type: 'refused', ...failed('other') }, 0);
    expect(machine.take(INPUTS.due, 0).action).toEqual({ do: 'stream', resourceVersion: '7' });
  },
);

test('that the newest state comes in pages does not mean that the source has no cache', () => {
  const machine = new ReflectorMachine({ ...settings, streamingList: false });
  machine.take(INPUTS.start, 0);
  machine.take(INPUTS.refresh, 0);
  machine.take({ type: 'listed', paged: true }, 0);
  machine.take(INPUTS.replaced, 0);
  machine.take({ type: 'refused', ...failed('other') }, 0);
  expect(machine.take(INPUTS.due, 0).action).toEqual({ do: 'list', resourceVersion: '7', pageSize: 0 });
});

describe('delays', () => {
  /** The delays after failures at these times. */
  const delays = (times: readonly number[], hintMs?: number): (number | undefined)[] => {
    const machine = machineIn('watching', { random: () => 0 });
    return times.map((nowMs) => {
      const { action } = machine.take({ type: 'refused', ...failed('throttled'), hintMs }, nowMs);
      machine.take(INPUTS.due, nowMs);
      return action.do === 'wait' ? action.delayMs : undefined;
    });
  };

  test('grow with each failure, up to a limit', () => {
    expect(delays([0, 0, 0, 0, 0, 0, 0, 0])).toEqual([800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000]);
  });

  test('FIX10.8: are not shorter than what the source asks for', () => {
    expect(delays([0, 0, 0], 2_000)).toEqual([2_000, 2_000, 3_200]);
    expect(delays([0], 1e9)).toEqual([300_000]);
  });

  test('FIX10.7: are short again when the source was well for long enough since the last failure', () => {
    const machine = machineIn('watching', { random: () => 0 });
    const failAt = (nowMs: number): unknown => {
      const { action } = machine.take({ type: 'refused', ...failed('throttled') }, nowMs);
      machine.take(INPUTS.due, nowMs);
      return 'delayMs' in action && action.delayMs;
    };
    const openedAt = (nowMs: number): unknown => machine.take(INPUTS.opened, nowMs);
    expect([failAt(0), failAt(200_000)]).toEqual([800, 1_600]); // two minutes of silence are no health
    openedAt(200_000);
    expect(failAt(319_999)).toBe(3_200);
    openedAt(320_000);
    expect(machine.failures).toBe(3);
    machine.take(INPUTS.stored, 440_000);
    expect([machine.failures, failAt(440_000)]).toEqual([0, 800]);
  });

  test('count the time that the attempt took', () => {
    const machine = machineIn('watching');
    const { action } = machine.take({ type: 'ended', ranMs: 300, empty: false }, 0);
    expect(action).toEqual({ do: 'wait', delayMs: 500 + 400 });
    machine.take(INPUTS.due, 0);
    expect(machine.take({ type: 'ended', ranMs: 300_000, empty: true }, 0).action).toEqual({ do: 'wait', delayMs: 400 });
    expect(machine.failures).toBe(0);
  });
});
