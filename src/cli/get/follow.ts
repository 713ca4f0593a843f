import { messageOf } from '../../bridge/client/transport.ts';
import { Informer } from '../../cache/informer/informer.ts';
import type { InformerFailure } from '../../cache/informer/options.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import { excerpt } from '../../pages/words.ts';
import { onSignals } from '../signals.ts';
import type { Change } from './printer.ts';
import type { Work } from './work.ts';

/**
 * Prints the current objects, and then every change, until a signal or the end of the output's reader. An informer does the work:
 * it survives broken connections, and lists again after 410. Its watch folds what is not read, so a slow reader of the output
 * costs no memory beyond the objects themselves.
 *
 * Rejects with the first failure if nothing could be read at all: that is more likely a mistake than a temporary problem.
 */
export async function follow({ command, source, printer, output, signal, note }: Work): Promise<number> {
  const { labelSelector, fieldSelector } = command;
  let failed: { readonly error: unknown } | undefined;
  const onError = (error: unknown, failure: InformerFailure<KubernetesObject>): void => {
    if (failure.kind === 'handler' || failure.kind === 'object') {
      note(excerpt(messageOf(error)));
      return;
    }
    const { delayMs, kind } = failure;
    if (delayMs === undefined) return; // it continues at once, another way
    if (informer.hasSynced || kind === 'throttled') {
      note(`${excerpt(messageOf(error))}; retrying in ${(delayMs / 1_000).toFixed(1)} s`);
      return;
    }
    failed ??= { error };
    void informer.stop();
  };
  const informer = new Informer<KubernetesObject>(source, { labelSelector, fieldSelector, onError });
  const events = informer.watch();
  const stop = (): void => void informer.stop();
  const release = onSignals(stop);
  signal.addEventListener('abort', stop);
  const running = informer.run();
  for await (const batch of events.batches()) {
    const changes = batch.flatMap((event): Change[] => (event.type === 'BOOKMARK' || event.type === 'ERROR' ? [] : [event]));
    if (changes.length > 0) await output.write(printer.events(changes));
    if (output.gone) break;
  }
  stop();
  await running;
  release();
  signal.removeEventListener('abort', stop);
  if (failed) throw failed.error;
  return 0;
}
