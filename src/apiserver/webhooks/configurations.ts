/**
 * The objects by which clients register webhooks: MutatingWebhookConfiguration and ValidatingWebhookConfiguration. Upstream:
 * `apis/admissionregistration`.
 */
import type { KubernetesObject } from '../../cache/object.ts';
import type { LabelSelector } from '../../selectors/label-selector.ts';
import { tried } from '../../watch/errors.ts';
import { OPERATIONS } from '../admission.ts';
import type { FieldCause, ResourceDefinition } from '../definition.ts';
import { AGE, finalizersOf } from '../kinds/common.ts';
import { byKey, part, REQUIRED, type Row, type Shape, shape } from '../kinds/shape.ts';
import { CLIENT_CONFIG, OBJECT_META } from '../kinds/tables.ts';
import type { WebhookService } from '../options.ts';
import {
  causesIn,
  duplicateCause,
  forbiddenCause,
  invalidCause,
  MAX_CAUSES,
  ours,
  requiredCause,
  unsupportedCause,
} from '../validation/causes.ts';
import { label1035Faults, labelValueFaults, qualifiedFaults, subdomainFaults } from '../validation/formats.ts';
import { conditionCauses, type MatchCondition } from './conditions.ts';

/** The group of the kinds by which webhooks are registered. */
export const ADMISSION_GROUP = 'admissionregistration.k8s.io';

/** What a rule matches, with its defaults. Upstream: `RuleWithOperations`. */
export interface WebhookRule {
  readonly operations?: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly apiVersions?: readonly string[];
  /** Such as `pods`, `pods/status`, `*` or `*` with a subresource. */
  readonly resources?: readonly string[];
  readonly scope: string;
}

/** One webhook, with its defaults. Upstream: `MutatingWebhook`, `ValidatingWebhook`. */
export interface WebhookDefinition {
  readonly name: string;
  readonly clientConfig: { readonly url?: string; readonly service?: WebhookService; readonly caBundle?: string };
  readonly rules?: readonly WebhookRule[];
  readonly failurePolicy: string;
  readonly matchPolicy: string;
  readonly namespaceSelector: LabelSelectorObject;
  readonly objectSelector: LabelSelectorObject;
  readonly sideEffects: string | null;
  readonly timeoutSeconds: number;
  readonly admissionReviewVersions?: readonly string[];
  readonly reinvocationPolicy?: string;
  readonly matchConditions?: readonly MatchCondition[];
}

type LabelSelectorObject = NonNullable<Parameters<typeof LabelSelector.fromObject>[0]>;

export interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks?: readonly WebhookDefinition[];
}

const LABEL_SELECTOR: Shape = {
  ...shape('A label selector.', {
    matchLabels: [1, 'string', '{}', 'The labels that objects have.'],
    matchExpressions: part([2, '[]'], 'What else must hold of their labels.', {
      key: [1, 'string', '!', 'The label.', REQUIRED],
      operator: [2, 'string', '!', 'In, NotIn, Exists or DoesNotExist.', REQUIRED],
      values: [3, 'string', '[]', 'Its values.'],
    }),
  }),
  isAtomic: true,
};

const RULES: Row = part([3, '[]'], 'The requests that it is asked about.', {
  operations: [1, 'string', '[]', 'CREATE, UPDATE, DELETE, CONNECT or *.'],
  rule: part([2, '^'], '', {
    apiGroups: [1, 'string', '[]', 'The groups, or *.'],
    apiVersions: [2, 'string', '[]', 'The versions, or *.'],
    resources: [3, 'string', '[]', 'The resources, such as pods, pods/status, * or */*.'],
    scope: [4, 'string', '?', 'Cluster, Namespaced or *.'],
  }),
});

