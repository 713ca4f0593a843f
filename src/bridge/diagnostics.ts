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

/** What is used of a channel of Node's. */
interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}
export type ToChannel = (name: string) => Channel;

const known: WeakSet<Hub> = new WeakSet();

/** Once per hub, however many handlers serve it. */
export function publishNotices(hub: Hub, channel: ToChannel): void {
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

/** For a door that imports nothing of Node: the host's channels, if it is Node (from 20.16 on) or has them as well. */
export function channelOfHost(): ToChannel | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?(name: string): { channel?: ToChannel } | undefined } };
  return process?.getBuiltinModule?.('node:diagnostics_channel')?.channel;
}
