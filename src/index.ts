export { Broadcaster } from './broadcast/broadcaster.ts';
