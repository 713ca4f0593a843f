import { channel } from 'node:diagnostics_channel';
import type { Hub } from './hub.ts';
import type { HubNotice } from './tally.ts';

/**
 * A hub's notices on Node's `diagnostics_channel`, where tracing tools listen without knowing anyone. The message is the
 * notice, with its hub. Without subscribers no notice is even made.
 */
export const CHANNELS: Readonly<Record<HubNotice['type'], string>> = {
  open: 'watchmux:client:open',
  close: 'watchmux:client:close',
  cut: 'watchmux:client:cut',
  refused: 'watchmux:client:refused',
  resume: 'watchmux:client:resume',
};

const known: WeakSet<Hub> = new WeakSet();

/** Once per hub, however many handlers serve it. */
export function publishNotices(hub: Hub): void {
  if (known.has(hub)) return;
  known.add(hub);
  const channels = {
    open: channel(CHANNELS.open),
    close: channel(CHANNELS.close),
    cut: channel(CHANNELS.cut),
    refused: channel(CHANNELS.refused),
    resume: channel(CHANNELS.resume),
  };
  hub.observe({
    wants: (type) => channels[type].hasSubscribers,
    tell: (notice) => channels[notice.type].publish({ hub, ...notice }),
  });
}
