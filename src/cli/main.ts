#!/usr/bin/env node
import { version } from '../../package.json';
import { parseCommand, UsageError } from './args.ts';
import { demo } from './demo.ts';
import { helpText } from './help.ts';
import { pipe } from './pipe.ts';
import { watch } from './watch.ts';

/** Runs a command line. Returns the exit code. */
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

// The program ends quietly when nobody reads its output.
process.stdout.on('error', () => {});
process.stderr.on('error', () => {});

main(process.argv.slice(2)).then(
  (code) => {
    // The process exits on its own once nothing keeps it alive.
    process.exitCode = code;
    // In Deno a pending read of stdin does, even after stdin is destroyed. The output is written first.
    if ('Deno' in globalThis) process.stdout.write('', () => process.exit());
  },
  (error: unknown) => {
    if (error instanceof UsageError) process.stderr.write(`${error.message}\n`);
    else process.stderr.write(`watchmux: unexpected: ${(error as Error)?.stack ?? String(error)}\n`);
    process.exit(error instanceof UsageError ? 2 : 1);
  },
);