/** The two kinds of webhooks differ in the numbers of some fields. */
const webhook = (description: string, last: Readonly<Record<string, Row>>): Row =>
  part([2, '[]', byKey('name')], description, {
    name: [1, 'string', '!', 'The full name, such as orders.example.com.', REQUIRED],
    clientConfig: [2, CLIENT_CONFIG, '!', 'Where it is.', REQUIRED],
    rules: RULES,
    failurePolicy: [4, 'string', '?', 'Fail or Ignore: what happens if it cannot be asked.'],
    namespaceSelector: [5, LABEL_SELECTOR, '?', 'Only objects in such namespaces.'],
    sideEffects: [6, 'string', '?!', 'None or NoneOnDryRun.', REQUIRED],
    timeoutSeconds: [7, 'int32', '?', 'How long it may take.'],
    admissionReviewVersions: [8, 'string', '[]!', 'The versions of reviews that it supports.', REQUIRED],
    matchPolicy: [9, 'string', '?', 'Exact or Equivalent: whether it is also asked about other versions.'],
    ...last,
  });

const condition = (number: number): Row =>
  part([number, '[]', byKey('name')], 'What else must hold of a request for it to be asked.', {
    name: [1, 'string', '!', 'The name.', REQUIRED],
    expression: [2, 'string', '!', 'In CEL, over object, oldObject and request.', REQUIRED],
  });

const metadata = [1, OBJECT_META, '', "Standard object's metadata."] as const;

const MUTATING: Shape = shape(
  'MutatingWebhookConfiguration says who may change what is written.',
  {
    metadata,
    webhooks: webhook('The webhooks, in the order in which they are asked.', {
      reinvocationPolicy: [
        10,
        'string',
        '?',
        'Never or IfNeeded: whether it is asked again after others have changed the object.',
      ],
      objectSelector: [11, LABEL_SELECTOR, '?', 'Only objects with such labels.'],
      matchConditions: condition(12),
    }),
  },
  (object) => completed(object, { reinvocationPolicy: 'Never' }),
);

const VALIDATING: Shape = shape(
  'ValidatingWebhookConfiguration says who may refuse what is written.',
  {
    metadata,
    webhooks: webhook('The webhooks.', {
      objectSelector: [10, LABEL_SELECTOR, '?', 'Only objects with such labels.'],
      matchConditions: condition(11),
    }),
  },
  (object) => completed(object, {}),
);

/** Upstream: `SetDefaults_MutatingWebhook`, `SetDefaults_ValidatingWebhook`, `SetDefaults_Rule`, `SetDefaults_ServiceReference`. */
function completed(object: Record<string, unknown>, more: object): Record<string, unknown> {
  const { webhooks } = object as { webhooks?: readonly WebhookDefinition[] };
  if (webhooks === undefined) return object;
  const defaults = {
    ...{ failurePolicy: 'Fail', matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {}, timeoutSeconds: 10 },
    ...more,
  };
  return {
    ...object,
    webhooks: webhooks.map(({ clientConfig = {}, rules, ...each }) => ({
      ...{ ...defaults, ...each },
      clientConfig: {
        ...clientConfig,
        ...(clientConfig.service && { service: { ...clientConfig.service, port: clientConfig.service.port ?? 443 } }),
      },
      ...(rules && { rules: rules.map((rule) => ({ ...{ scope: '*' }, ...rule })) }),
    })),
  };
}

/**
 * `mutatingwebhookconfigurations` and `validatingwebhookconfigurations` of `admissionregistration.k8s.io/v1`. If a server serves
 * them, it asks the webhooks that they register before it writes, as a kube-apiserver does: it sends what is written, and who
 * writes it, to the URLs in them. So let only those write them who may see and change everything.
 */
export const WEBHOOK_CONFIGURATIONS: readonly ResourceDefinition[] = [
  definition('Mutating', MUTATING),
  definition('Validating', VALIDATING),
];

/** Whether a kind is one of these, and not another of such a name, whose objects mean nothing to the server. */
export const isRegistration = ({ group, shape: fields }: Pick<ResourceDefinition, 'group' | 'shape'>): boolean =>
  group === ADMISSION_GROUP && fields !== undefined;

