/** The part of the global object of a page, or of its workers, that tells of its network. Elsewhere there is none of it. */
interface Page {
  addEventListener?(type: string, listener: () => void, options: { signal: AbortSignal }): void;
  readonly document?: { readonly visibilityState: string };
}

/** What a client is told about the page that it runs in. */
export interface PageListener {
  /** The network has come, has gone, or is another one. */
  network(): void;
  /** The page is looked at again. */
  shown(): void;
}

/** Whether somebody may be looking at the page. */
export function isShown(): boolean {
  return (globalThis as Page).document?.visibilityState === 'visible';
}

/** Tells a listener about the page. Returns a function that ends that. */
export function listenToPage({ network, shown }: PageListener): () => void {
  const page = globalThis as Page;
  const end = new AbortController();
  const { signal } = end;
  const onVisibility = (): void => {
    if (isShown()) shown();
  };
  page.addEventListener?.('online', network, { signal });
  page.addEventListener?.('offline', network, { signal });
  page.addEventListener?.('visibilitychange', onVisibility, { signal });
  return () => end.abort();
}
