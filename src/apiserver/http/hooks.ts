/** What the hooks of an application say of a request. What one throws admits nobody. */
import { identityOf, toDenied } from '../../bridge/hub/admission/refusals.ts';
import { refused } from '../../storage/statuses.ts';
import { toError } from '../api-status.ts';
import type { Settings } from '../options.ts';
import type { WireRequest } from './wire.ts';

export class Hooks {
  private readonly settings: Settings;

  constructor(settings: Settings) {
    this.settings = settings;
  }

  /** The address that a request counts for: where it came from, unless `clientAddress` knows better. */
  addressOf({ request, address }: WireRequest): string {
    return this.asked(() => this.settings.clientAddress?.(request)) ?? address;
  }

  /** Whose limits count for a client. Empty: nobody's. */
  tenantOf(identity: unknown): string {
    const { tenantOf, authenticate } = this.settings;
    if (authenticate === undefined) return '';
    const tenant = tenantOf === undefined ? identity : this.asked(() => tenantOf(identity));
    return typeof tenant === 'string' ? tenant : '';
  }

  /** What `authenticate` says. */
  async identify(request: WireRequest): Promise<unknown> {
    const { authenticate } = this.settings;
    if (authenticate === undefined) return undefined;
    try {
      return identityOf(await authenticate(request.request));
    } catch (error) {
      throw this.denied(error);
    }
  }

  /** Throws 403 unless `authorize` says true. */
  async allow([verb, resource, namespace, name, identity]: Parameters<NonNullable<Settings['authorize']>>): Promise<void> {
    const { authorize } = this.settings;
    if (authorize === undefined || (await authorize(verb, resource, namespace, name, identity)) === true) return;
    const where = namespace === undefined ? '' : ` in the namespace "${namespace}"`;
    const what = name === undefined ? resource : `${resource} "${name}"`;
    throw refused(403, 'Forbidden', `${what} is forbidden: this identity cannot ${verb} it${where}`);
  }

  /** What another hook says. */
  private asked<T>(hook: () => T): T {
    try {
      return hook();
    } catch (error) {
      throw this.denied(error);
    }
  }

  /** What a hook throws admits nobody. */
  private denied(error: unknown): unknown {
    const { reason, status } = toDenied(error);
    if (reason === 'failed') this.settings.onError(error);
    return toError(status);
  }
}
