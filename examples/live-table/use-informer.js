// @ts-check
import { useEffect, useMemo, useSyncExternalStore } from 'react';

/**
 * Runs an informer while the component is mounted, and renders once per frame if its store or its state has changed. Strict Mode
 * runs effects twice, but an informer runs only once: so `create` makes a new one each time.
 *
 * @template T
 * @template {string} Name
 * @param {(onStateChange: () => void) => import('watchmux/cache').Informer<T, Name>} create
 */
export function useInformer(create) {
  const source = useMemo(() => createSource(create), [create]);
  const { run } = source;
  useEffect(run, [run]);
  useSyncExternalStore(source.subscribe, source.version);
  return source.current();
}

/** @template T @template {string} Name @param {(onStateChange: () => void) => import('watchmux/cache').Informer<T, Name>} create */
function createSource(create) {
  /** @type {Set<() => void>} */
  const listeners = new Set();
  let version = 0;
  let due = false;
  const render = () => {
    due = false;
    version++;
    for (const listener of listeners) listener();
  };
  const changed = () => {
    // Many changes may come within one frame.
    if (!due) requestAnimationFrame(render);
    due = true;
  };
  let informer = create(changed);
  return {
    current: () => informer,
    version: () => version,
    /** @param {() => void} listener */
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    run() {
      if (informer.started) informer = create(changed);
      informer.addHandler({ onAdd: changed, onUpdate: changed, onDelete: changed });
      void informer.run();
      const running = informer;
      return () => void running.stop();
    },
  };
}
