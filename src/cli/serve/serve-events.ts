import type { IncomingMessage } from 'node:http';
import { version } from '../../../package.json';
import type { ApiServerOptions } from '../../apiserver/options.ts';
import type { Clock } from '../../watch/clock.ts';
import { Digest } from './digest.ts';
import { type Log, messageOf } from './log.ts';
import type { ServeCommand } from './serve-args.ts';

/**
 * Refusals that matter to an operator: clients that are unknown, forbidden or too many, or come to a server that is shutting
 * down.
 */
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 421, 429, 503]);

/** Requests that come again and again. Their answers are not news: `not-ready` is logged once, with the reason. */
const PROBES = /^\/(healthz|livez|readyz)\b/;

/** What a server does with its clients, as lines of a log: each kind has one line per second at most. */
export class ServeEvents {
  /** For the server. */
  readonly hooks: Pick<ApiServerOptions, 'onRequest' | 'onCut' | 'onError'>;
  private readonly log: Log;
  private readonly refused: Digest;
  private readonly digests: readonly Digest[];

  constructor(log: Log, clock: Clock) {
    this.log = log;
    const cut = new Digest({ keys: 'reasons', clock, tell: (fields) => log.warn('client-cut', fields) });
    const failed = new Digest({ keys: 'kinds', clock, tell: (fields) => log.error('error', fields) });
    this.refused = new Digest({ keys: 'codes', clock, tell: (fields) => log.warn('refused', fields) });
    this.digests = [cut, failed, this.refused];
    this.hooks = {
      onRequest: ({ code, method, path, address }) => {
        if (REFUSALS.has(code) && !PROBES.test(path)) this.refused.add(`${code}`, { method, path, address });
      },
      onCut: ({ reason, verb, path, address, durationMs }) =>
        cut.add(reason, { verb, path, address, durationMs: Math.round(durationMs) }),
      onError: (error) => failed.add((error as Error | undefined)?.name ?? typeof error, { error: messageOf(error) }),
    };
  }

  /** The server has begun. Logs its options without secrets: only the address of a URL. */
  started({ etcd, prefix, dataFile, sqliteFile, resources, token, tokenFile, tls }: ServeCommand): void {
    this.log.info('start', {
      version,
      pid: process.pid,
      storage: etcd.length > 0 ? 'etcd' : sqliteFile !== undefined ? 'sqlite' : dataFile === undefined ? 'memory' : 'file',
      etcd: etcd.length > 0 ? etcd.map(({ origin }) => origin).join(',') : undefined,
      prefix: etcd.length > 0 ? prefix : undefined,
      file: sqliteFile ?? dataFile,
      resources: resources.length + 2,
      tokens: token !== undefined || tokenFile !== undefined,
      tls: tls !== undefined,
    });
  }

  /** A request under a name that is not this server's. */
  misdirected({ method = '', url = '', socket }: IncomingMessage): void {
    this.refused.add('421', { method, path: url.split('?', 1)[0], address: socket.remoteAddress });
  }

  /** A connection that its address may not have besides the others. */
  dropped(address: string | undefined): void {
    this.refused.add('connection', { address });
  }

  /** Logs what has not been logged, and leaves no timer behind. */
  end(): void {
    for (const digest of this.digests) digest.end();
  }
}
