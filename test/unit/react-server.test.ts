// The hooks on a server: the state at the start, and no connection. In a page: test/e2e/react.test.ts.
import { createElement, type ReactNode } from 'react';
import { expect, test, vi } from 'vitest';
import { toCollection } from '../../src/bridge/client.ts';
import { Informer } from '../../src/cache/index.ts';
import { useCollection, useConnection, useWatch } from '../../src/react/index.ts';
import { FakeListWatcher } from '../../src/testing/index.ts';

// Nobody needs the types of react-dom but this test.
const server: string = 'react-dom/server';
const { renderToString } = (await import(server)) as { renderToString(node: ReactNode): string };

const fold = { initial: 'nothing', reduce: (state: string) => state };

test('renders the state at the start, of every kind of source, and opens nothing', () => {
  const fetch = vi.fn();
  const source = vi.fn(() => 'http://h.example/watch');
  const informer = new Informer(new FakeListWatcher<{ metadata: { name: string } }>());
  const shared = toCollection('http://h.example/watch', { fetch });
  function Page(): ReactNode {
    const shown = [
      useWatch('/watch', { ...fold, fetch }).state,
      useWatch(source, fold).ready,
      useCollection('/watch', { limit: 1, fetch }).total,
      useCollection(informer).items.length,
      useCollection(shared, { sort: () => 0 }).ready,
      useConnection('/watch', { fetch }).status,
      useConnection(shared).status,
    ];
    return createElement('p', null, shown.join(' '));
  }
  expect(renderToString(createElement(Page))).toBe('<p>nothing false 0 0 false connecting connecting</p>');
  expect(fetch).not.toHaveBeenCalled();
  expect(source).not.toHaveBeenCalled();
});
