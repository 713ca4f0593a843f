import { giveUp } from './arguments.ts';
import { main } from './plan/command.ts';

// node bench/start.mjs plan [options]
try {
  main();
} catch (error) {
  giveUp(error);
}
