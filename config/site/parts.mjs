// What tests use of this folder.
export { check } from './check.mjs';
export { importsOf, mentionsIn, Names } from './mentions.mjs';
export { anchorOf, DOCUMENTS, ENTRY_POINTS, GROUPS, linkedFiles, sectionsOf } from './pages.mjs';
export { serve } from './server.mjs';
export const scoresOf = async (...args) => (await import('./lighthouse.mjs')).scoresOf(...args);
