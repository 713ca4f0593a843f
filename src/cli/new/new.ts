// `watchmux new operator`: writes the project in template/, under other names. The template is a working project, checked like
// any other code. npm leaves out files called .gitignore, so its name has no dot there.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { version } from '../../../package.json';
import { excerpt } from '../../pages/words.ts';
import type { Output } from '../output.ts';
import { quote, UsageError } from '../usage.ts';
import type { NewCommand } from './new-args.ts';

/** It is beside this file, and beside the built one. */
const TEMPLATE = fileURLToPath(new URL('./template', import.meta.url));

/** Writes the project. Returns the exit code. */
export async function newProject(
  { name, group, kind, plural }: NewCommand,
  output: Output,
  parent: string = '.',
): Promise<number> {
  const folder = join(parent, name);
  await checkEmpty(folder, name);
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
  const files = new Map<string, string>();
  for (const file of await readdir(TEMPLATE, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue;
    const from = join(file.parentPath ?? file.path, file.name);
    const path = from.slice(TEMPLATE.length + 1);
    const to = path === 'gitignore' ? '.gitignore' : renamed(path);
    if (files.has(to))
      throw new UsageError(
        `--kind is ${quote(kind)}: expected one whose file is not ${to}, which the project already has`,
        'new',
      );
    const text = renamed(await readFile(from, 'utf8'));
    files.set(to, path === 'package.json' ? text.replace('"watchmux": "*"', `"watchmux": "^${version}"`) : text);
  }
  for (const [path, text] of files) {
    const file = join(folder, path);
    try {
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, text);
    } catch (error) {
      process.stderr.write(`watchmux new: cannot write ${quote(join(name, path))}: ${excerpt((error as Error).message)}\n`);
      return 1;
    }
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

If npm does not find watchmux, say where it is: npm pkg set dependencies.watchmux=file:PATH
Its README.md says how it runs in a cluster.
`;

async function checkEmpty(folder: string, name: string): Promise<void> {
  try {
    if ((await readdir(folder)).length === 0) return;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return;
    throw new UsageError(code === 'ENOTDIR' ? `${quote(name)} is a file: choose another name` : message, 'new');
  }
  throw new UsageError(`the folder ${quote(name)} is not empty: choose another name, or empty it`, 'new');
}
