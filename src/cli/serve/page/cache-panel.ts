import type { CacheStats, ResourceStats } from '../../../apiserver/stats.ts';
import { byId, say } from '../../page/elements.ts';
import { count, plural, short, size, visible } from '../../page/words.ts';
import type { PageResource } from './catalog.ts';

/** The cache of the chosen resource: who watches it, how far behind they are, and how far back a watch may begin. */
export function showCache({ plural: name }: PageResource, stats: ResourceStats | undefined): void {
  say(byId('cache-title'), `Cache of ${visible(name)}`);
  const { watchers = 0, behind = 0, lag = 0, cache } = stats ?? {};
  const numbers = { watchers, behind, lag, views: cache?.views ?? 0, gaps: cache?.gaps ?? 0 };
  for (const [id, value] of Object.entries(numbers)) say(byId(`cache-${id}`), short(value));
  byId('cache-behind').classList.toggle('some', behind > 0);
  say(byId('cache-window'), cache === undefined ? '' : windowWords(cache));
  say(byId('cache-note'), cache === undefined ? 'No client has asked for it yet.' : noteWords(cache, watchers));
}

/** How far back a watch may begin. */
export function windowWords({ window, resourceVersion }: CacheStats): string {
  if (window.items === 0) return `Version ${versionText(resourceVersion)}. No past changes are kept yet.`;
  const kept = `${plural(window.items, 'change')} kept, ${size(window.bytes)}`;
  return `Window: a watch can begin at any version from ${versionText(window.since)} to ${versionText(resourceVersion)} (${kept}).`;
}

/** Further remarks. */
export function noteWords({ phase, error, watches, fellBehind }: CacheStats, watchers: number): string {
  const inProcess = watches - watchers;
  const notes = [
    ...(phase === 'ready' ? [] : [`Not ready${error === undefined ? '' : `: ${error}`}.`]),
    ...(inProcess > 0 ? [`${plural(inProcess, 'more watch', 'more watches')} in the server itself.`] : []),
    ...(fellBehind > 0 ? [`${plural(fellBehind, 'watch was', 'watches were')} too slow, and got a 410.`] : []),
  ];
  return notes.join(' ');
}

/** Versions are decimal numbers here, and easier to read with separators. */
function versionText(version: string): string {
  const number = Number(version);
  return Number.isSafeInteger(number) && version !== '' ? count(number) : version || 'none';
}
