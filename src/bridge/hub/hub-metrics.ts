import { counter, gauge, type Metric } from '../../watch/telemetry.ts';
import type { HubStats } from './hub-options.ts';

/**
 * Returns what a hub counts. Nothing is labelled by client: each would leave its series behind in Prometheus. `Hub.stats` has the
 * numbers of one client.
 */
export function hubMetrics({ accepted, oversize, clients, total }: HubStats): readonly Metric[] {
  let [queued, lag, buffered] = [0, 0, 0];
  const transports: Record<string, number> = { http: 0, sse: 0, websocket: 0 };
  for (const client of clients) {
    queued += client.queued;
    buffered += client.bufferedBytes;
    lag = Math.max(lag, client.lag);
    transports[client.transport] = (transports[client.transport] ?? 0) + 1;
  }
  const by = (label: string, values: Readonly<Partial<Record<string, number>>>): Metric['value'] => ({
    label,
    values: values as Readonly<Record<string, number>>,
  });
  return [
    counter('events_accepted_total', 'Events that were published and accepted.', accepted),
    counter('events_oversize_total', 'Events that were refused, because they are longer than maxEventBytes.', oversize),
    counter('events_delivered_total', 'Events written to connections, over all clients.', total.delivered),
    counter('events_dropped_total', 'Events that clients did not get: their queues were full, or folded them.', total.dropped),
    counter('sent_bytes_total', 'Bytes of events written to connections.', total.sentBytes),
    counter('clients_opened_total', 'Clients that have connected.', total.clients),
    counter('clients_resumed_total', 'Clients that have reconnected and continued where they were.', total.resumes),
    counter('clients_refused_total', 'Clients that were refused, by reason.', by('reason', total.refusals)),
    counter('clients_cut_total', 'Clients that were cut, by reason.', by('reason', total.cuts)),
    gauge('clients', 'Clients that are connected, by transport.', by('transport', transports)),
    gauge('queued_events', 'Events queued for connections, over all clients.', queued),
    gauge('max_lag_events', 'Positions between the slowest client and the head of the stream.', lag),
    gauge('buffered_bytes', 'Bytes in connections that the network has not taken yet.', buffered),
  ];
}
