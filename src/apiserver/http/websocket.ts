/** Watches over WebSocket: one text message per event. Loaded late, because it needs the package ws. */
import type { WebSocket } from 'ws';
import { LINE } from '../../bridge/events/forms.ts';
import { DEFAULTS } from '../../bridge/protocol.ts';
import { Handshakes, type Upgrade } from '../../bridge/transport/handshakes.ts';
import { IN_BUN, type SharedTimer, toSharedTimer } from '../../bridge/transport/stall.ts';
import { guardInbound, SentLines, sessionOf, WebSocketSink } from '../../bridge/transport/websocket-connection.ts';
import type { Clock } from '../../watch/clock.ts';
import type { Settings } from '../options.ts';
import { abandon, type HostDeps, MAX_INBOUND_BYTES } from './node-host.ts';
import type { StreamAnswer } from './wire.ts';

export class WebSockets {
  private readonly deps: HostDeps;
  private readonly handshakes: Handshakes = new Handshakes({ compression: false, maxInboundBytes: MAX_INBOUND_BYTES });
  private readonly heartbeats: SharedTimer | undefined;
  private readonly guard: ReturnType<typeof guardInbound>;
  private readonly clock: Clock;

  constructor(deps: HostDeps, { clock }: Settings) {
    this.deps = deps;
    this.clock = clock;
    this.heartbeats = toSharedTimer(DEFAULTS.heartbeatMs, clock);
    const { maxInboundBytesPerSecond, maxInboundMessagesPerSecond } = DEFAULTS;
    this.guard = guardInbound({
      ...{ maxInboundBytesPerSecond, maxInboundMessagesPerSecond, clock },
      sessionOf: (client) => sessionOf(client as WebSocket),
    });
  }

  /** Answers the handshake, and sends the stream. */
  begin(answer: StreamAnswer, upgrade: Upgrade): void {
    const { socket: raw } = upgrade;
    const whole = this.handshakes.answer(upgrade, (client, form) => {
      client.on('error', ignore);
      this.guard(client, raw);
      const { maxBufferedBytes, sessions } = this.deps;
      const to = IN_BUN ? { socket: new SentLines(client), form: LINE } : { socket: raw, form };
      const sink = new WebSocketSink({ client, ...to, maxBufferedBytes, clock: this.clock } as ConstructorParameters<
        typeof WebSocketSink
      >[0]);
      sessions.begin(answer, sink, to.socket);
      if (this.heartbeats !== undefined) sink.startHeartbeat(this.heartbeats);
    });
    if (!whole) abandon(answer);
  }
}

/** After an error, ws closes the connection and emits `close`. */
function ignore(): void {}
