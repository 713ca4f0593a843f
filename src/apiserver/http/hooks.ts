/** The application's hooks for a request. If one throws, nobody is admitted. */
import { checkExpiry, expiryOf, identityOf, toDenied } from '../../bridge/hub/admission/refusals.ts';
import { refused } from '../../storage/statuses.ts';
import { isWatchError } from '../../watch/errors.ts';
import { hasCode, toError } from '../api-status.ts';
import type { Settings } from '../options.ts';
import type { WireRequest } from './wire.ts';

export class Hooks {
  private readonly settings: Settings;

  constructor(settings: Settings) {
    this.settings = settings;
  }

  /** The address that a request counts for: the remote one, unless there is `clientAddress`. */
  addressOf({ request, address }: WireRequest): string {
    return this.asked(() => this.settings.clientAddress?.(request)) ?? address;
  }

  /** The tenant whose limits apply to a client. Empty: none. */
  tenantOf(identity: unknown): string {
    const { tenantOf, authenticate } = this.settings;
    if (authenticate === undefined) return '';
    const tenant = tenantOf === undefined ? identity : this.asked(() => tenantOf(identity));
    return typeof tenant === 'string' ? tenant : '';
  }

  /** The identity that `authenticate` returns. Throws 401 for one that has expired. */
  async identify(request: WireRequest): Promise<unknown> {
    const { authenticate, now } = this.settings;
    if (authenticate === undefined) return undefined;
    try {
      const identity = identityOf(await authenticate(request.request));
      checkExpiry(expiryOf(identity), now);
      return identity;
    } catch (error) {
      throw this.denied(error);
    }
  }

  /** Throws 403 unless `authorize` returns true. */
  async allow([verb, resource, namespace, name, identity]: Parameters<NonNullable<Settings['authorize']>>): Promise<void> {
    const { authorize } = this.settings;
    if (authorize === undefined) return;
    try {
      if ((await authorize(verb, resource, namespace, name, identity)) === true) return;
    } catch (error) {
      // A refusal is meant for the client. Any other error of ours comes from what the hook has asked, and is no answer of this server.
      if (!isWatchError(error) || hasCode(error, 401) || hasCode(error, 403)) throw error;
      throw new Error(`authorize failed: ${error.message}`, { cause: error });
    }
    const where = namespace === undefined ? '' : ` in the namespace "${namespace}"`;
    const what = name === undefined ? resource : `${resource} "${name}"`;
    throw refused(403, 'Forbidden', `${what} is forbidden: this identity cannot ${verb} it${where}`);
  }

  /** The result of another hook. */
  private asked<T>(hook: () => T): T {
    try {
      return hook();
    } catch (error) {
      throw this.denied(error);
    }
  }

  /** The refusal for an error that a hook has thrown. */
  private denied(error: unknown): unknown {
    const { reason, status } = toDenied(error);
    if (reason === 'failed') this.settings.onError(error);
    return toError(status);
  }
}
