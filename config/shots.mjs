// The pictures of `npm run screenshots`: what is started, and what is shown of it.
//
// A shot is started with the arguments of `watchmux`; `feed` gets the child, whose stdin it may write; `show` gets the page (of
// playwright) when it has loaded, and returns when there is to be a picture. Each is taken at 390 and at 1,440 pixels, light and
// dark. Those that `keep` names are in docs/images, and in a document; all others are for who looks at them.

/** Lines as programs print them: of pino, of a test runner with its colours, and of syslog. */
function logLines() {
  const messages = [
    'request completed',
    'cache miss',
    'connection accepted',
    'slow query',
    'upstream timeout',
    'disk almost full',
  ];
  const levels = [30, 30, 20, 30, 50, 40, 30, 30, 30];
  const lines = Array.from({ length: 240 }, (_, i) => {
    const req = { method: i % 3 === 0 ? 'POST' : 'GET', url: `/orders/${1_000 + ((i * 37) % 900)}` };
    const level = levels[i % levels.length];
    return { level, msg: messages[i % messages.length], req, status: level === 50 ? 504 : 200, ms: 3 + ((i * 53) % 480) };
  });
  const text = [
    '\u001b[1;32mPASS\u001b[0m test/cart.test.ts \u001b[2m(31 ms)\u001b[0m',
    'Jan 31 10:00:00 db-1 postgres[812]: WARNING: checkpoints are too frequent',
  ];
  return [...lines.slice(0, -4), ...text, ...lines.slice(-4)];
}

const ORDERS = '/apis/example.com/v1/namespaces/default/orders';

/** Creates a kind with columns, and objects of it. */
async function createOrders(url) {
  const send = async (method, path, body) => {
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const response = await fetch(url + path, { method, headers: { 'content-type': type }, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  };
  const column = (name, type, jsonPath) => ({ name, type, jsonPath });
  await send('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: 'orders.example.com' } },
    spec: {
      ...{ group: 'example.com', scope: 'Namespaced', names: { plural: 'orders', kind: 'Order' } },
      versions: [
        {
          ...{ name: 'v1', served: true, storage: true },
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
          additionalPrinterColumns: [
            column('Phase', 'string', '.spec.phase'),
            column('Items', 'integer', '.spec.items'),
            column('Weight', 'string', '.spec.weight'),
            column('Age', 'date', '.metadata.creationTimestamp'),
          ],
        },
      ],
    },
  });
  while (!(await fetch(url + ORDERS)).ok) await new Promise((resolve) => setTimeout(resolve, 50));
  for (let at = 1; at <= 60; at++) {
    const labels = { app: ['web', 'api', 'shop'][at % 3], tier: at % 2 ? 'front' : 'back' };
    const spec = { phase: ['Paid', 'Packed', 'Sent', 'Open'][at % 4], items: (at * 7) % 12, weight: `${(at * 37) % 900}m` };
    await send('POST', ORDERS, { apiVersion: 'example.com/v1', kind: 'Order', metadata: { name: `order-${at}`, labels }, spec });
  }
  return send;
}

export const SHOTS = [
  {
    name: 'pipe',
    args: ['pipe', '--port', '0', '--capacity', '1000', '--replay', '1000', '--title', 'orders'],
    feed: (child) => {
      const lines = logLines().map((line) => `${JSON.stringify(line)}\n`);
      child.stdin.write(lines.join(''));
      // So that there is a rate.
      const timer = setInterval(() => child.stdin.write(lines.slice(-4).join('')), 250);
      child.on('exit', () => clearInterval(timer));
    },
    show: async (page, { width }) => {
      if (width > 1_000) await page.goto(`${page.url()}?columns=level+msg+req.method*110+req.url+status*80+ms*70`);
      await page.waitForFunction(() => document.querySelectorAll('#rows tr').length > 20);
      await page.waitForFunction(() => (document.querySelector('#rate-line')?.getAttribute('d')?.length ?? 0) > 80);
    },
    keep: ['1440-light', '390-dark'],
  },
  {
    name: 'serve',
    args: ['serve', '--port', '0'],
    feed: async (child, url) => {
      const send = await createOrders(url);
      let at = 0;
      const change = () => send('PATCH', `${ORDERS}/order-${(at++ % 60) + 1}`, { spec: { items: at } }).catch(() => {});
      const timer = setInterval(change, 250);
      child.on('exit', () => clearInterval(timer));
    },
    show: async (page) => {
      await page.goto(`${page.url()}?sort=name#orders.example.com%2Fv1`);
      await page.waitForFunction(() => document.querySelectorAll('#object-rows tr').length > 10);
      await page.waitForFunction(() => (document.querySelector('#rate-line')?.getAttribute('d')?.length ?? 0) > 60);
    },
    keep: ['1440-light'],
  },
  {
    name: 'object',
    args: ['serve', '--port', '0'],
    feed: async (child, url) => {
      const send = await createOrders(url);
      let items = 12;
      const change = () => send('PATCH', `${ORDERS}/order-7`, { spec: { items: items++, phase: items % 2 ? 'Packed' : 'Paid' } });
      const timer = setInterval(() => change().catch(() => {}), 2_000);
      child.on('exit', () => clearInterval(timer));
    },
    show: async (page, { width }) => {
      const object = encodeURIComponent('orders.example.com/v1 default/order-7');
      await page.goto(`${page.url()}?sort=name&object=${object}#orders.example.com%2Fv1`);
      if (width > 1_000) await page.waitForSelector('#detail-text mark');
      else {
        await page.click('#detail-tab-history');
        await page.waitForFunction(() => document.querySelectorAll('#detail-entries > li').length > 4);
      }
    },
    keep: ['1440-light', '390-dark'],
  },
];
