// TypeScript that is written by a program: what the compiler says of it, under the strictest settings, without writing it to a disk.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  lib: ['lib.es5.d.ts'], // which is parsed and checked in no time,
  ...{ types: [], skipLibCheck: true },
  ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noPropertyAccessFromIndexSignature: true },
  ...{ noUnusedLocals: true, noUnusedParameters: true, isolatedModules: true, verbatimModuleSyntax: true },
  ...{ isolatedDeclarations: true, declaration: true, erasableSyntaxOnly: true, allowImportingTsExtensions: true, noEmit: true },
};

const FOLDER = fileURLToPath(new URL('../compiled', import.meta.url));

/** What written files import, without all that is behind it. */
const OPERATOR = `
export interface ResourceType { readonly group?: string; readonly version: string; readonly plural: string; readonly kind?: string; readonly namespaced?: boolean }
export type Kind<T extends object> = (ResourceType | { readonly apiVersion: string; readonly kind: string }) & { readonly of?: T };
export declare function kind<T extends object>(type: ResourceType): ResourceType & Kind<T>;
export declare function kind<T extends object>(type: { readonly apiVersion: string; readonly kind: string }): Kind<T>;
`;

/** Libraries are parsed once. */
const parsed: Map<string, ts.SourceFile | undefined> = new Map();

/** What is wrong with these files, by their names: a line each. `more` are options that replace some of the strictest. */
export function faultsOf(files: Readonly<Record<string, string>>, more: ts.CompilerOptions = {}): readonly string[] {
  const texts = new Map(Object.entries(files).map(([name, text]) => [`${FOLDER}/${name}`, text]));
  texts.set(`${FOLDER}/operator.d.ts`, OPERATOR);
  const options = { ...OPTIONS, ...more, paths: { 'watchmux/operator': [`${FOLDER}/operator.d.ts`] } };
  // The folder is not there, and need not be.
  const { directoryExists: _, ...real } = ts.createCompilerHost(options);
  const host: ts.CompilerHost = {
    ...real,
    fileExists: (name) => texts.has(name) || existsSync(name),
    readFile: (name) => texts.get(name) ?? (existsSync(name) ? readFileSync(name, 'utf8') : undefined),
    getSourceFile: (name, language) => {
      const own = texts.get(name);
      if (own !== undefined) return ts.createSourceFile(name, own, language);
      if (!parsed.has(name)) {
        parsed.set(name, existsSync(name) ? ts.createSourceFile(name, readFileSync(name, 'utf8'), language) : undefined);
      }
      return parsed.get(name);
    },
  };
  const program = ts.createProgram([...texts.keys()], options, host);
  const found = [...ts.getPreEmitDiagnostics(program)];
  return found.map(({ file, start, messageText }) => {
    const line = file && start !== undefined ? file.getLineAndCharacterOfPosition(start).line : 0;
    const shown = file?.text.split('\n')[line]?.trim() ?? '';
    return `${file?.fileName.slice(FOLDER.length + 1)}:${line + 1}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}: ${shown}`;
  });
}