function definition(which: 'Mutating' | 'Validating', of: Shape): ResourceDefinition {
  const kind = `${which}WebhookConfiguration`;
  return {
    ...{ group: ADMISSION_GROUP, version: 'v1', plural: `${kind.toLowerCase()}s`, kind },
    ...{ categories: ['api-extensions'], namespaced: false },
    shape: { ...of, countsGenerations: true },
    columns: [
      {
        ...{ name: 'Webhooks', type: 'integer', description: 'How many webhooks it registers.' },
        value: (object) => (object as WebhookConfiguration).webhooks?.length ?? 0,
      },
      AGE,
    ],
    validate: ours((object, old) => {
      const { webhooks = [] } = object as WebhookConfiguration;
      const conditions = conditionsToCheck(webhooks, (old as WebhookConfiguration | undefined)?.webhooks);
      return withConditions([...finalizersOf(object), ...webhookCauses(webhooks)], conditions);
    }),
  };
}

/** The conditions of webhooks, by their paths. Those that stay as they are need not be checked again. */
type Conditions = readonly (readonly [path: string, conditions: readonly MatchCondition[]])[];

function conditionsToCheck(webhooks: readonly WebhookDefinition[], old: readonly WebhookDefinition[] | undefined): Conditions {
  const had = JSON.stringify(old?.map(({ matchConditions = [] }) => matchConditions));
  if (JSON.stringify(webhooks.map(({ matchConditions = [] }) => matchConditions)) === had) return [];
  return webhooks.flatMap(({ matchConditions = [] }, at) =>
    matchConditions.length > 0 ? [[`webhooks[${at}].matchConditions`, matchConditions] as const] : [],
  );
}

async function withConditions(causes: FieldCause[], conditions: Conditions): Promise<FieldCause[]> {
  for (const [path, each] of conditions) if (causes.length < MAX_CAUSES) causes.push(...(await conditionCauses(each, path)));
  return causes;
}

/** Upstream: `validateMutatingWebhookConfiguration`, `validateValidatingWebhookConfiguration`. */
function webhookCauses(webhooks: readonly WebhookDefinition[]): FieldCause[] {
  const names = new Set<string>();
  return causesIn(webhooks, (each, at) => {
    const path = `webhooks[${at}]`;
    const isTwin = names.has(each.name);
    if (each.name !== '') names.add(each.name);
    return [
      ...causesOf(each, path),
      ...reviewVersionCauses(each.admissionReviewVersions ?? [], `${path}.admissionReviewVersions`),
      ...(isTwin ? [duplicateCause(`${path}.name`, each.name)] : []),
    ];
  });
}

function causesOf(webhook: WebhookDefinition, path: string): FieldCause[] {
  const { name, rules = [], sideEffects, timeoutSeconds, reinvocationPolicy } = webhook;
  const effects = ['None', 'NoneOnDryRun'];
  const expected = `must specify one of ${effects.join(', ')}`;
  return [
    ...nameCauses(name, `${path}.name`),
    ...causesIn(rules, (rule, at) => ruleCauses(rule, `${path}.rules[${at}]`)),
    ...wordCauses(webhook.failurePolicy, `${path}.failurePolicy`, ['Fail', 'Ignore']),
    ...wordCauses(webhook.matchPolicy, `${path}.matchPolicy`, ['Equivalent', 'Exact']),
    ...(sideEffects === null
      ? [requiredCause(`${path}.sideEffects`, expected)]
      : wordCauses(sideEffects, `${path}.sideEffects`, effects)),
    ...(timeoutSeconds > 30 || timeoutSeconds < 1
      ? [invalidCause(`${path}.timeoutSeconds`, timeoutSeconds, 'the timeout value must be between 1 and 30 seconds')]
      : []),
    ...selectorCauses(webhook.namespaceSelector, `${path}.namespaceSelector`),
    ...selectorCauses(webhook.objectSelector, `${path}.objectSelector`),
    ...(reinvocationPolicy === undefined
      ? []
      : wordCauses(reinvocationPolicy, `${path}.reinvocationPolicy`, ['IfNeeded', 'Never'])),
    ...clientCauses(webhook.clientConfig, `${path}.clientConfig`),
  ];
}

const wordCauses = (word: string, field: string, words: readonly string[]): FieldCause[] =>
  words.includes(word) ? [] : [unsupportedCause(field, word, words)];

/** Upstream: `IsFullyQualifiedName`. */
function nameCauses(name: string, field: string): FieldCause[] {
  if (name === '') return [requiredCause(field, '')];
  const faults = subdomainFaults(name);
  if (faults.length > 0) return [invalidCause(field, name, faults.join(','))];
  const isWhole = name.split('.').length >= 3;
  return isWhole ? [] : [invalidCause(field, name, 'should be a domain with at least three segments separated by dots')];
}

