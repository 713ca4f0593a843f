// The parts of the contenders' packages that are used. The packages are installed in bench/ only, and the project type-checks
// without them.

declare module 'socket.io' {
  export class Server {
    constructor(
      server: import('node:http').Server,
      options: { transports: string[]; serveClient: boolean; pingInterval: number },
    );
    emit(name: string, data: unknown): boolean;
    to(room: string): { emit(name: string, data: unknown): boolean };
    on(
      name: 'connection',
      listener: (socket: { join(room: string): void; readonly handshake: { readonly query: Record<string, unknown> } }) => void,
    ): void;
    readonly engine: { readonly clients: Record<string, { readonly writeBuffer: readonly unknown[] }> };
  }
}

declare module 'better-sse' {
  interface Session {
    readonly isConnected: boolean;
    batch(buffer: EventBuffer): Promise<void>;
  }
  interface EventBuffer {
    push(data: unknown, eventName?: string, eventId?: string): this;
  }
  interface Channel {
    readonly activeSessions: readonly Session[];
    register(session: Session): this;
    broadcast(data: unknown, eventName?: string, options?: { eventId?: string }): this;
  }
  export function createChannel(): Channel;
  export function createEventBuffer(): EventBuffer;
  export function createSession(
    request: import('node:http').IncomingMessage,
    response: import('node:http').ServerResponse,
    options?: { keepAlive?: number | null },
  ): Promise<Session>;
}
