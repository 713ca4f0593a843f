// Registrations of webhooks that are refused: what is wrong with one, and how a kube-apiserver says so. test/peers/registered-webhooks.test.ts
// asks it again.

/** The most characters of a cause. */
export const CAUSE_CHARS = 110;

const RULE = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['configmaps'] };

const PORT = 'Invalid webhooks[0].clientConfig.service.port: Invalid value: ';
const URL_FIELD = 'Invalid webhooks[0].clientConfig.url: Invalid value:';
const OPERATOR = 'Invalid webhooks[0].objectSelector.matchExpressions[0].operator: Invalid value:';
const OPERATORS = [
  { key: 'a', operator: 'In', values: ['x'] },
  { key: 'b', operator: 'NotIn', values: ['x', 'y'] },
  { key: 'c', operator: 'Exists' },
  { key: 'd', operator: 'DoesNotExist' },
];

/** A name, what differs from a right webhook, and the causes: reason, field, message. */
export const WRONG_REGISTRATIONS: readonly (readonly [name: string, more: object, causes: readonly string[]])[] = [
  [
    'nothing but a name',
    { clientConfig: undefined, sideEffects: undefined, admissionReviewVersions: undefined, rules: undefined },
    [
      'Required webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun',
      'Required webhooks[0].clientConfig: Required value: exactly one of url or service is required',
      'Required webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1',
    ],
  ],
  ['no name', { name: '' }, ['Required webhooks[0].name: Required value']],
  [
    'a short name',
    { name: 'a.b' },
    ['Invalid webhooks[0].name: Invalid value: "a.b": should be a domain with at least three segments separated by d'],
  ],
  [
    'a wrong name',
    { name: 'A_b.example.com' },
    ['Invalid webhooks[0].name: Invalid value: "A_b.example.com": a lowercase RFC 1123 subdomain must consist of low'],
  ],
  [
    'both places',
    { clientConfig: { url: 'https://x', service: { namespace: 'n', name: 's' } } },
    ['Required webhooks[0].clientConfig: Required value: exactly one of url or service is required'],
  ],
  [
    'http',
    { clientConfig: { url: 'http://x/y' } },
    ['Invalid webhooks[0].clientConfig.url: Invalid value: "http": \'https\' is the only allowed URL scheme; desired f'],
  ],
  [
    'no host',
    { clientConfig: { url: 'https:///y' } },
    ['Invalid webhooks[0].clientConfig.url: Invalid value: "": host must be specified; desired format: https://host['],
  ],
  [
    'a user, a query and a fragment',
    { clientConfig: { url: 'https://u:p@x/y?q=1#f' } },
    [
      'Invalid webhooks[0].clientConfig.url: Invalid value: "u:p": user information is not permitted in the URL',
      'Invalid webhooks[0].clientConfig.url: Invalid value: "f": fragments are not permitted in the URL',
      'Invalid webhooks[0].clientConfig.url: Invalid value: "q=1": query parameters are not permitted in the URL',
    ],
  ],
  [
    'no URL',
    { clientConfig: { url: 'x' } },
    [
      'Invalid webhooks[0].clientConfig.url: Invalid value: "": \'https\' is the only allowed URL scheme; desired forma',
      'Invalid webhooks[0].clientConfig.url: Invalid value: "": host must be specified; desired format: https://host[',
    ],
  ],
  [
    'a service without names',
    { clientConfig: { service: { namespace: '', name: '' } } },
    [
      'Required webhooks[0].clientConfig.service.name: Required value',
      'Required webhooks[0].clientConfig.service.namespace: Required value',
    ],
  ],
  [
    'a wrong port',
    { clientConfig: { service: { namespace: 'n', name: 's', port: 70_000 } } },
    ['Invalid webhooks[0].clientConfig.service.port: Invalid value: 70000: port is not valid: must be between 1 and '],
  ],
  [
    'a wrong path',
    { clientConfig: { service: { namespace: 'n', name: 's', path: 'a//B' } } },
    [
      'Invalid webhooks[0].clientConfig.service.path: Invalid value: "a//B": must start with a \'/\'',
      'Invalid webhooks[0].clientConfig.service.path: Invalid value: "a//B": segment[0] may not be empty',
      'Invalid webhooks[0].clientConfig.service.path: Invalid value: "a//B": segment[1] may not be empty',
      'Invalid webhooks[0].clientConfig.service.path: Invalid value: "a//B": segment[2]: a lowercase RFC 1123 subdoma',
    ],
  ],
  [
    'the path //',
    { clientConfig: { service: { namespace: 'n', name: 's', path: '//' } } },
    ['Invalid webhooks[0].clientConfig.service.path: Invalid value: "//": segment[0] may not be empty'],
  ],
  [
    'no side effects',
    { sideEffects: undefined },
    ['Required webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun'],
  ],
  [
    'unknown side effects',
    { sideEffects: 'Some' },
    ['NotSupported webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'],
  ],
  [
    'a long time',
    { timeoutSeconds: 31 },
    ['Invalid webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds'],
  ],
  [
    'no time',
    { timeoutSeconds: 0 },
    ['Invalid webhooks[0].timeoutSeconds: Invalid value: 0: the timeout value must be between 1 and 30 seconds'],
  ],
  [
    'unknown policies',
    { failurePolicy: 'Fall', matchPolicy: 'Same' },
    [
      'NotSupported webhooks[0].failurePolicy: Unsupported value: "Fall": supported values: "Fail", "Ignore"',
      'NotSupported webhooks[0].matchPolicy: Unsupported value: "Same": supported values: "Equivalent", "Exact"',
    ],
  ],
  [
    'unknown versions of reviews',
    { admissionReviewVersions: ['v2', 'V3'] },
    [
      'Invalid webhooks[0].admissionReviewVersions[1]: Invalid value: "V3": a DNS-1035 label must consist of lower ca',
      'Invalid webhooks[0].admissionReviewVersions: Invalid value: ["v2","V3"]: must include at least one of v1, v1be',
    ],
  ],
  [
    'a version twice',
    { admissionReviewVersions: ['v1', 'v1'] },
    ['Invalid webhooks[0].admissionReviewVersions[1]: Invalid value: "v1": duplicate version'],
  ],
  [
    'empty rules',
    { rules: [{}] },
    [
      'Required webhooks[0].rules[0].operations: Required value',
      'Required webhooks[0].rules[0].apiGroups: Required value',
      'Required webhooks[0].rules[0].apiVersions: Required value',
      'Required webhooks[0].rules[0].resources: Required value',
    ],
  ],
  [
    'mixed rules',
    { rules: [{ operations: ['*', 'CREATE'], apiGroups: ['*', 'a'], apiVersions: ['*', 'v1'], resources: ['*', 'a'] }] },
    [
      'Invalid webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify ot',
      'Invalid webhooks[0].rules[0].apiGroups: Invalid value: ["*","a"]: if \'*\' is present, must not specify other AP',
      'Invalid webhooks[0].rules[0].apiVersions: Invalid value: ["*","v1"]: if \'*\' is present, must not specify other',
      'Invalid webhooks[0].rules[0].resources: Invalid value: ["*","a"]: if \'*\' is present, must not specify other re',
    ],
  ],
  [
    'wrong rules',
    {
      rules: [{ ...RULE, operations: ['READ'], apiVersions: [''], resources: ['', 'a/*', 'a/b', '*/c', 'd/c'], scope: 'All' }],
    },
    [
      'NotSupported webhooks[0].rules[0].operations[0]: Unsupported value: "READ": supported values: "*", "CONNECT", ',
      'Required webhooks[0].rules[0].apiVersions[0]: Required value',
      'Required webhooks[0].rules[0].resources[0]: Required value',
      'Invalid webhooks[0].rules[0].resources[2]: Invalid value: "a/b": if \'a/*\' is present, must not specify a/b',
      'Invalid webhooks[0].rules[0].resources[4]: Invalid value: "d/c": if \'*/c\' is present, must not specify d/c',
      'NotSupported webhooks[0].rules[0].scope: Unsupported value: "All": supported values: "*", "Cluster", "Namespac',
    ],
  ],
  [
    'everything and more',
    { rules: [{ ...RULE, resources: ['*/*', 'a'] }] },
    ['Invalid webhooks[0].rules[0].resources: Invalid value: ["*/*","a"]: if \'*/*\' is present, must not specify othe'],
  ],
  [
    'wrong selectors',
    {
      namespaceSelector: { matchLabels: { 'a b': 'c d' }, matchExpressions: [{ key: 'x', operator: 'In' }] },
      objectSelector: {
        matchExpressions: [
          { key: '-', operator: 'Exists', values: ['a b'] },
          { key: 'x', operator: 'Is' },
        ],
      },
    },
    [
      'Invalid webhooks[0].namespaceSelector.matchLabels: Invalid value: "a b": name part must consist of alphanumeri',
      'Invalid webhooks[0].namespaceSelector.matchLabels: Invalid value: "c d": a valid label must be an empty string',
      'Required webhooks[0].namespaceSelector.matchExpressions[0].values: Required value: must be specified when `ope',
      'Forbidden webhooks[0].objectSelector.matchExpressions[0].values: Forbidden: may not be specified when `operato',
      'Invalid webhooks[0].objectSelector.matchExpressions[0].key: Invalid value: "-": name part must consist of alph',
      'Invalid webhooks[0].objectSelector.matchExpressions[0].values[0]: Invalid value: "a b": a valid label must be ',
      'Invalid webhooks[0].objectSelector.matchExpressions[1].operator: Invalid value: "Is": not a valid selector ope',
    ],
  ],
  [
    'no condition',
    { matchConditions: [{ name: '', expression: '' }] },
    [
      'Required webhooks[0].matchConditions[0].expression: Required value',
      'Required webhooks[0].matchConditions[0].name: Required value',
    ],
  ],
  [
    'a condition without a name',
    { matchConditions: [{ name: '', expression: 'true' }] },
    ['Required webhooks[0].matchConditions[0].name: Required value'],
  ],
  [
    'a wrong name of a condition',
    { matchConditions: [{ name: 'a b', expression: 'true' }] },
    ['Invalid webhooks[0].matchConditions[0].name: Invalid value: "a b": name part must consist of alphanumeric char'],
  ],
  [
    'two conditions of one name',
    {
      matchConditions: [
        { name: 'a', expression: 'true' },
        { name: 'a', expression: 'false' },
      ],
    },
    ['Duplicate webhooks[0].matchConditions[1].name: Duplicate value: "a"'],
  ],
  [
    'two conditions without names',
    {
      matchConditions: [
        { name: '', expression: 'true' },
        { name: '', expression: 'false' },
      ],
    },
    [
      'Required webhooks[0].matchConditions[0].name: Required value',
      'Required webhooks[0].matchConditions[1].name: Required value',
    ],
  ],
  [
    'a condition that is no condition',
    { matchConditions: [{ name: 'a', expression: '"x"' }] },
    ['Invalid webhooks[0].matchConditions[0].expression: Invalid value: "\\"x\\"": must evaluate to bool but got strin'],
  ],
  [
    'a condition of any type',
    { matchConditions: [{ name: 'a', expression: 'object.x' }] },
    ['Invalid webhooks[0].matchConditions[0].expression: Invalid value: "object.x": must evaluate to bool but got dy'],
  ],
  [
    'an unknown variable in a condition',
    { matchConditions: [{ name: 'a', expression: 'self.x == 1' }] },
    ['Invalid webhooks[0].matchConditions[0].expression: Invalid value: "self.x == 1": compilation failed: ERROR: <i'],
  ],
  [
    'an unknown field in a condition',
    { matchConditions: [{ name: 'a', expression: 'request.object == object' }] },
    ['Invalid webhooks[0].matchConditions[0].expression: Invalid value: "request.object == object": compilation fail'],
  ],
  [
    'another type in a condition',
    { matchConditions: [{ name: 'a', expression: 'request.name == 1' }] },
    ['Invalid webhooks[0].matchConditions[0].expression: Invalid value: "request.name == 1": compilation failed: ERR'],
  ],
  [
    'a condition of spaces',
    { matchConditions: [{ name: 'a', expression: '  ' }] },
    ['Required webhooks[0].matchConditions[0].expression: Required value'],
  ],
  [
    '65 conditions',
    { matchConditions: Array.from({ length: 65 }, (_, at) => ({ name: `c${at}`, expression: 'true' })) },
    ['TooMany webhooks[0].matchConditions: Too many: 65: must have at most 64 items'],
  ],
  [
    'a port of 0',
    { clientConfig: { service: { namespace: 'n', name: 's', port: 0 } } },
    [`${PORT}0: port is not valid: must be between 1 and 65535, inclusive`.slice(0, CAUSE_CHARS)],
  ],
  [
    'a port of 65536',
    { clientConfig: { service: { namespace: 'n', name: 's', port: 65_536 } } },
    [`${PORT}65536: port is not valid: must be between 1 and 65535, inclusive`.slice(0, CAUSE_CHARS)],
  ],
  ['a fragment', { clientConfig: { url: 'https://x/y#f' } }, [`${URL_FIELD} "f": fragments are not permitted in the URL`]],
  ['a query', { clientConfig: { url: 'https://x?q=1' } }, [`${URL_FIELD} "q=1": query parameters are not permitted in the URL`]],
  [
    'a user alone',
    { clientConfig: { url: 'https://u@' } },
    [
      `${URL_FIELD} "": host must be specified; desired format: https://host[/path]`.slice(0, CAUSE_CHARS),
      `${URL_FIELD} "u": user information is not permitted in the URL`,
    ],
  ],
  [
    'neither a host nor a path',
    { clientConfig: { url: 'https:x y' } },
    [`${URL_FIELD} "": host must be specified; desired format: https://host[/path]`.slice(0, CAUSE_CHARS)],
  ],
  [
    'no scheme',
    { clientConfig: { url: '//x/y' } },
    [`${URL_FIELD} "": 'https' is the only allowed URL scheme; desired format: https://host[/path]`.slice(0, CAUSE_CHARS)],
  ],
  [
    'a path that looks like a URL',
    { clientConfig: { url: '/https://x/y' } },
    [
      `${URL_FIELD} "": 'https' is the only allowed URL scheme; desired format: https://host[/path]`.slice(0, CAUSE_CHARS),
      `${URL_FIELD} "": host must be specified; desired format: https://host[/path]`.slice(0, CAUSE_CHARS),
    ],
  ],
  [
    'a path instead of a host',
    { clientConfig: { url: 'https:/y//z' } },
    [`${URL_FIELD} "": host must be specified; desired format: https://host[/path]`.slice(0, CAUSE_CHARS)],
  ],
  [
    'a query alone',
    { clientConfig: { url: 'https://?q=1' } },
    [
      `${URL_FIELD} "": host must be specified; desired format: https://host[/path]`.slice(0, CAUSE_CHARS),
      `${URL_FIELD} "q=1": query parameters are not permitted in the URL`,
    ],
  ],
  [
    'another operator of selectors',
    { objectSelector: { matchExpressions: [{ key: 'x', operator: 'NotInThis', values: ['a'] }] } },
    [`${OPERATOR} "NotInThis": not a valid selector ope`.slice(0, CAUSE_CHARS)],
  ],
  [
    'an operator that ends like another one',
    { objectSelector: { matchExpressions: [{ key: 'x', operator: 'NoDoesNotExist' }] } },
    [`${OPERATOR} "NoDoesNotExist": not a valid selector operator`.slice(0, CAUSE_CHARS)],
  ],
  [
    'an operator without values',
    { objectSelector: { matchExpressions: [{ key: 'x', operator: 'NotIn' }] } },
    [
      "Required webhooks[0].objectSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In'".slice(
        0,
        CAUSE_CHARS,
      ),
    ],
  ],
  [
    'a part of nothing',
    { rules: [{ ...RULE, resources: ['*/c', '/c'] }] },
    ['Invalid webhooks[0].rules[0].resources[1]: Invalid value: "/c": if \'*/c\' is present, must not specify /c'],
  ],
  [
    'everything and nothing',
    { rules: [{ ...RULE, resources: ['*', ''] }] },
    ['Required webhooks[0].rules[0].resources[1]: Required value'],
  ],
  [
    'a path that only ends with a slash',
    { clientConfig: { service: { namespace: 'n', name: 's', path: 'a/' } } },
    [
      'Invalid webhooks[0].clientConfig.service.path: Invalid value: "a/": must start with a \'/\'',
      'Invalid webhooks[0].clientConfig.service.path: Invalid value: "a/": segment[0] may not be empty',
    ],
  ],
  [
    'everything, then one more',
    { rules: [{ ...RULE, resources: ['*', 'b/c', 'a'] }] },
    [
      'Invalid webhooks[0].rules[0].resources: Invalid value: ["*","b/c","a"]: if \'*\' is present, must not specify other'.slice(
        0,
        CAUSE_CHARS,
      ),
    ],
  ],
];

