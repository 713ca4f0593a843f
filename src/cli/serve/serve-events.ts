import type { IncomingMessage } from 'node:http';
import { version } from '../../../package.json';
import type { Health, HealthCheck } from '../../apiserver/health.ts';
import type { ApiServerOptions } from '../../apiserver/options.ts';
import type { Clock } from '../../watch/clock.ts';
import { whyOf } from '../../watch/errors.ts';
import { LogDigest, type ServeLog } from './log.ts';
import type { ServeCommand } from './serve-args.ts';

/**
 * Refusals that matter to an operator: clients that are unknown, forbidden or too many, or connect to a server that is shutting
 * down.
 */
const REFUSALS: ReadonlySet<number> = new Set([401, 403, 421, 429, 503]);

/** Requests that are repeated all the time. Their answers are not news: `not-ready` is logged once, with the reason. */
const PROBES = /^\/(healthz|livez|readyz)\b/;

/** What a server does with its clients, as lines of a log: each kind has one line per second at most. */
export class ServeEvents {
  /** For the server. */
  readonly hooks: Pick<ApiServerOptions, 'onRequest' | 'onCut' | 'onError'>;
  private readonly log: ServeLog;
  private readonly refused: LogDigest;
  private readonly digests: readonly LogDigest[];

  constructor(log: ServeLog, clock: Clock) {
    this.log = log;
    const cut = new LogDigest({ keys: 'reasons', clock, tell: (fields) => log.warn('client-cut', fields) });
    const failed = new LogDigest({ keys: 'kinds', clock, tell: (fields) => log.error('error', fields) });
    this.refused = new LogDigest({ keys: 'codes', clock, tell: (fields) => log.warn('refused', fields) });
    this.digests = [cut, failed, this.refused];
    this.hooks = {
      onRequest: ({ code, method, path, address }) => {
        if (REFUSALS.has(code) && !PROBES.test(path)) this.refused.add(`${code}`, { method, path, address });
      },
      onCut: ({ reason, verb, path, address, durationMs }) =>
        cut.add(reason, { verb, path, address, durationMs: Math.round(durationMs) }),
      onError: (error) => failed.add((error as Error | undefined)?.name ?? typeof error, { error: whyOf(error) }),
    };
  }

  /** The server has started, with this many kinds. Logs its options without secrets: of a URL, only the address. */
  started({ etcd, prefix, dataFile, sqliteFile, token, tokenFile, tls }: ServeCommand, resources: number): void {
    this.log.info('start', {
      version,
      pid: process.pid,
      storage: etcd.length > 0 ? 'etcd' : sqliteFile !== undefined ? 'sqlite' : dataFile === undefined ? 'memory' : 'file',
      etcd: etcd.length > 0 ? etcd.map(({ origin }) => origin).join(',') : undefined,
      prefix: etcd.length > 0 ? prefix : undefined,
      file: sqliteFile ?? dataFile,
      resources,
      tokens: token !== undefined || tokenFile !== undefined,
      tls: tls !== undefined,
    });
  }

  /** A request under a name that is not this server's. */
  misdirected({ method = '', url = '', socket }: IncomingMessage): void {
    this.refused.add('421', { method, path: url.split('?', 1)[0], address: socket.remoteAddress });
  }

  /** A connection beyond the limit for its address. */
  dropped(address: string | undefined): void {
    this.refused.add('connection', { address });
  }

  /** Logs the rest, and leaves no timer behind. */
  end(): void {
    for (const digest of this.digests) digest.end();
  }
}

/** How often a server's health is checked. */
const EVERY_MS = 1_000;

interface HealthMonitorOptions {
  readonly health: () => Promise<Health>;
  readonly log: Pick<ServeLog, 'info' | 'warn' | 'error'>;
  readonly clock: Clock;
}

/** Writes a line when a server becomes ready or no longer is, and when its storage is lost or back. */
export class HealthMonitor {
  private readonly options: HealthMonitorOptions;
  private isReady: boolean = false;
  private hasStorage: boolean = true;
  private lostMs: number = 0;
  private failing: string = '';
  private cancel: () => void = () => {};
  private ended: boolean = false;

  constructor(options: HealthMonitorOptions) {
    this.options = options;
    void this.look();
  }

  /** Stops checking. */
  end(): void {
    this.ended = true;
    this.cancel();
  }

  private async look(): Promise<void> {
    const { health, clock } = this.options;
    const now = await health();
    if (this.ended) return;
    this.judge(now);
    this.cancel = clock.schedule(EVERY_MS, () => void this.look());
  }

  private judge({ ready, checks }: Health): void {
    const { log, clock } = this.options;
    const storage = checks.find(({ name }) => name === 'storage');
    if (storage !== undefined && storage.ok !== this.hasStorage) {
      this.hasStorage = storage.ok;
      if (storage.ok) log.info('storage-back', { afterMs: Math.round(clock.now() - this.lostMs) });
      else log.error('storage-lost', { error: whyOf(storage.error) });
      this.lostMs = clock.now();
    }
    const failing = checks.filter(({ ok }) => !ok);
    const names = failing.map(({ name }) => name).join(',');
    if (ready && !this.isReady) log.info('ready');
    // Before it is ready for the first time, only failures matter.
    else if (!ready && names !== this.failing && (this.isReady || reasonOf(failing) !== undefined)) {
      log.warn('not-ready', { checks: names, reason: reasonOf(failing) });
    }
    this.isReady = ready;
    this.failing = names;
  }
}

function reasonOf(failing: readonly HealthCheck[]): string | undefined {
  const told = failing.find(({ error }) => error !== undefined);
  return told && whyOf(told.error);
}
