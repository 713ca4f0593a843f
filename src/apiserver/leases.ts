/** Leases, by which programs agree on which of them leads: client-go's leader election needs nothing else from a server. */
import type { KubernetesObject } from '../cache/object.ts';
import { badRequest } from '../storage/statuses.ts';
import { AGE } from './builtin.ts';
import type { FieldCause, ResourceDefinition } from './definition.ts';
import { isRecord } from './request/json.ts';

/** Upstream: `coordination.v1.Lease`. */
export interface Lease extends KubernetesObject {
  readonly spec?: LeaseSpec | undefined;
}

/** Upstream: `coordination.v1.LeaseSpec`. */
export interface LeaseSpec {
  /** Empty or absent: nobody holds it. */
  readonly holderIdentity?: string | undefined;
  /** How long others wait after `renewTime` before they take the lease. */
  readonly leaseDurationSeconds?: number | undefined;
  /** With microseconds, such as `2026-01-02T03:04:05.000006Z`. */
  readonly acquireTime?: string | undefined;
  readonly renewTime?: string | undefined;
  /** How often the holder has changed. */
  readonly leaseTransitions?: number | undefined;
}

/** `leases` of `coordination.k8s.io/v1`. */
export const LEASES: ResourceDefinition<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  columns: [
    { name: 'Holder', type: 'string', description: 'The current holder.', value: ({ spec }) => spec?.holderIdentity },
    AGE as NonNullable<ResourceDefinition<Lease>['columns']>[number],
  ],
  validate: ({ spec }) => {
    checkForm(spec);
    return causesOf(spec ?? {});
  },
};

const MAX_INT32 = 2 ** 31 - 1;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[-+]\d\d:\d\d)$/;

const isText = (value: unknown): boolean => typeof value === 'string';
const isCount = (value: unknown): boolean => Number.isInteger(value) && Math.abs(value as number) <= MAX_INT32;
const isTime = (value: unknown): boolean =>
  isText(value) && TIME.test(value as string) && !Number.isNaN(Date.parse(value as string));

const FORM: { readonly [Name in keyof LeaseSpec]-?: readonly [(value: unknown) => boolean, expected: string] } = {
  holderIdentity: [isText, 'a text'],
  leaseDurationSeconds: [isCount, 'a whole number'],
  acquireTime: [isTime, 'a time'],
  renewTime: [isTime, 'a time'],
  leaseTransitions: [isCount, 'a whole number'],
};

/** Refuses what cannot be read as a Lease: no typed client could. */
function checkForm(spec: unknown): void {
  if (spec === undefined || spec === null) return;
  if (!isRecord(spec)) throw unreadable('spec: expected an object');
  for (const [name, [fits, expected]] of Object.entries(FORM)) {
    const value = spec[name] ?? undefined;
    if (value !== undefined && !fits(value)) throw unreadable(`spec.${name}: expected ${expected}`);
  }
}

function unreadable(why: string): Error {
  return badRequest(`Lease in version "v1" cannot be handled as a Lease: ${why}`);
}

/** Upstream: `ValidateLeaseSpec`. */
function causesOf({ leaseDurationSeconds, leaseTransitions }: LeaseSpec): FieldCause[] {
  const causes: FieldCause[] = [];
  if ((leaseDurationSeconds ?? 1) <= 0) {
    const message = `Invalid value: ${leaseDurationSeconds}: must be greater than 0`;
    causes.push({ field: 'spec.leaseDurationSeconds', message });
  }
  if ((leaseTransitions ?? 0) < 0) {
    const message = `Invalid value: ${leaseTransitions}: must be greater than or equal to 0`;
    causes.push({ field: 'spec.leaseTransitions', message });
  }
  return causes;
}
