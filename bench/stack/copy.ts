/** A Pod, as far as the benchmark looks at it. */
export interface Pod {
  readonly metadata?: {
    readonly name?: string | undefined;
    readonly namespace?: string | undefined;
    readonly resourceVersion?: string | undefined;
  };
}

/** Called by a live copy for every change. */
export interface Handler {
  onAdd(): void;
  onUpdate(pod: Pod): void;
}

/** A live copy of the server's Pods, of any contender. */
export interface Copy {
  /** Resolves when the initial list is in the store. */
  readonly synced: Promise<unknown>;
  /** Everything in the store. */
  pods(): readonly Pod[];
}

/** Starts a live copy. `fail` is for what cannot go on. */
export type StartCopy = (options: { url: string; handler: Handler; fail: (error: unknown) => void }) => Copy;
