export interface Block {
  readonly page: string;
  readonly heading: string;
  readonly language: string;
  readonly code: string;
  /** What the comment before it says, such as `react orders.tsx`. */
  readonly mark: string | undefined;
  /** The text block right behind it, or behind one sentence. */
  readonly prints: string | undefined;
}
export declare const ROOT: string;
export declare const PAGES: readonly string[];
export declare const BLOCKS: readonly Block[];
export declare const PROGRAMS: readonly Block[];
export declare function readDocument(path: string): string;
export declare function markedBlock(mark: string): Block;
