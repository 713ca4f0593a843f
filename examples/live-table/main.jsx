import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { fromHub, Informer } from 'watchmux/cache';
import { connect } from 'watchmux/client';
import { useInformer } from './use-informer.js';

const STATES = ['queued', 'running', 'done'];

// The informer reconnects, so the connection does not have to, and its state tells whether the page is offline.
const jobsOf = (onStateChange) =>
  new Informer(
    fromHub((options) => connect('/watch', { ...options, maxAttempts: 0 })),
    {
      indexers: { state: (job) => [job.state] },
      maxMs: 5_000,
      onStateChange,
    },
  );

function Jobs() {
  const [chosen, choose] = useState('running');
  const informer = useInformer(jobsOf);
  const { store, state } = informer;
  const offline = !state.connected && (informer.hasSynced || state.failures > 0);
  const jobs = store
    .byIndex('state', chosen)
    .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name, 'en', { numeric: true }));
  return (
    <section className={offline ? 'offline' : ''}>
      <p role="status">
        {offline
          ? `offline: showing ${store.size} jobs as they were`
          : informer.hasSynced
            ? `live: ${store.size} jobs`
            : 'loading'}
      </p>
      <nav>
        {STATES.map((name) => (
          <button key={name} type="button" aria-pressed={name === chosen} onClick={() => choose(name)}>
            {name} ({store.indexKeys('state', name).length})
          </button>
        ))}
      </nav>
      <table>
        <thead>
          <tr>
            <th>job</th>
            <th>room</th>
            <th>progress</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map(({ metadata, progress }) => (
            <tr key={metadata.name}>
              <td>{metadata.name}</td>
              <td>{metadata.namespace}</td>
              <td>{progress} %</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

createRoot(document.querySelector('main')).render(
  <StrictMode>
    <Jobs />
  </StrictMode>,
);
