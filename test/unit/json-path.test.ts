// The paths of printer columns, measured by what kubectl's own find in the same data: client-go/util/jsonpath, by scenario.
import { describe, expect, test } from 'vitest';
import { toJsonPath } from '../../src/apiserver/definitions/json-path.ts';

const found = (path: string, data: unknown): unknown => toJsonPath(path)(data);

const TYPES = {
  bools: [true, false, true, false],
  maps: [
    { name: 'one', value: 1 },
    { name: 'two', value: 2.02 },
    { name: 'three', value: 3.03 },
  ],
};
const POINTS = [
  { id: 'i1', x: 4, y: -5 },
  { id: 'i2', x: -2, y: -5, z: 1 },
  { id: 'i5', x: 0, y: 2, z: 1 },
  { id: 'i7', x: null, y: 4 },
];
const STORE = {
  Name: 'jsonpath',
  Book: [
    { Category: 'reference', Author: 'Nigel Rees', Price: 8.95 },
    { Category: 'fiction', Author: 'Evelyn Waugh', Price: 12.99 },
    { Category: 'fiction', Author: 'Herman Melville', Price: 8.99 },
  ],
  Bicycle: [
    { Color: 'red', Price: 19.95, IsNew: true },
    { Color: 'green', Price: 20.01, IsNew: false },
  ],
  Labels: { engieer: 10, 'web/html': 15, 'k8s-app': 20, 'a.b': 25 },
};
const STATUS = {
  conditions: [
    { type: 'Ready', status: 'False' },
    { type: 'Syn)ced', status: 'True', 'last"': 1 },
  ],
};
const NODES = {
  items: [
    { metadata: { name: 'n1', labels: { 'kubernetes.io/hostname': 'h1' } }, ready: true, capacity: '4' },
    { metadata: { name: 'n2', labels: { 'kubernetes.io/hostname': 'h2' } }, ready: false, capacity: '8' },
  ],
  users: [
    { name: 'myself', user: {} },
    { name: 'e2e', user: { username: 'admin' } },
  ],
};

