#!/usr/bin/env node
import { version } from '../../package.json';
import { endUnheard } from '../operator/signals.ts';
import { type Command, parseCommand } from './args.ts';
import { helpText } from './help.ts';
import { printable } from './lines.ts';
import { Output } from './output.ts';
import { type CommandName, UsageError } from './usage.ts';

/** Runs a command. Returns the exit code. */
async function run(command: Command, output: Output): Promise<number> {
  if (command.command === 'help') await output.write(helpText(command.topic));
  else if (command.command === 'version') await output.write(`${version}\n`);
  else {
    const act = (await COMMANDS[command.command]()) as (command: Command, output: Output) => Promise<number>;
    return act(command, output);
  }
  return 0;
}

/** Each is loaded only when needed: loading an API server takes longer than most commands run. */
const COMMANDS: Readonly<Record<CommandName, () => Promise<(command: never, output: Output) => Promise<number>>>> = {
  pipe: async () => (await import('./pipe.ts')).pipe,
  watch: async () => (await import('./watch.ts')).watch,
  get: async () => (await import('./get/get.ts')).get,
  serve: async () => (await import('./serve/serve.ts')).serve,
  new: async () => (await import('./new/new.ts')).newProject,
  check: async () => (await import('./check.ts')).check,
  types: async () => (await import('./types/types.ts')).types,
  demo: async () => (await import('./demo/demo.ts')).demo,
};

/** Runs a command line, and says so if its output could not be written. Returns the exit code. */
async function main(argv: readonly string[]): Promise<number> {
  endUnheard();
  const output = new Output(process.stdout);
  const messages = new Output(process.stderr);
  const command = parseCommand(argv);
  const code = await run(command, output);
  await output.flushed();
  if (output.failure !== undefined) {
    const name = ['help', 'version'].includes(command.command) ? 'watchmux' : `watchmux ${command.command}`;
    void messages.write(`${name}: cannot write to stdout: ${output.failure}\n`);
  }
  await messages.flushed();
  const all = output.failure === undefined && messages.failure === undefined ? code : Math.max(code, 1);
  // Unread output would keep the process alive.
  if (output.gone) process.exit(all);
  return all;
}

main(process.argv.slice(2)).then(
  (code) => {
    // The process exits on its own once nothing keeps it alive.
    process.exitCode = code;
    // In Deno a pending read of stdin does, even after stdin is destroyed.
    if ('Deno' in globalThis) process.exit();
  },
  (error: unknown) => {
    if (error instanceof UsageError) process.stderr.write(`${printable(error.message)}\n`);
    else process.stderr.write(`watchmux: unexpected: ${printable((error as Error)?.stack ?? String(error))}\n`);
    process.exit(error instanceof UsageError ? 2 : 1);
  },
);