/** A name, and what differs from a right webhook. */
export const RIGHT_REGISTRATIONS: readonly (readonly [name: string, more: object])[] = [
  ['a second', { timeoutSeconds: 1 }],
  ['half a minute', { timeoutSeconds: 30 }],
  ['a scheme in capitals', { clientConfig: { url: 'HTTPS://x:8443' } }],
  ['the first port', { clientConfig: { service: { namespace: 'n', name: 's', port: 1 } } }],
  ['the last port', { clientConfig: { service: { namespace: 'n', name: 's', port: 65_535 } } }],
  ['no path', { clientConfig: { service: { namespace: 'n', name: 's', path: '' } } }],
  ['the path /', { clientConfig: { service: { namespace: 'n', name: 's', path: '/' } } }],
  ['a path that ends with a slash', { clientConfig: { service: { namespace: 'n', name: 's', path: '/a/b/' } } }],
  ['reviews of v1beta1', { admissionReviewVersions: ['v2', 'v1beta1'] }],
  ['all operators', { objectSelector: { matchExpressions: OPERATORS } }],
  ['all operations, in a list', { rules: [{ ...RULE, operations: ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] }] }],
  ['the core group', { rules: [{ ...RULE, apiGroups: ['', 'a'], apiVersions: ['v1', 'v2'] }] }],
  ['everything and its parts', { rules: [{ ...RULE, resources: ['*', '*/status'] }] }],
  ['everything, after a kind', { rules: [{ ...RULE, resources: ['a', '*'] }] }],
  ['parts of several kinds', { rules: [{ ...RULE, resources: ['a/b', 'a/*', 'b/c', '*/c'] }] }],
  ['everything at all', { rules: [{ ...RULE, resources: ['*/*'] }] }],
  ['all scopes', { rules: ['*', 'Cluster', 'Namespaced'].map((scope) => ({ ...RULE, scope })) }],
  ['other policies', { failurePolicy: 'Ignore', matchPolicy: 'Exact', sideEffects: 'NoneOnDryRun' }],
  ['no rules', { rules: [] }],
  ['64 conditions', { matchConditions: Array.from({ length: 64 }, (_, at) => ({ name: `c${at}`, expression: 'true' })) }],
];
