// SPDX-License-Identifier: MIT
// Buffers, compression and digests, whose memory is from malloc; the argument is how much.
const zlib = require('zlib'), crypto = require('crypto');
const scale = Number(process.argv[2]);
let state = 1;
const random = bound => (state = state * 48271 % 2147483647) % bound;
const kept = [];
const hash = crypto.createHash('sha256');
for (let i = 0; i < 3000 * scale; i++) {
    const buffer = Buffer.alloc(100 + random(20000), 'text ' + random(100000));
    const packed = zlib.deflateSync(buffer, {level: 1});
    hash.update(zlib.inflateSync(packed));
    kept[random(500)] = [packed, buffer, new Uint8Array(random(9000))];
}
console.log(hash.digest('hex'), kept.length);
