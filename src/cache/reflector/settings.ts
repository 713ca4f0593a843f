import { systemClock } from '../../watch/clock.ts';
import { callable, invalid, wholeNumber } from '../../watch/errors.ts';
import { checkOptions } from '../../watch/options.ts';
import { checkText, type KubernetesObject, keyOf } from '../object.ts';
import { MAX_TOTAL_LIST_BYTES } from '../pager.ts';
import type { MachineSettings } from './decisions.ts';
import type { ReflectorOptions, RetryOptions } from './options.ts';

/** The names of the options that a `Reflector` and a `RetryWatcher` have in common. */
export const RETRY_NAMES = ['minMs', 'maxMs', 'factor', 'random', 'clock'] as const;

/** The names of the options that a reflector and the informer around it have in common, besides {@link RETRY_NAMES}. */
export const REFLECTOR_NAMES = [
  'resetMs',
  'labelSelector',
  'fieldSelector',
  'streamingList',
  'pageSize',
  'maxObjects',
  'maxTotalListBytes',
  'minWatchTimeoutMs',
  'idleTimeoutMs',
  'internalErrorRetryMs',
  'resyncMs',
  'keyOf',
  'onError',
  'onStateChange',
] as const;

/** Checked, with all defaults. */
export type CheckedRetry = { readonly [Name in keyof RetryOptions]-?: NonNullable<RetryOptions[Name]> };

export function checkRetry(options: RetryOptions, defaultMinMs: number): CheckedRetry {
  const { minMs = defaultMinMs, maxMs = 30_000, factor = 2, random = Math.random, clock = systemClock } = options;
  wholeNumber('minMs', minMs, 1);
  if (!(Number.isFinite(factor) && factor >= 1)) throw invalid('factor', factor, 'a number >= 1');
  callable('random', random);
  return { minMs, maxMs: wholeNumber('maxMs', maxMs, minMs), factor, random, clock };
}

/** Settings of a reflector. */
export interface ReflectorSettings<T> extends CheckedRetry, MachineSettings {
  readonly labelSelector: string | undefined;
  readonly fieldSelector: string | undefined;
  readonly maxObjects: number;
  readonly maxTotalListBytes: number;
  readonly minWatchTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly resyncMs: number;
  readonly shouldResync: () => boolean;
  readonly keyOf: (object: T) => string;
  readonly onError: ReflectorOptions<T>['onError'];
  readonly onStateChange: ReflectorOptions<T>['onStateChange'];
}

/** Checks the options of a reflector, and adds the defaults. */
export function toSettings<T>(options: ReflectorOptions<T>): ReflectorSettings<T> {
  checkOptions(options, [...RETRY_NAMES, ...REFLECTOR_NAMES, 'shouldResync']);
  const { labelSelector, fieldSelector, streamingList = true, pageSize, onError, onStateChange } = options;
  if (typeof streamingList !== 'boolean') throw invalid('streamingList', streamingList, 'true or false');
  return {
    ...checkRetry(options, 800),
    resetMs: wholeNumber('resetMs', options.resetMs ?? 120_000),
    labelSelector: labelSelector && checkText('labelSelector', labelSelector),
    fieldSelector: fieldSelector && checkText('fieldSelector', fieldSelector),
    streamingList,
    pageSize: pageSize === undefined ? undefined : wholeNumber('pageSize', pageSize),
    maxObjects: wholeNumber('maxObjects', options.maxObjects ?? 1_000_000, 1),
    maxTotalListBytes: wholeNumber('maxTotalListBytes', options.maxTotalListBytes ?? MAX_TOTAL_LIST_BYTES, 1),
    minWatchTimeoutMs: wholeNumber('minWatchTimeoutMs', options.minWatchTimeoutMs ?? 300_000, 1_000),
    idleTimeoutMs: wholeNumber('idleTimeoutMs', options.idleTimeoutMs ?? 0),
    internalErrorRetryMs: wholeNumber('internalErrorRetryMs', options.internalErrorRetryMs ?? 0),
    resyncMs: wholeNumber('resyncMs', options.resyncMs ?? 0),
    shouldResync: callable('shouldResync', options.shouldResync) ?? (() => true),
    keyOf: callable('keyOf', options.keyOf) ?? (keyOf as (object: KubernetesObject) => string as (object: T) => string),
    onError: callable('onError', onError),
    onStateChange: callable('onStateChange', onStateChange),
  };
}
