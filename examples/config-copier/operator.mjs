// @ts-check
import { fileURLToPath } from 'node:url';
import { parseLabelSelector } from 'watchmux/cache';
import { loadCluster } from 'watchmux/kubernetes';
import {
  controller,
  ensureFinalizer,
  equals,
  isDeleting,
  kind,
  labelsChanged,
  Operator,
  removeFinalizer,
} from 'watchmux/operator';

/**
 * A ConfigMap or a Secret.
 *
 * @typedef {import('watchmux/cache').KubernetesObject & {
 *   data?: Record<string, string>, binaryData?: Record<string, string>, type?: string }} Config
 */

/** At what is copied: the namespaces, as a selector of their labels. */
const TO = 'copier.example.com/to';
/** At a copy: the key of what it is a copy of. */
const FROM = 'copier.example.com/from';
const FINALIZER = 'copier.example.com/copies';

/** @type {import('watchmux/operator').Kind<Config>} */
export const CONFIG_MAPS = kind('configmaps/v1');
/** @type {import('watchmux/operator').Kind<Config>} */
export const SECRETS = kind('secrets/v1');
const NAMESPACES = kind('namespaces/v1');

/** @param {Config | undefined} object */
const fromOf = (object) => object?.metadata?.annotations?.[FROM];
/** Copies are not copied. @param {Config | undefined} object */
const toOf = (object) => (fromOf(object) === undefined ? object?.metadata?.annotations?.[TO] : undefined);
/** What was copied before has the finalizer. @param {Config | undefined} object */
const isSource = (object) => toOf(object) !== undefined || object?.metadata?.finalizers?.includes(FINALIZER) === true;
/** What both have. @param {Config} object */
const contentOf = ({ data, binaryData, type }) => ({ data, binaryData, type });

/** Keeps copies of the objects of one kind. @param {import('watchmux/operator').Kind<Config>} KIND */
export const copier = (KIND) =>
  controller({
    for: {
      kind: KIND,
      when: (old, object) => isSource(old) || isSource(object),
      indexers: {
        from: (object) => [fromOf(object) ?? []].flat(),
        copied: (object) => (toOf(object) === undefined ? [] : ['yes']),
      },
    },
    watches: [
      // Somebody changed or deleted a copy.
      { kind: KIND, keysOf: (copy) => [fromOf(copy) ?? []].flat() },
      {
        kind: NAMESPACES,
        when: labelsChanged,
        keysOf: (_, { store }) =>
          store(KIND)
            .byIndex('copied', 'yes')
            .map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`),
      },
    ],
    async reconcile({ object, key, name, namespace, get, store, resource, apply, events }) {
      const configs = resource(KIND);
      const to = isDeleting(object) ? undefined : toOf(object);
      let wanted = /** @type {string[]} */ ([]); // the namespaces
      if (object && to !== undefined) {
        try {
          const selector = parseLabelSelector(to);
          const chosen = store(NAMESPACES)
            .list()
            .filter((each) => !isDeleting(each) && selector.matches(each.metadata?.labels ?? {}));
          wanted = chosen.map(({ metadata }) => metadata?.name ?? '').filter((each) => each !== namespace);
        } catch (error) {
          return events.warning('InvalidSelector', `${TO}: ${/** @type {Error} */ (error).message}`);
        }
        await ensureFinalizer(configs, object, FINALIZER);
      }

      for (const target of wanted) {
        const there = get(KIND, `${target}/${name}`);
        if (there && fromOf(there) !== key) events.warning('NameTaken', `there is another ${name} in ${target}`);
        else if (object && !equals(there && contentOf(there), contentOf(object)))
          await apply(KIND, { metadata: { namespace: target, name, annotations: { [FROM]: key } }, ...contentOf(object) });
      }
      for (const { metadata = {} } of store(KIND).byIndex('from', key)) {
        const isWanted = metadata.name === name && wanted.includes(metadata.namespace ?? '');
        if (!isWanted) await configs.delete(`${metadata.namespace}/${metadata.name}`, { preconditions: { uid: metadata.uid } });
      }
      if (object && to === undefined) await removeFinalizer(configs, object, FINALIZER);
    },
  });

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const cluster = await loadCluster();
  const operator = new Operator({ cluster, name: 'config-copier', leaderElection: true });
  await operator.controller(copier(CONFIG_MAPS)).controller(copier(SECRETS)).run();
  cluster.close();
}