const WORDS = ['*', ...[...OPERATIONS].sort()];

/** Upstream: `validateRuleWithOperations`. */
function ruleCauses(
  { operations = [], apiGroups = [], apiVersions = [], resources = [], scope }: WebhookRule,
  path: string,
): FieldCause[] {
  const lists = { operations, apiGroups, apiVersions };
  const others = { operations: 'operations', apiGroups: 'API groups', apiVersions: 'API versions' };
  const causes = Object.entries(lists).flatMap(([name, list]): FieldCause[] => {
    const field = `${path}.${name}`;
    if (list.length === 0) return [requiredCause(field, '')];
    const isMixed = list.length > 1 && list.includes('*');
    const what = `if '*' is present, must not specify other ${others[name as keyof typeof others]}`;
    const each = (text: string, at: number): FieldCause[] => {
      if (name === 'operations') return wordCauses(text, `${field}[${at}]`, WORDS);
      return name === 'apiVersions' && text === '' ? [requiredCause(`${field}[${at}]`, '')] : [];
    };
    return [...(isMixed ? [invalidCause(field, list, what)] : []), ...causesIn(list, each)];
  });
  causes.push(...resourceCauses(resources, `${path}.resources`));
  causes.push(...wordCauses(scope, `${path}.scope`, ['*', 'Cluster', 'Namespaced']));
  return causes;
}

/** Upstream: `validateResources`. */
function resourceCauses(resources: readonly string[], field: string): FieldCause[] {
  if (resources.length === 0) return [requiredCause(field, '')];
  const [wholes, everywhere] = [new Set<string>(), new Set<string>()];
  const causes = causesIn(resources, (text, at): FieldCause[] => {
    if (text === '') return [requiredCause(`${field}[${at}]`, '')];
    const slash = text.indexOf('/');
    if (slash < 0) return [];
    const [resource, sub] = [text.slice(0, slash), text.slice(slash + 1)];
    const found = [
      ...(wholes.has(resource) ? [`if '${resource}/*' is present, must not specify ${text}`] : []),
      ...(everywhere.has(sub) ? [`if '*/${sub}' is present, must not specify ${text}`] : []),
    ];
    if (sub === '*') wholes.add(resource);
    if (resource === '*') everywhere.add(sub);
    return found.map((detail) => invalidCause(`${field}[${at}]`, text, detail));
  });
  if (resources.length > 1 && resources.includes('*/*'))
    causes.push(invalidCause(field, resources, "if '*/*' is present, must not specify other resources"));
  // As upstream: of those without a subresource, the last one decides.
  if (resources.includes('*') && resources.filter((each) => each !== '' && !each.includes('/')).at(-1) !== '*')
    causes.push(invalidCause(field, resources, "if '*' is present, must not specify other resources without subresources"));
  return causes;
}

