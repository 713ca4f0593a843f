// The hooks of watchmux/react in Chromium, with React 18. test/e2e/react.test.ts has the one that is installed.
import { join } from 'node:path';
import { describe } from 'vitest';
import { component, isMissing } from '../components.ts';
import { describeHooks } from '../e2e/react-pages.ts';

const REACT = component('react-18');

describe.skipIf(isMissing(REACT))('the other version that is supported', () => {
  describeHooks('18', join(REACT.path, 'node_modules'));
});
