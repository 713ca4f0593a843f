import type { Server } from 'node:http';

/** What TypeDoc has of a module or an export. */
export interface Reflection {
  readonly name: string;
  readonly children?: readonly Reflection[];
  isReference(): boolean;
  getTargetReflectionDeep?(): Reflection;
}
export interface Context {
  readonly imports?: ReadonlyMap<string, string>;
  readonly module?: string;
}
export declare class Names {
  constructor(modules: readonly Reflection[]);
  find(span: string, context?: Context): Reflection | undefined;
}
export declare function importsOf(text: string): Map<string, string>;
export declare function mentionsIn(text: string, names: Names): Map<Reflection, number>;

export declare const DOCUMENTS: readonly string[];
export declare const GROUPS: readonly { readonly title: string; readonly documents: readonly string[] }[];
export declare const ENTRY_POINTS: readonly { readonly name: string; readonly source: string }[];
export declare function anchorOf(heading: string): string;
export declare function linkedFiles(): string[];
export declare function sectionsOf(text: string): { readonly heading: string; readonly title: string; readonly text: string }[];

export interface Checked {
  readonly faults: readonly string[];
  readonly pages: number;
  readonly links: number;
}
export declare function check(folder: string, options?: { readonly forbidden?: readonly string[] }): Checked;
export declare function serve(folder: string, options?: { readonly port?: number; readonly base?: string }): Promise<Server>;

export interface Scores {
  readonly [category: string]: { readonly score: number; readonly failed: readonly string[] };
}
export declare function scoresOf(
  url: string,
  options: { readonly chromium: string; readonly enough: number; readonly runs: number },
): Promise<Scores>;
