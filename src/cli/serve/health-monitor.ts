import type { Health, HealthCheck } from '../../apiserver/health.ts';
import type { Clock } from '../../watch/clock.ts';
import { type Log, messageOf } from './log.ts';

/** How often a server's health is checked. */
const EVERY_MS = 1_000;

/** Options of a {@link HealthMonitor}. */
export interface HealthMonitorOptions {
  readonly health: () => Promise<Health>;
  readonly log: Pick<Log, 'info' | 'warn' | 'error'>;
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
      else log.error('storage-lost', { error: messageOf(storage.error) });
      this.lostMs = clock.now();
    }
    const failing = checks.filter(({ ok }) => !ok);
    const names = failing.map(({ name }) => name).join(',');
    if (ready && !this.isReady) log.info('ready');
    // Before it has been ready for the first time, only what has failed is of interest.
    else if (!ready && names !== this.failing && (this.isReady || reasonOf(failing) !== undefined)) {
      log.warn('not-ready', { checks: names, reason: reasonOf(failing) });
    }
    this.isReady = ready;
    this.failing = names;
  }
}

function reasonOf(failing: readonly HealthCheck[]): string | undefined {
  const told = failing.find(({ error }) => error !== undefined);
  return told && messageOf(told.error);
}
