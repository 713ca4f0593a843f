// The parts of the contenders' packages that are used. The packages are installed in this folder only, and the project
// type-checks without them.

declare module 'mitt' {
  interface Emitter {
    on(type: string, handler: (event: never) => void): void;
    off(type: string, handler: (event: never) => void): void;
    emit(type: string, event: unknown): void;
    all: Map<string, unknown>;
  }
  export default function mitt(): Emitter;
}

declare module 'emittery' {
  export default class Emittery {
    emit(name: string, data: unknown): Promise<void>;
    events<T>(name: string): AsyncIterableIterator<T>;
    clearListeners(): void;
  }
}

declare module 'it-pushable' {
  interface Pushable<T> extends AsyncIterableIterator<T> {
    push(value: T): this;
    end(): this;
  }
  export function pushable<T>(options: { objectMode: true }): Pushable<T>;
}

declare module '@graphql-yoga/subscription' {
  interface PubSub<T> {
    publish(topic: string, payload: T): void;
    subscribe(topic: string): AsyncIterableIterator<T>;
  }
  export function createPubSub<T>(): PubSub<T>;
}

declare module 'writable-consumable-stream' {
  export default class WritableConsumableStream<T> implements AsyncIterable<T> {
    write(value: T): void;
    close(): void;
    createConsumer(): AsyncIterableIterator<T> & { kill(): void };
    [Symbol.asyncIterator](): AsyncIterator<T>;
  }
}

declare module 'effect' {
  interface Effect<A> {
    readonly result?: A;
  }
  interface Scope {
    readonly scope?: true;
  }
  interface Subscription<A> {
    readonly subscribed?: A;
  }
  interface Queue<A> {
    readonly queued?: A;
  }
  interface Fiber {
    interruptUnsafe(): void;
  }
  export const Effect: {
    runSync<A>(effect: Effect<A>): A;
    runFork<A>(effect: Effect<A>): Fiber;
    forever<A>(effect: Effect<A>): Effect<never>;
    map<A, B>(effect: Effect<A>, fn: (value: A) => B): Effect<B>;
    flatMap<A, B>(effect: Effect<A>, fn: (value: A) => Effect<B>): Effect<B>;
    whileLoop<A>(options: { while: () => boolean; body: () => Effect<A>; step: (value: A) => void }): Effect<void>;
    readonly never: Effect<never>;
  };
  export const Scope: {
    make(): Effect<Scope>;
    provide<A>(effect: Effect<A>, scope: Scope): Effect<A>;
    close(scope: Scope, exit: unknown): Effect<void>;
  };
  export const Exit: { readonly void: unknown };
  export const PubSub: {
    bounded<A>(capacity: number): Effect<Queue<A>>;
    publishUnsafe<A>(pubsub: Queue<A>, value: A): boolean;
    subscribe<A>(pubsub: Queue<A>): Effect<Subscription<A>>;
    take<A>(subscription: Subscription<A>): Effect<A>;
    takeAll<A>(subscription: Subscription<A>): Effect<readonly A[]>;
    shutdown<A>(pubsub: Queue<A>): Effect<void>;
  };
}

declare module '@observablehq/plot' {
  export type Options = Readonly<Record<string, unknown>>;
  export type Mark = { readonly channels: unknown };
  type Draw = (data: readonly unknown[], options: Options) => Mark;
  export const dot: Draw, line: Draw, link: Draw, rect: Draw, ruleX: Draw, ruleY: Draw, text: Draw;
  export function axisX(options: Options): Mark;
  export function axisY(options: Options): Mark;
  export function gridY(options: Options): Mark;
  export function plot(options: Options): Element;
  export function scale(options: Options): { apply(value: number): number; invert(pixels: number): number };
}

declare module 'linkedom' {
  export function parseHTML(html: string): { readonly document: Document };
}
