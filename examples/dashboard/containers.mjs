// @ts-check
// Writes lines like those of `docker events --format '{{json .}}'`: containers that start, die and start again. COUNT limits the
// number of lines (default: no limit). EVERY is the interval in milliseconds.
const NAMES = ['web', 'api', 'db', 'cache', 'queue', 'mail'];
/** @type {Map<string, boolean>} */
const running = new Map();

/** @param {string} name @param {string} action @param {Record<string, string>} [more] */
function line(name, action, more = {}) {
  const now = Date.now();
  const attributes = { image: `example/${name}:1.${name.length}`, name, ...more };
  const actor = { ID: name.padEnd(12, '0'), Attributes: attributes };
  const time = { time: Math.floor(now / 1_000), timeNano: now * 1_000_000 };
  return JSON.stringify({ Type: 'container', Action: action, Actor: actor, scope: 'local', ...time });
}

let count = 0;
const most = Number(process.env.COUNT ?? Number.POSITIVE_INFINITY);
const timer = setInterval(
  () => {
    const name = NAMES[count < NAMES.length ? count : Math.floor(Math.random() * NAMES.length)] ?? 'web';
    const up = running.get(name) === true;
    running.set(name, !up);
    const exitCode = Math.random() < 0.3 ? '137' : '0';
    process.stdout.write(`${up ? line(name, 'die', { exitCode }) : line(name, 'start')}\n`);
    if (++count >= most) clearInterval(timer);
  },
  Number(process.env.EVERY ?? 400),
);
// The reader has ended.
process.stdout.on('error', () => process.exit(0));
