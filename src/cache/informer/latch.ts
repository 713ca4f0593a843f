/** A promise that is settled once, from outside. Nobody has to handle its rejection. */
export class Latch {
  readonly promise: Promise<void>;
  /** Whether it has resolved. */
  isOpen: boolean = false;
  #isRejected: boolean = false;
  #resolve: () => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.promise.catch(() => {});
  }

  /** Has no effect once it is settled. */
  open(): void {
    this.isOpen = !this.#isRejected;
    this.#resolve();
  }

  /** Has no effect once it is settled. */
  reject(error: unknown): void {
    this.#isRejected = !this.isOpen;
    this.#reject(error);
  }
}
