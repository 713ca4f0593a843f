// Tells whether a text breaks off where no sentence can end.

/** Nothing ends in these, whatever comes before. */
const NEVER =
  /\b(?:a|an|the|and|or|but|nor|if|because|unless|although|whether|than|into|of|during|its|their|your|our|my|every|very|e\.g|i\.e)$/i;
/** These end a clause only if something before them belongs to them: "as it is", "the folder that it is in". */
const SELDOM = new RegExp(
  [
    String.raw`\b(?:am|is|are|was|were|be|been|being|has|have|had|having|will|would|shall|should|can|could|may|might|must|does|do|did`,
    'to|at|by|for|from|with|in|about|(?<!in )between|that|which|who|whose|while|until|via|per',
    String.raw`(?<!\b(?:pass|passes|passed|go|goes|now|later|early|so) )on`,
    String.raw`(?<!\b(?:says?|shows?|tells?|knows?|since) )(?:where|when))$`,
  ].join('|'),
  'i',
);
const BINDS =
  /\b(?:as|what|whatever|how|however|where|wherever|when|whether|which|that|who|than|if|to|it|they|there|nothing)\b.*\s\S+$/i;
const PAIRS: readonly (readonly [string, string])[] = [
  ['(', ')'],
  ['[', ']'],
  ['{', '}'],
];

/** What is wrong with the end of a text, or with its brackets and quotes; undefined if nothing is. */
export function fault(text: string): string | undefined {
  if (text.split('`').length % 2 === 0) return 'a ` is open';
  const plain = text
    .replace(/`[^`]*`/g, 'code')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .trim();
  if (plain === '') return 'it is empty';
  for (const [open, close] of PAIRS) {
    if (plain.split(open).length !== plain.split(close).length) return `a ${open} or ${close} is alone`;
  }
  if (plain.split('"').length % 2 === 0) return 'a " is open';
  if (/[,;([{—&+]$|\w –$|\s[-=|]$/.test(plain)) return 'it ends in the middle';
  const end = plain.replace(/[.:!)"*_]+$/, '');
  if (NEVER.test(end)) return 'it ends in the middle';
  // Who has put a stop there meant an end: "as the others do." is one.
  if (/[.?!:]$/.test(plain)) return undefined;
  const clause = end.split(/[,;:(]/).at(-1) ?? '';
  return SELDOM.test(clause) && !BINDS.test(clause) ? 'it ends in the middle' : undefined;
}
