/** This folder, even from a bundle in `.build/<name>/`. */
export const BENCH: URL = new URL(import.meta.url.includes('/.build/') ? '../../' : './', import.meta.url);
