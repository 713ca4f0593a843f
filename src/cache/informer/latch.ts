/** A promise that is settled once, from outside. Nobody has to handle its rejection. */
export class Latch {
  readonly promise: Promise<void>;
  /** Whether it has resolved. */
  isOpen: boolean = false;
  #resolve: () => void = () => {};
  /** Has no effect once it is settled. */
  reject: (error: unknown) => void = () => {};

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.reject = reject;
    });
    this.promise.catch(() => {});
  }

  /** Has no effect once it is settled. */
  open(): void {
    this.isOpen = true;
    this.#resolve();
  }
}
