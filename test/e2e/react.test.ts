// The hooks of watchmux/react in Chromium, with the React that is installed. test/peers/react-18.test.ts has the other one.
import { describeHooks } from './react-pages.ts';

describeHooks('19');
