// All temporary folders of a run are in one, also those of the programs that tests start: it goes with the run, whatever was skipped,
// has failed, or was killed before it could tidy up.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const NAME = 'watchmux-run-';

/** Called by vitest, once for each of its projects. */
export default function setup(): (() => void) | undefined {
  if (basename(tmpdir()).startsWith(NAME)) return undefined;
  const folder = mkdtempSync(join(tmpdir(), NAME));
  for (const name of ['TMPDIR', 'TMP', 'TEMP']) process.env[name] = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}
