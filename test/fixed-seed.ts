import fc from 'fast-check';

const given = process.env.WATCHMUX_SEED;
if (given !== undefined && !Number.isSafeInteger(Number(given))) {
  throw new Error(`WATCHMUX_SEED is ${given}, and should be a whole number`);
}
// The same runs for every mutant, without shrinking: only whether one fails matters. Else those of the commit, of which .ci/run takes the seed.
fc.configureGlobal(given === undefined ? { seed: 20_251_120, endOnFailure: true } : { seed: Number(given) });