test.each<[string, unknown, unknown[]]>([
  ['.bools', TYPES, [TYPES.bools]],
  ['.bools[0]', TYPES, [true]],
  ['.bools[-1]', TYPES, [false]],
  ['.bools[0:2]', TYPES, [true, false]],
  ['.bools[:2]', TYPES, [true, false]],
  ['.bools[:4:2]', TYPES, [true, true]],
  ['.maps[::2].name', TYPES, ['one', 'three']],
  ['.maps[1::2].name', TYPES, ['two']],
  ['.bools[2:2]', TYPES, []],
  ['[?(@<5)]', [2, 6, 3, 7], [2, 3]],
  ['[1,3,4]', [0, 1, 2, 3, 4], [1, 3, 4]],
  ['[0:2]', ['Monday', 'Tuesday'], ['Monday', 'Tuesday']],
  ['.Name', STORE, ['jsonpath']],
  ['$.Name', STORE, ['jsonpath']],
  ['$.Labels.web/html', STORE, [15]],
  ['.Labels.k8s-app', STORE, [20]],
  ['.Labels.a\\.b', STORE, [25]],
  [".Labels['a.b']", STORE, [25]],
  [".Labels['a\\.b']", STORE, [25]],
  ['.Bicycle[*].Color', STORE, ['red', 'green']],
  ['.Book[-1:].Author', STORE, ['Herman Melville']],
  ['..Price', STORE, [8.95, 12.99, 8.99, 19.95, 20.01]],
  ['..Book[2].Author', STORE, ['Herman Melville']],
  ['.Bicycle[?(@.IsNew==true)].Color', STORE, ['red']],
  ['.Book[?(@.Price>=8.99)].Price', STORE, [12.99, 8.99]],
  ['.Book[?(@.Category!="fiction")].Author', STORE, ['Nigel Rees']],
  ['.hello', STORE, []],
  ['.Name.deeper', STORE, []],
  ['[?(@.z)].id', POINTS, ['i2', 'i5']],
  ["[0]['id']", POINTS, ['i1']],
  ["[-1]['x']", POINTS, [null]],
  ['.conditions[?(@.type=="Ready")].status', STATUS, ['False']],
  [".conditions[?(@.type=='Syn)ced')].status", STATUS, ['True']],
  ['.conditions[?(@.type == "Ready")].status', STATUS, ['False']],
  ['.conditions[?(@.type=="None")].status', STATUS, []],
  ['.items[*].metadata.name', NODES, ['n1', 'n2']],
  [".items[0].metadata.labels['kubernetes.io/hostname']", NODES, ['h1']],
  [".items[*]['metadata.name','capacity']", NODES, ['4', '8']],
  ['.users[?(@.name=="e2e")].user.username', NODES, ['admin']],
  ['.items[?(@.ready==true)].metadata.name', NODES, ['n1']],
  ['', NODES, [NODES]],
  ['.', { '': 1 }, [1]],
  ['..', [1, 2], [[1, 2]]],
  ['..[0]', [[[1]], [2]], [[[1]], [1], 1, 2]],
  ['..2', { a: { 2: 'b' } }, ['b']],
  ['..a..b', { x: { a: { y: { b: 1 } } } }, [1]],
  ['...b', { a: { b: 1 } }, [1]],
  ['.items[*]..name', NODES, ['n1', 'n2']],
  ['.users[*].name.x', NODES, []],
  ['.Labels.*', STORE, [10, 15, 20, 25]],
  ['.Bicycle.*.Price', STORE, [19.95, 20.01]],
  ['.Labels.\\*', { Labels: { '*': 1, a: 2 } }, [1]],
  ['.Labels.\\a', { Labels: { a: 2 } }, [2]],
  ['.a\\', { a: 2 }, [2]],
  [".Labels['web/html']", STORE, [15]],
  ['.Labels["web/html"]', STORE, [15]],
  ['[ 0 , 2 ]', [1, 2, 3], [1, 3]],
  ['[*]', [1, 2], [1, 2]],
  ['[:]', [1, 2], [1, 2]],
  ['[1::]', [1, 2, 3], [2, 3]],
  ['[-2]', [1, 2, 3], [2]],
  ['[-3:-1]', [1, 2, 3], [1, 2]],
  ['[9:9]', [1], []],
  ['[0:0]', [1], []],
  ['[*][0]', [null, [1]], [1]],
  ['.a"b"', { a: 1, 'a"b"': 2 }, [2]],
  ['"a"', {}, ['a']],
  ["'it\\'s'", {}, ["it's"]],
  ['"a\\\\b"', {}, ['a\\b']],
  ['-1.5', {}, [-1.5]],
  ['+1', {}, [1]],
  ['.a 5', { a: 1 }, [5]],
  ['true', {}, [true]],
  ['.items[?(@.ready==false)].metadata.name', NODES, ['n2']],
  ['[?(@.a>1)].a', [{ a: 1 }, { a: 2 }, { a: '3' }].slice(0, 2), [2]],
  ['[?(@>=2)]', [1, 2, 3], [2, 3]],
  ['[?(@<=2)]', [1, 2, 3], [1, 2]],
  ['[?(@<2)]', [1, 2, 3], [1]],
  ['[?(@>2)]', [1, 2, 3], [3]],
  ['[?(@>"b")]', ['a', 'b', 'c'], ['c']],
  ['[?(@!=2)]', [1, 2, 3], [1, 3]],
  ['[?(@.a==@.b)].b', [{ a: 1, b: 1 }, { a: 1, b: 2 }, { a: 1 }, { b: 1 }, {}], [1]],
  ['[?(@.a[0]==1)].b', [{ a: [1], b: 2 }], [2]],
  ['[?(@.a=="x)]")].b', [{ a: 'x)]', b: 2 }], [2]],
  ["[?(@.a=='\"')].b", [{ a: '"', b: 2 }], [2]],
  ['[?(@.a=="\\")]")].b', [{ a: '")]', b: 2 }], [2]],
  ["[?(@.a=='\\')]')].b", [{ a: "')]", b: 2 }], [2]],
])('%s', (path, data, values) => {
  expect(found(path, data)).toEqual(values);
});

