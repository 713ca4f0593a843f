// Texts that a kube-apiserver takes for those of a format, and texts that it does not, each with `|` between them: what formats.test.ts
// expects, and what test/peers/schemas.test.ts begins with.
export const FORMATS: Readonly<Record<string, readonly [accepted: string, refused: string]>> = {
  bsonobjectid: ['507f1f77bcf86cd799439011', ''],
  uri: [
    'http://a]b/|x://a:b:/|http://a>b/|http://a?b c|http://\u00e9/|http://h%c3%a9/|http://example.com/a?b#c|mailto:a@b.c|/a/b%20c|//host/x|///a|http://[::1]:80/|http://u:p@h:8/|*|a:b|urn:x|http://h:/|http://[fe80::1%25en0]/|http://[fe80::1%25\u2028en0]/|//[::1|file:///x|a+b-c.d:x|/:a|//u@/',
    'http://h/%zz|//h%zz|http://[::1%20x]/|http://a:b:/|http://u%:p@h/|http://[1.2.3.4]/|http://a b@c/|http://a:80:/|http://a b/|?|#|http://h%41/|http://a:b:c/|:a|1:a|http://[::1]x/|a/b:c|%41:|http://%/',
  ],
  email: [
    ' ab@ b|<a@\tb>|"x"< a@b.c>|a@[::1]|a@b (c) (d)|\u00a0@b|x (c) <a@b>|A <a@b> (c)|a@b.c|"a b"@c.d|A B <a@b.c>|"x, y" <a@b.c>|a@[1.2.3.4]|\u00e9@\u00fc.x| a@b |<a@b>|a@b (c)|A. B <a@b.c>|=?utf-8?q?x?= <a@b>',
    '""@x|a@[1.2.3]|a@[01.2.3.4]|a..b@c|a@b.|.a@b|a b@c|(x) a@b',
  ],
  hostname: ['example.com|a|a-b.c-d.org|\u00e9.com|A.CO|$.co|1', 'xn--a.b|-a.com|a.b|a.1|a..co|a.co.|a_b.co|1.2.3.4'],
  ipv4: [
    '::00ffff:1.2.3.4|10.0.0.1|255.255.255.255|010.1.1.1|::ffff:1.2.3.4|::1.2.3.4|1.2.3.04|0.0.0.0|::ffff:01.2.3.4',
    '1.2.3|1.2.3.4.5|256.1.1.1',
  ],
  ipv6: [
    '::1|2001:db8::1|::ffff:1.2.3.4|1:2:3:4:5:6:7:8|::|1:2:3:4:5:6:1.2.3.4|A::b',
    '00001::|fe80::1%eth0|1::2::3|:1|1:|12345::|::1.2.3.04',
  ],
  cidr: [
    '2001:0db8::/0128|00001::/8|10.0.0.0/8|::/0|10.1.2.3/08|2001:db8::/128|010.0.0.0/8|::ffff:1.2.3.4/96',
    '10.0.0.0/33|::1/129|1.2.3.4|1.2.3.4/-1|1.2.3.4/8/9|fe80::%a/64',
  ],
  mac: [
    '010203040506|0102030405060708|01020304050607080910111213141516171819aa|01:02:03:04:05:06|01-02-03-04-05-06|0102.0304.0506|01:02:03:04:05:06:07:08|0102.0304.0506.0708|AB:cd:EF:00:11:22',
    '0102030405|01020304:0506|0102:03:04:05:06|01:02-03:04:05:06',
  ],
  uuid: ['a8098c1a-f86e-11da-bd1a-00112444be1e|a8098c1af86e11dabd1a00112444be1e|A8098C1A-f86e-41da-bd1a-00112444be1e', ''],
  uuid3: ['bcd02e22-68f0-3046-a512-327cca9def8f', ''],
  uuid4: ['025b0d74-00a2-4048-bf57-227c5111bb34', '025b0d74-00a2-4048-7f57-227c5111bb34'],
  uuid5: ['886313e1-3b8a-5372-9b90-0c9aee199e5d', ''],
  isbn: ['0321751043|978-0321751041|097522980X|0-9752298-0-X|978 0321751041', '097522980x'],
  isbn10: ['0 3217\t51043|0321751043|097522980X|0-9752298-0-X', '0321751043\u00a0|0321751044'],
  isbn13: ['978-0321751041|9780321751041', '978-0321751042|978\u00a00321751041'],
  creditcard: [
    '4111-1111-1111-1111|4111111111111111|378282246310005|6011111111111117|30569309025904|3530111333300000|5555555555554444|4222222222222',
    '2131000000000008',
  ],
  ssn: ['111-11-1111|111 11 1111', '11111 11111|111-111111|111111111'],
  hexcolor: ['#fff|#FFFFFF|abc', '#abcd'],
  rgbcolor: [
    'rgb(\t1\n,2,3)|rgb(199,249,250)|rgb(255, 0, 10)|rgb(0,0,0)|rgb( 1 , 2 , 3 )',
    'rgb(1\u00a0,2,3)|rgb(-1,0,0)|rgb(256,0,0)|rgb(01,0,0)|rgba(1,1,1)',
  ],
  byte: ['YWJj|YQ==|YWI=', '====|Y===|YW-_|YW Jj|YQ==YQ=='],
  date: ['2006-01-02|2024-02-29|2000-02-29|0000-01-01', '2023-02-29|1900-02-29|2006-13-01|2006-04-31'],
  duration: [
    '9223372036854775807s|1\u00b5s9|1.9223372036854775808s|1h30m|1.5h|-1s|+.5m|0|1 day|3 weeks|5 hours|1us|1\u00b5s|1\u03bcs|10 milliseconds|1d|2w|1 microsecond|1x2s|a 5 min b|5minx|1e3s|3hr|3 wk|1 nanoseconds|12 secs|1h-1m|9999999999h|9223372036.5s|9223372037s|-9223372036.854775808s|9223372036.854775808s|2562047h47m16.854775807s|2562047h47m17s|.9223372036854775807h|5  d|3 d5x',
    '123372036854775807.s|9223372036854775808s|9223372036854775808ns|5\u00a0d|1\u00b5ss|1 dayx 99999999999999999999 d|1.|.s|12345678901234567890s',
  ],
  'date-time': [
    '2006-01-02T15:04:05Z|2006-01-02t15:04:05.999z|2006-01-02t15:04:05\u2028999z|2006-01-02T15:04:05+01:00|2006-01-02T15:04:05,5Z|2006-01-02T15:04:05-99:99|2006-01-02T15:04:05Ztx',
    '2006-01-02T24:00:00Z|2006-01-02T23:59:60Z|2006-01-02 15:04:05Z|2006-01-02T15:04:05|2024-02-30T00:00:00Z|2006-01-02T15:04Z|2006-01-02T15:04:05.Z',
  ],
  'k8s-short-name': ['a|a-b', 'A|-a|a.b|xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'],
  'k8s-long-name': [
    'a.b|a-b.c',
    'a..b|.a|xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
  ],
};
