#!/usr/bin/env node
import { version } from '../../package.json';
import { parseCommand, UsageError } from './args.ts';
import { demo } from './demo.ts';
import { helpText } from './help.ts';
import { pipe } from './pipe.ts';
import { watch } from './watch.ts';

/** Runs a command line. Answers the exit code. */
async function main(argv: readonly string[]): Promise<number> {
  const command = parseCommand(argv);
  switch (command.command) {
    case 'pipe':
      return pipe(command);
    case 'watch':
      return watch(command);
    case 'demo':
      return demo(command);
    case 'help':
      process.stdout.write(helpText(command.topic));
      return 0;
    case 'version':
      process.stdout.write(`${version}\n`);
      return 0;
  }
}

// Output that nobody reads is no reason to die noisily.
process.stdout.on('error', () => {});
process.stderr.on('error', () => {});

main(process.argv.slice(2)).then(
  (code) => {
    // The program ends by itself: nothing may be left that keeps it.
    process.exitCode = code;
    // In Deno a read of stdin that is under way does, though stdin is destroyed. What was printed goes out first.
    if ('Deno' in globalThis) process.stdout.write('', () => process.exit());
  },
  (error: unknown) => {
    if (error instanceof UsageError) process.stderr.write(`${error.message}\n`);
    else process.stderr.write(`watchmux: unexpected: ${(error as Error)?.stack ?? String(error)}\n`);
    process.exit(error instanceof UsageError ? 2 : 1);
  },
);
