/** What tells a file from all others of its directory. On Windows, versions of Node have differed in what they say of `dev`. */
export function identityOf({ dev, ino }: { readonly dev: bigint; readonly ino: bigint }): string {
  return process.platform === 'win32' ? `${ino}` : `${dev}/${ino}`;
}
