# SPDX-License-Identifier: MIT
# ctest: processors 2
"""Node.js: buffers, compression, digests and worker threads. V8's own heap is not malloc's; buffers,
zlib, OpenSSL, the compiler's zones and all of the C++ around it are."""

from support import Program

SCRIPT = r"""
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const zlib = require('zlib'), crypto = require('crypto');
function bytes(size, seed) {
    const made = Buffer.allocUnsafeSlow(size);
    for (let i = 0; i < size; i++) { seed = (Math.imul(seed, 1103515245) + 12345) >>> 0; made[i] = seed >>> 20; }
    return made;
}
function work(rounds) {
    const kept = new Map(), digest = crypto.createHash('sha256');
    for (let i = 0; i < rounds; i++) {
        const raw = bytes(1 + (i * 7919) % 30000, i);
        for (const [pack, unpack] of [[zlib.deflateSync, zlib.inflateSync], [zlib.brotliCompressSync,
             zlib.brotliDecompressSync]].slice(0, i % 20 ? 1 : 2))
            if (!unpack(pack(raw)).equals(raw)) throw new Error('compression changed round ' + i);
        digest.update(raw);
        kept.set(i % 500, raw);
        kept.delete((i * 31) % 500);
        const sum = crypto.createHmac('sha512', raw).update(JSON.stringify([...raw.subarray(0, 50)]));
        digest.update(sum.digest());
    }
    for (const [, raw] of kept) digest.update(raw);
    return digest.digest('hex');
}
if (!isMainThread) {
    parentPort.postMessage(work(workerData));
} else {
    const rounds = +process.argv[2], crew = +process.argv[3];
    const first = work(rounds);
    const start = () => new Promise((good, bad) => {
        const worker = new Worker(__filename, { workerData: rounds });
        worker.on('message', good); worker.on('error', bad);
    });
    const asynchronous = Promise.all([...Array(50).keys()].map(i => new Promise((good, bad) => {
        const raw = bytes(100000, i);
        zlib.gzip(raw, (e, packed) => e ? bad(e) : zlib.gunzip(packed, (e, back) =>
            e || !back.equals(raw) ? bad(e || new Error('gzip')) : good()));
    })));
    Promise.all([...Array(crew).keys()].map(start)).then(async found => {
        await asynchronous;
        if (found.some(one => one !== first)) throw new Error('threads differ: ' + found + first);
        console.log(first);
    });
}
"""


class Node(Program):
    packages = ("nodejs",)
    wanted = ("node",)
    least = 50000

    def test_script(self):
        script = self.script("script.js", SCRIPT)
        rounds, crew = self.pick((300, 3), (2500, 8))
        ours = self.run_program("node", script, rounds, crew)
        self.assertEqual(ours.stdout, self.run_plain("node", script, rounds, 0).stdout)
        self.note(f"{crew + 1} threads alike, as without us")
