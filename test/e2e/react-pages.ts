// What the hooks of watchmux/react do in a page, with one version of React or another.
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CHROMIUM_BROWSER } from './browsers.ts';
import { until } from './cli.ts';
import { Backend, Pages } from './vite-pages.ts';

/** Counts how often each component renders, and how few rows there ever are. */
const PAGE = `
import { Component, memo, StrictMode, version } from 'react';
import { createRoot } from 'react-dom/client';
import { useCollection, useConnection, useWatch } from 'watchmux/react';
import { fromHub, Informer } from 'watchmux/cache';
import { connect } from 'watchmux/client';

const query = new URLSearchParams(location.search);
const renders = {};
const count = (name) => {
  renders[name] = (renders[name] ?? 0) + 1;
};
const informer = new Informer(fromHub((options) => connect('/watch', { ...options, maxAttempts: 0 })), {
  keyOf: ({ id }) => id,
  minMs: 20,
  maxMs: 50,
});
if (query.has('informer')) void informer.run();
const source = query.has('informer') ? informer : '/watch';
const byTotal = (one, other) => one.total - other.total;

const Row = memo(function Row({ order }) {
  count(order.id);
  return <li>{order.id}: {order.total}</li>;
});
function List() {
  count('list');
  const { items } = useCollection(source, { sort: byTotal });
  return <ul>{items.map((order) => <Row key={order.id} order={order} />)}</ul>;
}
function Large({ than }) {
  // Another function with each render.
  const { total } = useCollection(source, { selector: (order) => order.total > than });
  return <output>{total}</output>;
}
const fold = {
  initial: '',
  reduce: (state, { type, object }) => {
    if (object.total === 666) throw new Error('an evil order');
    return type === 'DELETED' ? state : object.id;
  },
};
function Last() {
  // With \`careless\`, another function with each render.
  return <b>{useWatch(source, query.has('careless') ? { ...fold, headers: () => ({}) } : fold).state}</b>;
}
function Status() {
  count('status');
  return <p>{useConnection(source).status}</p>;
}
class Boundary extends Component {
  state = {};
  static getDerivedStateFromError(error) {
    return { error };
  }
  render() {
    return this.state.error ? <i>{this.state.error.message}</i> : this.props.children;
  }
}
const App = () => (
  <>
    <Status />
    <List />
    <Large than={1} />
    <Boundary><Last /></Boundary>
  </>
);
const main = document.querySelector('main');
let fewest = Infinity;
new MutationObserver(() => {
  fewest = Math.min(fewest, document.querySelectorAll('li').length);
}).observe(main, { childList: true, subtree: true });
let root;
Object.assign(window, {
  version,
  renders,
  fewest: () => fewest,
  watchFewest: () => {
    fewest = Infinity;
  },
  unmount: () => root.unmount(),
  mount: () => {
    root = createRoot(main);
    root.render(query.has('strict') ? <StrictMode><App /></StrictMode> : <App />);
  },
});
window.mount();
`;

