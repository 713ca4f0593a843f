/** A URL for a message, which often ends up in a log. */
export function withoutSecret(url: URL): string {
  const shown = new URL(url);
  shown.username = shown.password = '';
  return shown.href;
}
