import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The tests that mutation testing of src/apiserver runs: fast ones, many of them without sockets. See vitest.stryker.config.ts. */
export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: [
      'test/unit/{apiserver-metadata,apiserver-query,apiserver-races,apiserver-reads,apiserver-verbs,json-patch,patch}.test.ts',
      'test/unit/{apiserver-duplicates,representation,schema-missing,schema-validation}.test.ts',
      'test/unit/{api-discovery,api-documents,builtin-kinds,openapi,openapi-protobuf,protobuf-kinds,terminating}.test.ts',
      'test/unit/apiserver-{definition,fields,health,known-fields,namespaces,quotas,resource,stats,statuses,upgrade,watch}.test.ts',
      'test/unit/apiserver-{conformance,deadlines,event-stream,events,http,sources,turns}.test.ts',
      'test/unit/apiserver-{admission,apply,crd,impersonation,kinds,scale,unheard,versions,yaml}.test.ts',
      'test/unit/{crd-message,crd-names,crd-shaping,formats,garbage-collector,garbage-collector-races,json-path}.test.ts',
      'test/unit/{evictions,json-start,kubernetes-defaults,owner-index,patterns,pod-paths,registered-webhooks,rule-values}.test.ts',
      'test/unit/{webhook-calls,webhook-conditions,webhook-registrations,schema-faults,schema-quick,schema-rules,schema-shaping,shapes}.test.ts',
      'test/property/{apiserver,owned}.property.test.ts',
    ],
    isolate: false, // importing everything again for each file would take most of the time
    fileParallelism: false,
    setupFiles: ['./test/fixed-seed.ts'],
    testTimeout: 8_000,
    expect: { poll: { timeout: 8_000, interval: 10 } }, // no sooner than the test itself
    env: { WATCHMUX_RUNS: '60' },
  },
});
