// The state of this directory before a release, and the address of its repository.
//
//     node config/release.mjs repository https://github.com/you/watchmux    writes it into package.json and README.md
//     node config/release.mjs check                                         says what is missing; npm publish runs it
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

/** The command in README.md that says how to get a copy. Its address is ADDRESS until there is one. */
const CLONE = /^git clone (\S+) watchmux\b/m;

const read = (path) => readFileSync(path, 'utf8');

/** What package.json says for an address. */
function fieldsOf(address) {
  const url = address.replace(/\/$/, '').replace(/\.git$/, '');
  return {
    homepage: `${url}#readme`,
    bugs: { url: `${url}/issues` },
    repository: { type: 'git', url: `git+${url}.git` },
  };
}

function write(address) {
  if (!URL.canParse(address) || !/^https:\/\/[^/]+\/[^/]+\/[^/]+$/.test(address))
    throw new Error(`expected an address such as https://github.com/you/watchmux, not ${address}`);
  const fields = fieldsOf(address);
  const { name, version, description, keywords, ...rest } = { ...JSON.parse(read('package.json')), ...fields };
  const manifest = { name, version, description, keywords, ...fields, ...rest };
  writeFileSync('package.json', `${JSON.stringify(manifest, null, 2)}\n`);
  const readme = read('README.md').replace(CLONE, `git clone ${cloned(fields)} watchmux`);
  writeFileSync('README.md', readme.replace(/ ADDRESS is [^.]+\./, ''));
}

/** What to clone. */
function cloned({ repository }) {
  return repository.url.replace(/^git\+/, '');
}

function check() {
  const manifest = JSON.parse(read('package.json'));
  const { version, repository } = manifest;
  const problems = [];
  if (repository === undefined)
    problems.push('package.json: there is no repository; run node config/release.mjs repository <its address>');
  else {
    const fields = fieldsOf(cloned(manifest));
    for (const [name, value] of Object.entries(fields))
      if (JSON.stringify(manifest[name]) !== JSON.stringify(value))
        problems.push(`package.json: ${name} is not that of the repository`);
    if (CLONE.exec(read('README.md'))?.[1] !== cloned(fields)) problems.push('README.md: it clones something else');
  }
  if (!new RegExp(`^## \\[${version.replaceAll('.', '\\.')}\\] - \\d{4}-\\d{2}-\\d{2}$`, 'm').test(read('CHANGELOG.md')))
    problems.push(`CHANGELOG.md: no section [${version}] with a date`);
  if (git('status', '--porcelain') !== '') problems.push('git: there are changes that are not committed');
  if (!git('tag', '--points-at', 'HEAD').split('\n').includes(`v${version}`))
    problems.push(`git: this commit is not tagged v${version}`);
  return problems;
}

/** Returns the output of git; empty if it fails. */
function git(...args) {
  return spawnSync('git', args, { encoding: 'utf8' }).stdout?.trim() ?? '';
}

const [command, address] = process.argv.slice(2);
if (command === 'repository' && address !== undefined) write(address);
else if (command === 'check') {
  const problems = check();
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exit(1);
} else {
  console.error('usage: node config/release.mjs check | repository <address>');
  process.exit(2);
}
