import { createNodeFetch, type NodeFetch } from '../kubernetes/node-fetch.ts';

/** A replacement for fetch, which ends a stream that is silent for five minutes. Does not follow redirects. */
export const request: NodeFetch = createNodeFetch();