describe('a path', () => {
  test.each([
    ['[', 'unterminated array'],
    ['[x]', 'invalid array index x'],
    ['[1', 'unterminated array'],
    ['.a[1', 'unterminated array'],
    ['hello', 'unrecognized identifier hello'],
    ['.a[?(@.b', 'a filter ends with'],
    ['.a[?(@.b)', 'a filter ends with'],
    ['.a[?(@.b).c]', 'a filter ends with'],
    ['.a[?(@.b==")]', 'a filter ends with'],
    ["[?(@.b=='\\')]", 'a filter ends with'],
    ['.a[1:2:x]', 'invalid array index 1:2:x'],
    ['.a[x1]', 'invalid array index x1'],
    ['.a[1x]', 'invalid array index 1x'],
    ['.a[1:2x]', 'invalid array index 1:2x'],
    ['.a[x:1]', 'invalid array index x:1'],
    ['.a[-]', 'invalid array index -'],
    [".a['b]", "invalid array index 'b"],
    ['.....a', 'invalid multiple recursive descent'],
    ['"x', 'unterminated quoted string'],
    ["'x\\'", 'unterminated quoted string'],
    ['#', 'unrecognized identifier #'],
    ['trueish', 'unrecognized identifier trueish'],
    ['.a[::0]', 'step must be > 0'],
    ['.a[::-1]', 'step must be > 0'],
    ['.a[]', 'invalid array index'],
    ['+.', 'cannot parse number +.'],
    ['1.2.3', 'cannot parse number 1.2.3'],
    ['[?(@==)]', 'unrecognized identifier ='],
  ])('that makes no sense is refused: %s', (path, why) => {
    expect(() => toJsonPath(path)).toThrow(SyntaxError);
    expect(() => toJsonPath(path)).toThrow(why);
  });

  test.each([
    ['.Labels[0]', 'not an array'],
    ['.Labels[?(@.x)]', 'cannot be filtered'],
    ['.Book[9]', 'out of bounds'],
    ['.Book[3]', 'out of bounds'],
    ['.Book[-4]', 'out of bounds'],
    ['.Book[3:9]', 'out of bounds'],
    ['.Book[0:4]', 'out of bounds'],
    ['.Book[0:-9]', 'out of bounds'],
    ['.Book[-9:1]', 'out of bounds'],
    ['.Book[?(@==@)]', 'incompatible types'],
    ['.Bicycle[?(@.IsNew<true)]', 'incompatible types'],
    ['.items[?(@.Book[*].Price==1)]', 'one element at a time'],
    ['.items[?(1==@.Book[*].Price)]', 'one element at a time'],
    ['.Book[2:1]', 'greater than ending'],
    ['.Book[?(@.Price<>10)]', 'unrecognized filter operator'],
    ['.Book[?(@.Price=="x")]', 'incompatible types'],
  ])('that does not fit an object throws: %s', (path, why) => {
    expect(() => found(path, { ...STORE, items: [STORE] })).toThrow(why);
  });

  test('is not followed for ever, and reads no members of prototypes', () => {
    const wide = Array.from({ length: 1_000 }, () => Array.from({ length: 200 }, () => 1));
    expect(() => found('..', wide)).toThrow('too large');
    expect(() => found('[*][?(@==1)]', wide)).toThrow('too large');
    expect(() => found(`[*][*]${"''".repeat(1_000)}`, wide.slice(0, 100))).toThrow('too large');
    expect(found('.a'.repeat(2_048), {})).toEqual([]);
    expect(() => toJsonPath(`${'.a'.repeat(2_048)} `)).toThrow('at most');
    expect(() => toJsonPath(`${'[?('.repeat(20)}@${')]'.repeat(20)}`)).toThrow(SyntaxError);
    expect(found('.constructor', {})).toEqual([]);
    expect(found('.__proto__', {})).toEqual([]);
  });
});
