import type { Hub } from './hub.ts';
import type { HubNotice } from './tally.ts';

/**
 * The names of a hub's channels in Node's `diagnostics_channel`, for tracing tools. The message is the notice, with its hub.
 * While a channel has no subscribers, no notice is created.
 */
export const CHANNELS: Readonly<Record<HubNotice['type'], string>> = {
  open: 'watchmux:client:open',
  close: 'watchmux:client:close',
  cut: 'watchmux:client:cut',
  refused: 'watchmux:client:refused',
  resume: 'watchmux:client:resume',
};

/** The used part of Node's `Channel`. */
interface Channel {
  readonly hasSubscribers: boolean;
  publish(message: unknown): void;
}
export type ToChannel = (name: string) => Channel;

const known: WeakSet<Hub> = new WeakSet();

/** Publishes a hub's notices; once per hub, however many handlers serve it. */
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

/**
 * Returns the host's channels, or undefined if it has none. For an entry point that must not import Node. Node >= 20.16 has it.
 */
export function channelOfHost(): ToChannel | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?(name: string): { channel?: ToChannel } | undefined } };
  return process?.getBuiltinModule?.('node:diagnostics_channel')?.channel;
}
