export function bundle(): Promise<{ readonly outDir: string; readonly remove: () => void }>;
