import { Policy } from './policy.ts';

/** `drop-newest`: a full queue keeps what it has; what does not fit is lost, and counted. That is what every {@link Policy} does. */
export class DropNewest extends Policy {}
