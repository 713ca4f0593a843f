import type { AdmissionHooks } from '../../apiserver/admission.ts';
import type { KubernetesObject } from '../../cache/object.ts';
import type { ResourceType } from '../../cache/resource-client.ts';
import { checkedType } from '../../kubernetes/resource.ts';
import { checkOptions, checkText, invalid, isRecord } from '../../watch/errors.ts';

/** Options of {@link webhookConfigurations}. */
export interface WebhookConfigurationsOptions {
  /**
   * The name of both objects, and the end of the webhooks' names, which clients see: a domain name of at least two labels, such as
   * `hooks.example.com`.
   */
  readonly name: string;
  /** What is reviewed, such as `websites.example.com/v1`, with its subresources. */
  readonly resources: readonly (string | ResourceType)[];
  /** Where the webhooks are: a URL, to which `/mutate` and `/validate` are added, or a service of the cluster. */
  readonly at: string | { readonly namespace: string; readonly name: string; readonly port?: number | undefined };
  /**
   * The certificates, in PEM, of the CA that issued the server's. Default: none, for example because cert-manager fills it in.
   */
  readonly ca?: string | Uint8Array | undefined;
  /** Further members of each webhook, such as `failurePolicy` or `objectSelector`. */
  readonly more?: Readonly<Record<string, unknown>> | undefined;
}

const NAMES = ['name', 'resources', 'at', 'ca', 'more'] as const;
const GROUP = 'admissionregistration.k8s.io';

/**
 * The objects that tell a kube-apiserver to ask webhooks what an `ApiServer` asks its hooks: a MutatingWebhookConfiguration if there is
 * `mutate`, and a ValidatingWebhookConfiguration if there is `validate`. Apply them, or print them into a manifest.
 *
 * @throws {WatchError} INVALID_ARGUMENT for an unknown or invalid option.
 */
export function webhookConfigurations(hooks: AdmissionHooks<never>, options: WebhookConfigurationsOptions): KubernetesObject[] {
  const { name, resources, at, ca, more } = checkOptions(options, NAMES);
  checkText('name', name);
  if (!Array.isArray(resources)) throw invalid('resources', resources, 'a list');
  if (typeof at !== 'string' && !isRecord(at)) throw invalid('at', at, 'a URL, or a service');
  const caBundle = ca !== undefined && { caBundle: Buffer.from(ca).toString('base64') };
  const rulesFor = (operations: readonly string[]): object[] =>
    resources.map((each) => {
      const { group = '', version, plural } = checkedType(each);
      return { operations, apiGroups: [group], apiVersions: [version], resources: [plural, `${plural}/*`] };
    });
  const made = (kind: string, hook: 'mutate' | 'validate', operations: readonly string[]): KubernetesObject[] => {
    if (!hooks[hook]) return [];
    const clientConfig = typeof at === 'string' ? { url: `${at}/${hook}` } : { service: { ...at, path: `/${hook}` } };
    const webhook = {
      ...{ name: `${hook}.${name}`, rules: rulesFor(operations), clientConfig: { ...clientConfig, ...caBundle } },
      ...{ sideEffects: 'None', admissionReviewVersions: ['v1'], ...more },
    };
    return [{ apiVersion: `${GROUP}/v1`, kind, metadata: { name }, webhooks: [webhook] } as KubernetesObject];
  };
  return [
    ...made('MutatingWebhookConfiguration', 'mutate', ['CREATE', 'UPDATE']),
    ...made('ValidatingWebhookConfiguration', 'validate', ['CREATE', 'UPDATE', 'DELETE']),
  ];
}
