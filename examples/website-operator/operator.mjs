// @ts-check
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { loadCluster } from 'watchmux/kubernetes';
import { controller, findCondition, isDeleting, kind, Operator, setCondition } from 'watchmux/operator';

/**
 * @typedef {import('watchmux/cache').KubernetesObject & {
 *   spec: { files: Record<string, string>, replicas?: number, image?: string },
 *   status?: { replicas?: number, selector?: string, conditions?: import('watchmux/operator').Condition[] },
 * }} Website
 * @typedef {import('kubernetes-types/apps/v1.js').Deployment} Deployment
 */

/** @type {import('watchmux/operator').Kind<Website>} */
export const WEBSITES = kind('websites.example.com/v1');
/** @type {import('watchmux/operator').Kind<Deployment>} */
export const DEPLOYMENTS = kind('deployments.apps/v1');

/**
 * The Deployment of a website: nginx, with the files of the ConfigMap.
 *
 * @param {Website['spec']} spec
 * @param {Record<string, string>} labels
 * @param {string} name
 */
function deploymentOf({ files, replicas = 1, image = 'nginx:1-alpine' }, labels, name) {
  // Pods read files late, and some programs never: new files make new pods.
  const hash = createHash('sha256').update(JSON.stringify(files)).digest('hex').slice(0, 16);
  return {
    metadata: { labels },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels, annotations: { 'example.com/files': hash } },
        spec: {
          containers: [
            {
              name: 'web',
              image,
              ports: [{ name: 'http', containerPort: 80 }],
              readinessProbe: { httpGet: { path: '/', port: 'http' } },
              volumeMounts: [{ name: 'files', mountPath: '/usr/share/nginx/html', readOnly: true }],
            },
          ],
          volumes: [{ name: 'files', configMap: { name } }],
        },
      },
    },
  };
}

/**
 * How far the Deployment is.
 *
 * @param {Deployment} deployment
 * @returns {{ status: 'True' | 'False', reason: string, message: string }}
 */
function readiness({ metadata, spec, status = {} }) {
  const { readyReplicas = 0, updatedReplicas = 0, observedGeneration } = status;
  const wanted = spec?.replicas ?? 1;
  const isCurrent = observedGeneration === metadata?.generation && updatedReplicas === wanted;
  const message = `${isCurrent ? readyReplicas : 0} of ${wanted} pods are ready`;
  return isCurrent && readyReplicas === wanted
    ? { status: 'True', reason: 'Available', message }
    : { status: 'False', reason: 'Deploying', message };
}

export const websites = controller({
  for: WEBSITES,
  owns: [DEPLOYMENTS, 'services/v1', 'configmaps/v1'],
  async reconcile({ object, name, apply, updateStatus, events }) {
    if (object === undefined || isDeleting(object)) return; // what it owns goes with it
    const labels = { 'app.kubernetes.io/name': 'website', 'app.kubernetes.io/instance': name };

    await apply('configmaps/v1', { metadata: { labels }, data: object.spec.files });
    const deployment = await apply(DEPLOYMENTS, deploymentOf(object.spec, labels, name));
    const ports = [{ name: 'http', port: 80, targetPort: 'http' }];
    await apply('services/v1', { metadata: { labels }, spec: { selector: labels, ports } });

    const ready = readiness(deployment);
    if (findCondition(object, 'Ready')?.reason !== ready.reason) events.normal(ready.reason, ready.message);
    await updateStatus((website) => {
      setCondition(website, { type: 'Ready', ...ready, observedGeneration: object.metadata?.generation });
      const selector = Object.entries(labels).map((label) => label.join('='));
      website.status = { ...website.status, replicas: deployment.status?.replicas ?? 0, selector: selector.join() };
    });
  },
});

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const cluster = await loadCluster();
  const operator = new Operator({
    cluster,
    name: 'website-operator',
    leaderElection: true,
    listen: { port: Number(process.env.PORT ?? 8080) },
  });
  await operator.controller(websites).run();
  cluster.close();
}