/** Upstream: `ValidateLabelSelector`. */
function selectorCauses({ matchLabels, matchExpressions }: LabelSelectorObject, path: string): FieldCause[] {
  const labels = causesIn(Object.entries(matchLabels ?? {}), ([key, value]) => [
    ...qualifiedFaults(key).map((fault) => invalidCause(`${path}.matchLabels`, key, fault)),
    ...labelValueFaults(value).map((fault) => invalidCause(`${path}.matchLabels`, value, fault)),
  ]);
  const expressions = causesIn(matchExpressions ?? [], ({ key, operator, ...more }, at): FieldCause[] => {
    const values = more.values ?? [];
    const own = `${path}.matchExpressions[${at}]`;
    const [takes, takesNone] = [['In', 'NotIn'].includes(operator), ['Exists', 'DoesNotExist'].includes(operator)];
    return [
      ...(takes && values.length === 0
        ? [requiredCause(`${own}.values`, "must be specified when `operator` is 'In' or 'NotIn'")]
        : []),
      ...(takesNone && values.length > 0
        ? [forbiddenCause(`${own}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")]
        : []),
      ...(takes || takesNone ? [] : [invalidCause(`${own}.operator`, operator, 'not a valid selector operator')]),
      ...qualifiedFaults(key).map((fault) => invalidCause(`${own}.key`, key, fault)),
      ...causesIn(values, (value, n) =>
        labelValueFaults(value).map((fault) => invalidCause(`${own}.values[${n}]`, value, fault)),
      ),
    ];
  });
  return [...labels, ...expressions];
}

const FORM = '; desired format: https://host[/path]';

function clientCauses({ url, service }: WebhookDefinition['clientConfig'], path: string): FieldCause[] {
  if ((url === undefined) === (service === undefined)) return [requiredCause(path, 'exactly one of url or service is required')];
  return service === undefined ? urlCauses(url as string, `${path}.url`) : serviceCauses(service, `${path}.service`);
}

/** Upstream: `ValidateWebhookURL`. */
function urlCauses(text: string, field: string): FieldCause[] {
  const scheme = /^[a-zA-Z][a-zA-Z\d+.-]*:/.exec(text)?.[0] ?? '';
  const parts = /^\/\/([^/?#]*)[^?#]*\??([^#]*)#?(.*)/s.exec(text.slice(scheme.length)) ?? [];
  const [, authority = '', query = '', fragment = ''] = parts;
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  if (scheme !== '' && host !== '' && tried(() => new URL(text)) === undefined)
    return [requiredCause(field, `url must be a valid URL: parse ${JSON.stringify(text)}: it is none${FORM}`)];
  const causes: FieldCause[] = [];
  if (scheme.toLowerCase() !== 'https:')
    causes.push(invalidCause(field, scheme.slice(0, -1).toLowerCase(), `'https' is the only allowed URL scheme${FORM}`));
  if (host === '') causes.push(invalidCause(field, '', `host must be specified${FORM}`));
  if (authority.includes('@'))
    causes.push(
      invalidCause(field, authority.slice(0, authority.lastIndexOf('@')), 'user information is not permitted in the URL'),
    );
  if (fragment !== '') causes.push(invalidCause(field, fragment, 'fragments are not permitted in the URL'));
  if (query !== '') causes.push(invalidCause(field, query, 'query parameters are not permitted in the URL'));
  return causes;
}

/** Upstream: `ValidateWebhookService`. */
function serviceCauses({ namespace, name, path, port }: WebhookService, field: string): FieldCause[] {
  const causes = [
    ...(name === '' ? [requiredCause(`${field}.name`, '')] : []),
    ...(namespace === '' ? [requiredCause(`${field}.namespace`, '')] : []),
    ...(port < 1 || port > 65_535
      ? [invalidCause(`${field}.port`, port, 'port is not valid: must be between 1 and 65535, inclusive')]
      : []),
  ];
  if (path === undefined || path === '' || path === '/') return causes;
  const wrong = (detail: string): FieldCause => invalidCause(`${field}.path`, path, detail);
  if (!path.startsWith('/')) causes.push(wrong("must start with a '/'"));
  for (const [at, step] of path.slice(1).replace(/\/$/, '').split('/').entries()) {
    if (step === '') causes.push(wrong(`segment[${at}] may not be empty`));
    else causes.push(...subdomainFaults(step).map((fault) => wrong(`segment[${at}]: ${fault}`)));
  }
  return causes;
}

/** Upstream: `validateAdmissionReviewVersions`. */
function reviewVersionCauses(versions: readonly string[], field: string): FieldCause[] {
  const accepted = REVIEW_VERSIONS.join(', ');
  if (versions.length === 0) return [requiredCause(field, `must specify one of ${accepted}`)];
  const seen = new Set<string>();
  const causes = causesIn(versions, (version, at) => {
    if (seen.has(version)) return [invalidCause(`${field}[${at}]`, version, 'duplicate version')];
    seen.add(version);
    return label1035Faults(version).map((fault) => invalidCause(`${field}[${at}]`, version, fault));
  });
  if (!versions.some((each) => REVIEW_VERSIONS.includes(each)))
    causes.push(invalidCause(field, versions, `must include at least one of ${accepted}`));
  return causes;
}

/** The versions of AdmissionReview. */
export const REVIEW_VERSIONS: readonly string[] = ['v1', 'v1beta1'];
