// `watchmux new operator`: writes the project in template/, under other names. That is a project that works, so it is checked like any
// other code; npm leaves out files called .gitignore, so there that one has no dot.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { version } from '../../../package.json';
import type { Output } from '../output.ts';
import { quote, UsageError } from '../usage.ts';
import type { NewCommand } from './new-args.ts';

/** Beside this file, and beside the built one. */
const TEMPLATE = fileURLToPath(new URL('./template', import.meta.url));

/** Writes the project. Returns the exit code. */
export async function newProject({ name, group, kind }: NewCommand, output: Output, parent: string = '.'): Promise<number> {
  const folder = join(parent, name);
  await checkEmpty(folder, name);
  const plural = pluralOf(kind);
  const names: Readonly<Record<string, string>> = {
    'sample-operator': name,
    'sample.example': group,
    samples: plural,
    sample: kind.toLowerCase(),
    Sample: kind,
    SAMPLES: plural.toUpperCase(),
  };
  const renamed = (text: string): string =>
    text.replace(/sample-operator|sample\.example|samples|sample|Sample|SAMPLES/g, (word) => names[word] ?? word);
  for (const file of await readdir(TEMPLATE, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue;
    const from = join(file.parentPath ?? file.path, file.name);
    const path = from.slice(TEMPLATE.length + 1);
    const to = join(folder, path === 'gitignore' ? '.gitignore' : renamed(path));
    const text = renamed(await readFile(from, 'utf8'));
    await mkdir(dirname(to), { recursive: true });
    await writeFile(to, path === 'package.json' ? text.replace('"watchmux": "*"', `"watchmux": "^${version}"`) : text);
  }
  await output.write(saying(name, `${plural}.${group}`));
  return 0;
}

const saying = (name: string, resource: string): string => `${name}/ has an operator for ${resource}. Next:

  cd ${name}
  npm install
  npm test                                # builds it, and tests the controller in process
  kubectl apply -f manifests/crd.yaml
  npm start                               # with your kubeconfig's cluster and rights

Its README.md says how it runs in a cluster.
`;

async function checkEmpty(folder: string, name: string): Promise<void> {
  try {
    if ((await readdir(folder)).length === 0) return;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return;
    throw new UsageError(code === 'ENOTDIR' ? `${quote(name)} is a file: expected no such file` : message, 'new');
  }
  throw new UsageError(`there is something in the folder ${quote(name)}: expected an empty folder, or none`, 'new');
}

/** As an English word, in lower case. */
function pluralOf(kind: string): string {
  const word = kind.toLowerCase();
  if (/[^aeiou]y$/.test(word)) return `${word.slice(0, -1)}ies`;
  return /(?:s|x|z|ch|sh)$/.test(word) ? `${word}es` : `${word}s`;
}
