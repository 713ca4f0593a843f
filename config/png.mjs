// Makes a picture of a page small: of its colours, 256 are kept, and the bytes are packed as well as zlib can.
import { deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** The chunks of a PNG. */
function* chunks(png) {
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    yield { type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) };
    at += length + 12;
  }
}

/** What is predicted of a byte, by the filter of its line: from the bytes to the left, above, and left above. */
const PREDICTED = [
  () => 0,
  (left) => left,
  (_left, up) => up,
  (left, up) => (left + up) >> 1,
  (left, up, corner) => {
    const [one, two, three] = [Math.abs(up - corner), Math.abs(left - corner), Math.abs(left + up - 2 * corner)];
    return one <= two && one <= three ? left : two <= three ? up : corner;
  },
];

/** The pixels of a PNG of 8 bits per colour, without palette. */
function decode(png) {
  const all = [...chunks(png)];
  const header = all[0].data;
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const size = header[9] === 6 ? 4 : 3;
  const packed = Buffer.concat(all.filter(({ type }) => type === 'IDAT').map(({ data }) => data));
  const lines = inflateSync(packed);
  const stride = width * size;
  const bytes = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y++) {
    const predicted = PREDICTED[lines[y * (stride + 1)]];
    for (let x = 0; x < stride; x++) {
      const at = y * stride + x;
      const left = x < size ? 0 : bytes[at - size];
      const up = y === 0 ? 0 : bytes[at - stride];
      const corner = x < size || y === 0 ? 0 : bytes[at - stride - size];
      bytes[at] = lines[y * (stride + 1) + 1 + x] + predicted(left, up, corner);
    }
  }
  return { width, height, colours: Uint32Array.from({ length: width * height }, (_, i) => bytes.readUIntBE(i * size, 3)) };
}

/** Of colours that are alike, the one that is used most; the more alike, the more colours there are. */
function paletteOf(colours) {
  const used = new Map();
  for (const colour of colours) used.set(colour, (used.get(colour) ?? 0) + 1);
  const popular = [...used].sort((one, other) => other[1] - one[1]).map(([colour]) => colour);
  for (let near = 2; ; near += 2) {
    const kept = [];
    const indexes = new Map();
    for (const colour of popular) {
      const found = kept.findIndex((other) => distance(colour, other) <= near);
      indexes.set(colour, found < 0 ? kept.push(colour) - 1 : found);
      if (kept.length > 256) break;
    }
    if (kept.length <= 256) return { kept, indexes };
  }
}

function distance(one, other) {
  return Math.max(...[16, 8, 0].map((shift) => Math.abs(((one >> shift) & 255) - ((other >> shift) & 255))));
}

const CRCS = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  let crc = 0xffffffff;
  for (const byte of body) crc = CRCS[(crc ^ byte) & 255] ^ (crc >>> 8);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.length);
  sum.writeUInt32BE((crc ^ 0xffffffff) >>> 0);
  return Buffer.concat([length, body, sum]);
}

/** Returns the same picture with at most 256 colours. */
export function toSmallPng(png) {
  const { width, height, colours } = decode(png);
  const { kept, indexes } = paletteOf(colours);
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) lines[y * (width + 1) + 1 + x] = indexes.get(colours[y * width + x]);
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const palette = Buffer.from(kept.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  const packed = deflateSync(lines, { level: 9, memLevel: 9 });
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('PLTE', palette),
    chunk('IDAT', packed),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}
