import { byId, say } from './elements.ts';
import { plural } from './words.ts';

/** The colour of the state. */
export type Light = 'live' | 'slow' | 'connecting' | 'off';

/** The state of the connection in the header: a light and a few words, or a countdown to the next attempt. */
export class StateLine {
  private timer: ReturnType<typeof setInterval> | undefined = undefined;

  /** `retry`: whether it makes sense to try at once. */
  show(light: Light, text: string, { retry = false }: { readonly retry?: boolean } = {}): void {
    clearInterval(this.timer);
    byId('state').dataset.state = light;
    byId('retry').toggleAttribute('hidden', !retry);
    say(byId('state'), text);
  }

  countDown(delayMs: number): void {
    const until = performance.now() + delayMs;
    const words = (): string => {
      const seconds = Math.ceil((until - performance.now()) / 1_000);
      return seconds > 0 ? `not connected, next attempt in ${plural(seconds, 'second')}` : 'not connected, trying';
    };
    this.show('off', words(), { retry: true });
    this.timer = setInterval(() => say(byId('state'), words()), 1_000);
  }
}