/** Defines the tests. `modules`: where another React is. */
export function describeHooks(version: string, modules?: string): void {
  describe.skipIf(CHROMIUM_BROWSER.missing)(`watchmux/react with React ${version}`, () => {
    let browser: Browser;
    let backend: Backend;
    let pages: Pages;
    let page: Page;
    let url: string;
    const faults: string[] = [];

    beforeAll(async () => {
      browser = await CHROMIUM_BROWSER.launch();
      backend = new Backend();
      await backend.start();
      pages = new Pages();
      pages.write('main.jsx', PAGE);
      pages.write('index.html', '<!doctype html><main></main><script type="module" src="/main.jsx"></script>');
      url = await pages.serve(backend.port, modules);
    });

    afterAll(async () => {
      await browser?.close();
      await pages?.close();
      await backend?.stop();
    });

    beforeEach(async () => {
      faults.length = 0;
      backend.orders.clear();
      for (const [id, total] of [
        ['a', 1],
        ['b', 2],
        ['c', 3],
      ] as const)
        await backend.put({ id, total });
      page = await browser.newPage();
      page.on('pageerror', (error) => faults.push(String(error)));
    });

    afterEach(async () => {
      await page.close();
      expect(faults).toEqual([]);
    });

    const shows = (status: string, ...rows: string[]): Promise<unknown> =>
      page.waitForFunction(
        `document.querySelector('p')?.textContent === '${status}' &&
         Array.from(document.querySelectorAll('li'), (li) => li.textContent).join() === '${rows.join()}'`,
      );
    const text = (selector: string, expected: string): Promise<unknown> =>
      page.waitForFunction(`document.querySelector('${selector}')?.textContent === '${expected}'`);
    const renders = (): Promise<Record<string, number>> => page.evaluate('({ ...renders })');

    test('all components share one connection, also in Strict Mode; after they have gone there is none', async () => {
      const before = backend.hub.stats().total.clients;
      await page.goto(`${url}/?strict`);
      expect(await page.evaluate('version')).toMatch(new RegExp(`^${version}\\.`));
      await shows('live', 'a: 1', 'b: 2', 'c: 3');
      await text('output', '2');
      expect(backend.clients).toBe(1);
      // As when another page is shown, with the same source.
      await page.evaluate('unmount()');
      await page.evaluate('mount()');
      await shows('live', 'a: 1', 'b: 2', 'c: 3');
      await backend.put({ id: 'd', total: 4 });
      await shows('live', 'a: 1', 'b: 2', 'c: 3', 'd: 4');
      await text('b', 'd');
      expect(backend.hub.stats().total.clients - before).toBe(1);
      await page.evaluate('unmount()');
      await until(() => backend.clients === 0);
    });

    test('a row renders when it has changed, and nothing else does', async () => {
      await page.goto(url);
      await shows('live', 'a: 1', 'b: 2', 'c: 3');
      const first = await renders();
      await backend.put({ id: 'b', total: 9 });
      await shows('live', 'a: 1', 'c: 3', 'b: 9');
      const { a = 0, b = 0, c = 0, list = 0, status = 0 } = first;
      expect(await renders()).toEqual({ a, b: b + 1, c, list: list + 1, status });
      // A change that is none renders nothing.
      await backend.put({ id: 'b', total: 9 });
      await backend.put({ id: 'a', total: 2 });
      await shows('live', 'a: 2', 'c: 3', 'b: 9');
      expect(await renders()).toEqual({ a: a + 1, b: b + 1, c, list: list + 2, status });
    });

    test('after a restart of the server, the page is never empty, and only what has changed renders', async () => {
      await page.goto(url);
      await shows('live', 'a: 1', 'b: 2', 'c: 3');
      const { a = 0, list = 0 } = await renders();
      await page.evaluate('watchFewest()');
      await backend.stop();
      await shows('reconnecting', 'a: 1', 'b: 2', 'c: 3');
      backend.orders.delete('b');
      backend.orders.set('c', { id: 'c', total: 5 });
      backend.orders.set('e', { id: 'e', total: 6 });
      await backend.start();
      await shows('live', 'a: 1', 'c: 5', 'e: 6');
      expect(await page.evaluate('fewest()')).toBe(3);
      expect(await renders()).toMatchObject({ a, list: list + 1 });
    });

    test('a final refusal is an error, and what was shown stays', async () => {
      await page.goto(url);
      await shows('live', 'a: 1', 'b: 2', 'c: 3');
      backend.refusal = 401;
      await backend.stop();
      await backend.start();
      await shows('signed out', 'a: 1', 'b: 2', 'c: 3');
      backend.refusal = 0;
    });

    test('what reduce throws reaches the error boundary', async () => {
      await page.goto(url);
      await shows('live', 'a: 1', 'b: 2', 'c: 3');
      await backend.put({ id: 'evil', total: 666 });
      await text('i', 'an evil order');
      await shows('live', 'a: 1', 'b: 2', 'c: 3', 'evil: 666');
      faults.length = 0; // React 18 also reports what a boundary has caught
    });

    test('an option that is another function in each render is an error, and no storm of connections', async () => {
      await page.goto(`${url}/?careless`);
      await text('i', 'the source is a new function in each render: define it outside the component');
      await shows('live', 'a: 1', 'b: 2', 'c: 3');
      faults.length = 0; // React 18 also reports what a boundary has caught
    });

    test('an informer is a source, too', async () => {
      await page.goto(`${url}/?informer&strict`);
      await shows('live', 'a: 1', 'b: 2', 'c: 3');
      await backend.put({ id: 'b', total: 9 });
      await backend.remove('a');
      await shows('live', 'c: 3', 'b: 9');
      await page.evaluate('watchFewest()');
      await backend.stop();
      await shows('reconnecting', 'c: 3', 'b: 9');
      backend.orders.delete('b');
      await backend.start();
      await shows('live', 'c: 3');
      expect(await page.evaluate('fewest()')).toBe(1);
    });
  });
}
