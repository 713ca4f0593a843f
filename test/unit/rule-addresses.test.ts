// IP addresses and networks in rules, as Go's net/netip and the library of rules read, write and sort them.
import { describe, expect, it } from 'vitest';
import { ADDRESS_FUNCTIONS, Cidr, Ip } from '../../src/apiserver/validation/rule-addresses.ts';
import { meter } from '../../src/apiserver/validation/rule-cost.ts';

const call = (name: string, ...args: unknown[]): unknown => {
  meter.left = 1_000;
  return ADDRESS_FUNCTIONS[name]?.(...(args as never[]));
};
const ip = (text: string): Ip => call('ip(string): net.IP', text) as Ip;
const cidr = (text: string): Cidr => call('cidr(string): net.CIDR', text) as Cidr;

describe('an address', () => {
  it.each([
    ['10.0.200.1', '10.0.200.1'],
    ['2001:DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7'],
    ['1:2:3:4:5:6:0:0', '1:2:3:4:5:6::'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['::1.2.3.4', '::102:304'],
  ])('%s is written as %s', (given, written) => {
    expect([String(ip(given)), ip(given).key, call('string(net.IP): string', ip(given))]).toEqual([
      written,
      `ip${written}`,
      written,
    ]);
    expect(call('kubernetes.IPs.isCanonical(string): bool', undefined, given)).toBe(given === written);
    expect(call('isIP(string): bool', given)).toBe(true);
  });

  const unable = (text: string): string =>
    `IP Address "${text}" parse error during conversion from string: ParseAddr("${text}"): unable to parse IP`;
  it.each([
    ['', unable('')],
    ['x', unable('x')],
    ['1.2.3', 'parse error'],
    ['01.2.3.4', 'parse error'],
    ['1.02.3.4', 'parse error'],
    ['1.2.3.4%eth0', 'parse error'],
    ['1:2:3', 'parse error'],
    [`::${'0'.repeat(63)}`, 'parse error'],
    ['fe80::1%eth0', 'IP address "fe80::1%eth0" with zone value is not allowed'],
    ['::ffff:1.2.3.4', 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'],
  ])('%j is none: %s', (text, why) => {
    expect(() => ip(text)).toThrow(why);
    expect(call('isIP(string): bool', text)).toBe(false);
  });

  it.each([
    ['0.0.0.0', 'isUnspecified'],
    ['::', 'isUnspecified'],
    ['127.9.9.9', 'isLoopback'],
    ['::1', 'isLoopback'],
    ['224.0.0.9', 'isLinkLocalMulticast'],
    ['ff02::1', 'isLinkLocalMulticast'],
    ['ff12::1', 'isLinkLocalMulticast'],
    ['169.254.1.1', 'isLinkLocalUnicast'],
    ['febf::1', 'isLinkLocalUnicast'],
    ['8.8.8.8', 'isGlobalUnicast'],
    ['::2', 'isGlobalUnicast'],
    ['fec0::1', 'isGlobalUnicast'],
    ['::ffff:ffff', 'isGlobalUnicast'],
    ['224.0.1.1', ''],
    ['ff05::1', ''],
    ['f002::1', 'isGlobalUnicast'],
    ['255.255.255.255', ''],
  ])('%s is what %s finds, and nothing else', (text, expected) => {
    const kinds = ['isUnspecified', 'isLoopback', 'isLinkLocalMulticast', 'isLinkLocalUnicast', 'isGlobalUnicast'];
    expect(kinds.filter((kind) => call(`net.IP.${kind}(): bool`, ip(text)))).toEqual(expected === '' ? [] : [expected]);
  });

  it('costs by its length', () => {
    for (const [make, text] of [
      [Ip.of, '::1'],
      [Cidr.of, '::/8'],
    ] as const) {
      meter.left = 2;
      make(text);
      expect(meter.left).toBe(1 - text.length / 32);
    }
  });
});

describe('a network', () => {
  const parse = 'network address parse error during conversion from string: ';
  it.each([
    ['10.0.0.0', "no '/'"],
    ['/8', 'ParseAddr(""): unable to parse IP'],
    ['x/8', 'ParseAddr("x"): unable to parse IP'],
    ['fe80::1%eth0/8', 'IPv6 zones cannot be present in a prefix'],
    ['10.0.0.0/', 'bad bits after slash: ""'],
    ['10.0.0.0/08', 'bad bits after slash: "08"'],
    ['10.0.0.0/8x', 'bad bits after slash: "8x"'],
    ['10.0.0.0/33', 'prefix length out of range'],
    ['::/129', 'prefix length out of range'],
  ])('%s is none: %s', (text, why) => {
    expect(() => cidr(text)).toThrow(`${parse}${parse}netip.ParsePrefix("${text}"): ${why}`);
    expect(call('isCIDR(string): bool', text)).toBe(false);
  });

  it('is not that of a mapped address', () => {
    const text = '::ffff:1.2.3.4/96';
    expect(() => cidr(text)).toThrow(`${parse}IPv4-mapped IPv6 address "${text}" is not allowed`);
  });

  it.each([
    ['10.1.2.3/32', '10.1.2.3/32'],
    ['255.1.2.3/0', '0.0.0.0/0'],
    ['10.1.2.3/12', '10.0.0.0/12'],
    ['2001:db8::1/128', '2001:db8::1/128'],
    ['2001:db8:ffff::1/33', '2001:db8:8000::/33'],
  ])('%s is written as it is, and masked %s', (text, masked) => {
    const made = cidr(text);
    expect([String(made), made.key, call('string(net.CIDR): string', made)]).toEqual([text, `cidr${text}`, text]);
    expect(String(call('net.CIDR.masked(): net.CIDR', made))).toBe(masked);
    expect(call('isCIDR(string): bool', text)).toBe(true);
  });

  it.each([
    ['10.0.0.0/8', '10.255.255.255', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['0.0.0.0/0', '::', false],
    ['::/0', '0.0.0.0', false],
    ['::/96', '1.2.3.4', false],
  ])('whether %s has %s: %s', (text, address, expected) => {
    expect(call('net.CIDR.containsIP(string): bool', cidr(text), address)).toBe(expected);
    expect(call('net.CIDR.containsIP(net.IP): bool', cidr(text), ip(address))).toBe(expected);
  });

  it.each([
    ['10.0.0.0/8', '10.0.0.0/8', true],
    ['10.0.0.0/8', '10.1.0.0/16', true],
    ['10.0.0.0/8', '10.0.0.0/7', false],
    ['10.0.0.0/8', '11.0.0.0/16', false],
  ])('whether %s has all of %s: %s', (text, other, expected) => {
    expect(call('net.CIDR.containsCIDR(string): bool', cidr(text), other)).toBe(expected);
    expect(call('net.CIDR.containsCIDR(net.CIDR): bool', cidr(text), cidr(other))).toBe(expected);
  });
});
