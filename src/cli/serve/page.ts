import { builtScript, inOneFile, type LivePage } from '../page.ts';
import { STYLE } from '../page-style.ts';
import { objectsHtml } from './page-html.ts';
import { OBJECTS_STYLE } from './page-style.ts';

/**
 * Creates the page that `watchmux serve` shows to browsers at `/`: the resources, the objects of one of them, and the state of
 * the server. It contains no data of the server: it asks for that, as any client does, with a token if there is one. Its script
 * is `page/main.ts` with its imports.
 */
export function objectsPage(script: string = builtScript('objects-page.js')): LivePage {
  return inOneFile({ script, style: STYLE + OBJECTS_STYLE, toHtml: objectsHtml });
}
