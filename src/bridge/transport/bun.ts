/** Whether this is Bun, which behaves differently from Node in places. */
export const IN_BUN: boolean = 'Bun' in globalThis;
