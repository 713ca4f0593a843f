/** The entry point `watchmux/operator-testing`: operators on a server and a clock of their own. Not in `watchmux/testing`, which needs neither. */
import { startTest, type TestOperator } from './operator/operator-under-test.ts';
import type { TestOperatorOptions } from './operator/test-options.ts';

export type { TestOperator } from './operator/operator-under-test.ts';
export type { TestFailure, TestOperatorOptions, TestResource } from './operator/test-options.ts';

/**
 * Starts an operator with its server, for a test: no cluster, no sleep, no polling.
 *
 *     await using test = await testOperator({ resources: [websiteCrd], controllers: [websites] });
 *     await test.resource(WEBSITES).create({ metadata: { name: 'web', namespace: 'default' }, spec: { replicas: 2 } });
 *     await test.settled();
 *     expect(await test.resource(DEPLOYMENTS).get('default/web')).toMatchObject({ spec: { replicas: 2 } });
 *
 * @throws {WatchError} (rejects) INVALID_ARGUMENT for an invalid option, and for a kind that the server does not have. What the server
 *   says of an object that it refuses.
 */
export async function testOperator(options: TestOperatorOptions): Promise<TestOperator> {
  return startTest(options);
}
