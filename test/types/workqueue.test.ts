import { describe, expect, it } from 'vitest';
import type { FieldSelector, LabelSelector, ParseOptions, SelectionPredicateOptions } from '../../src/selectors/index.ts';
import {
  LabelSelector as Labels,
  type parseFieldSelector,
  parseLabelSelector,
  Requirement,
  SelectionPredicate,
} from '../../src/selectors/index.ts';
import type { QueueHistory } from '../../src/testing/index.ts';
import { checkSerial } from '../../src/testing/index.ts';
import type {
  AddOptions,
  ParallelizeOptions,
  RateLimiter,
  RunOptions,
  Work,
  WorkQueueMetric,
  WorkQueueMetricName,
  WorkQueueOptions,
} from '../../src/workqueue/index.ts';
import { bucket, defaultRateLimiter, exponential, maxOf, WorkQueue } from '../../src/workqueue/index.ts';
import { type Assignable, claim, compiles, type Equal } from './assert.ts';

type Unsaid<Options> = { readonly [Name in keyof Options]-?: undefined };
type Lax<Options> = Assignable<Unsaid<Options>, Options>;

function queues(): void {
  const queue = new WorkQueue<string>({ rateLimiter: maxOf(exponential({ baseMs: 1 }), bucket({ perSecond: 1, burst: 1 })) });
  queue.add('a', { priority: 1 });
  // @ts-expect-error keys are strings
  queue.add(1);
  // @ts-expect-error a delay has a number of milliseconds
  queue.addAfter('a', '5');
  // @ts-expect-error there is no such option
  queue.add('a', { prio: 1 });
  // @ts-expect-error there is no such option
  new WorkQueue({ limiter: defaultRateLimiter() });
  // @ts-expect-error the size is read
  queue.size = 1;
  claim<Equal<ReturnType<typeof queue.get>, Promise<string | undefined>>>();
  claim<Equal<ReturnType<typeof queue.drain>, Promise<void>>>();
  claim<Assignable<typeof queue, AsyncIterable<string>>>();
  void queue.run(4, async (key, { signal, attempt }) => {
    claim<Equal<typeof key, string>>();
    claim<Equal<typeof signal, AbortSignal>>();
    claim<Equal<typeof attempt, number>>();
  });
  void queue.run(1, (key) => key.length, {
    signal: undefined,
    onError: (error, { key, willRetry }) => {
      claim<Equal<typeof error, unknown>>();
      claim<Equal<typeof key, string>>();
      claim<Equal<typeof willRetry, boolean>>();
    },
  }); // prettier-ignore
  // @ts-expect-error the work gets strings
  void queue.run(1, (key: number) => key);
  new WorkQueue<{ name: string }>({ keyOf: ({ name }) => name });
  const own: RateLimiter = { when: (key: unknown) => String(key).length, forget() {}, requeues: () => 0 };
  void own;
}

function options(): void {
  claim<Lax<WorkQueueOptions<string>>>();
  claim<Lax<AddOptions>>();
  claim<Lax<RunOptions<string>>>();
  claim<Lax<Parameters<typeof exponential>[0] & object>>();
  claim<Lax<Parameters<typeof bucket>[0] & object>>();
  claim<Lax<Parameters<typeof defaultRateLimiter>[0] & object>>();
  claim<Lax<ParseOptions>>();
  claim<Lax<SelectionPredicateOptions<string>>>();
  claim<Lax<Omit<ParallelizeOptions, 'workers'>>>();
  claim<Equal<WorkQueueMetric['name'], WorkQueueMetricName>>();
  claim<Assignable<(key: string) => Promise<void>, Work<string>>>();
}

function selectors(): void {
  claim<Equal<ReturnType<typeof parseLabelSelector>, LabelSelector>>();
  claim<Equal<ReturnType<typeof parseFieldSelector>, FieldSelector>>();
  const exact: string | undefined = parseLabelSelector('a').requiresExactMatch('a');
  // @ts-expect-error labels are strings
  parseLabelSelector('a').matches({ a: 1 });
  // @ts-expect-error there is no such operator
  new Requirement('a', 'In', ['b']);
  // @ts-expect-error a selector does not change
  parseLabelSelector('a').requirements.push(new Requirement('a', '!'));
  Labels.fromObject({ matchExpressions: [{ key: 'a', operator: 'In', values: ['b'] }] });
  new SelectionPredicate<{ on: boolean }>({ attributesOf: ({ on }) => ({ fields: { on: String(on) } }) });
  checkSerial<number>({ steps: [{ step: 'add', key: 1 }, { step: 'shutdown' }] } satisfies QueueHistory<number>);
  // @ts-expect-error a step of this kind has a key
  checkSerial<number>({ steps: [{ step: 'add' }] });
  void exact;
}

describe('the types of the work queue and of selectors', () => {
  it('take what is right, and refuse what is wrong', () => {
    expect(compiles(queues, options, selectors)).toBe(3);
  });
});
