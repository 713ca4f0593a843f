import { GoProgram } from './go-programs.ts';
import type { Prepared, Settings } from './workload.ts';

const FIRST_OPERATIONS = 100_000;

interface Answer {
  readonly operations: number;
  readonly seconds: number;
  readonly ok: boolean;
}

/** The same operations on client-go's work queue, by one goroutine. */
export async function prepareGoQueue(
  { what, keys }: { what: 'adds' | 'pairs'; keys: number },
  { roundMs }: Settings,
): Promise<Prepared> {
  const start = (count: number): Promise<GoProgram<Answer>> =>
    GoProgram.start('workqueue', [what, '--keys', String(keys), '--count', String(count)]);
  const probe = await start(FIRST_OPERATIONS);
  let speed = 0;
  for (let i = 0; i < 3; i++) {
    const { operations, seconds } = await probe.round();
    speed = operations / seconds;
  }
  probe.end();
  const program = await start(Math.max(FIRST_OPERATIONS, Math.round(speed * (roundMs / 1000))));
  await program.round();
  return {
    async round() {
      const { operations, seconds } = await program.round();
      return [operations / seconds / 1e6];
    },
    end: () => program.end(),
  };
}
