/** Whether this is Bun, where some things are not as they are elsewhere. */
export const IN_BUN: boolean = 'Bun' in globalThis;
