import { checkSteps, type Finding, type StepNames, type Violation, violation } from './history.ts';

/** One thing that happened to the work that clients ask for, in the order in which it was seen. */
export type WorkStep =
  /** A client asked for work, or has more to do of what it asked for: it waits. */
  | { readonly step: 'ask'; readonly client: string }
  /** A piece was begun. */
  | { readonly step: 'begin'; readonly client: string }
  /** The piece that was begun has ended, after this many milliseconds. */
  | { readonly step: 'end'; readonly client: string; readonly ms: number }
  /** Nothing is being done, and nothing should be left to do. */
  | { readonly step: 'idle' };

/** What happened to the work of several clients. */
export interface WorkHistory {
  readonly steps: readonly WorkStep[];
}

interface ClientRecord {
  waiting: number;
  working: boolean;
  longestMs: number;
  /** Since it has had something to do: the step, and how long it and the others have been worked for. */
  since: number;
  ownMs: number;
  readonly othersMs: Map<string, number>;
}

/** For the inaccuracy of clocks, and the least that a piece counts for. */
const TOLERANCE_MS = 1;

const STEPS: StepNames<WorkStep> = { ask: true, begin: true, end: true, idle: true };

/**
 * **Fair**: while a client has something to do, no other client is worked for longer than it is, except for one piece of each.
 * Two pieces at once, a piece that nobody asked for, and work that is left when the history says `idle` are also violations.
 */
export function checkFair({ steps }: WorkHistory): Violation | undefined {
  checkSteps(steps, STEPS);
  const clients = new Map<string, ClientRecord>();
  let working: string | undefined;
  for (const [at, each] of steps.entries()) {
    if (each.step === 'idle') {
      const left = [...clients].find(([, { waiting }]) => waiting > 0);
      if (left)
        return violation('Fair', { watcher: left[0], expected: 'nothing left to do', seen: `${left[1].waiting} waiting` });
      continue;
    }
    const { client } = each;
    const known = clients.get(client) ?? {
      ...{ waiting: 0, working: false, longestMs: 0, since: at, ownMs: 0, othersMs: new Map<string, number>() },
    };
    clients.set(client, known);
    if (each.step === 'ask') ask(known, at);
    else if (each.step === 'begin') {
      const wrong = begin(known, working);
      if (wrong) return violation('Fair', { watcher: client, ...wrong });
      working = client;
    } else {
      working = undefined;
      end(known, each.ms);
      const passed = passedOver(clients, client, each.ms);
      if (passed) return passed;
    }
  }
  return undefined;
}

function ask(known: ClientRecord, at: number): void {
  if (known.waiting === 0 && !known.working) {
    known.since = at;
    known.ownMs = 0;
    known.othersMs.clear();
  }
  known.waiting++;
}

function begin(known: ClientRecord, working: string | undefined): Finding | undefined {
  if (working !== undefined) return { expected: 'one piece at a time', seen: `it begun during one of ${working}` };
  if (known.waiting === 0) return { expected: 'a piece that was asked for', seen: 'one more' };
  known.waiting--;
  known.working = true;
  return undefined;
}

function end(known: ClientRecord, ms: number): void {
  known.working = false;
  known.ownMs += ms;
  known.longestMs = Math.max(known.longestMs, ms);
}

/** A client's piece has ended: no waiting client may have had less by more than a piece of each. */
function passedOver(clients: ReadonlyMap<string, ClientRecord>, by: string, ms: number): Violation | undefined {
  const longestMs = (clients.get(by) as ClientRecord).longestMs;
  for (const [client, known] of clients) {
    if (client === by || known.waiting === 0) continue;
    const othersMs = (known.othersMs.get(by) ?? 0) + ms;
    known.othersMs.set(by, othersMs);
    const mostMs = known.ownMs + known.longestMs + longestMs + TOLERANCE_MS;
    if (othersMs <= mostMs) continue;
    const expected = `at most ${mostMs} ms of ${by} since step ${known.since}`;
    return violation('Fair', { watcher: client, expected, seen: `${othersMs} ms` });
  }
  return undefined;
}
