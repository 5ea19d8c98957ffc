# SPDX-License-Identifier: MIT
"""OpenSSL: keys, signatures, certificates and a TLS connection; a plain run accepts ours."""

import hashlib
import random

from support import Failed, Program, free_port


class Openssl(Program):
    packages = ("openssl",)
    wanted = ("openssl",)

    def test_keys(self):
        text = self.data / "text"
        text.write_bytes(random.Random(1).randbytes(self.pick(1, 50) * 1000000))
        rounds = 0
        for name, options in (("RSA", ("-pkeyopt", f"rsa_keygen_bits:{self.pick(2048, 4096)}")),
                              ("EC", ("-pkeyopt", "ec_paramgen_curve:P-256")),
                              ("EC", ("-pkeyopt", "ec_paramgen_curve:secp384r1"))) * self.pick(1, 10):
            self.run_program("openssl", "genpkey", "-algorithm", name, *options, "-out", "key")
            self.run_program("openssl", "pkey", "-in", "key", "-pubout", "-out", "public")
            self.run_program("openssl", "dgst", "-sha256", "-sign", "key", "-out", "signature", text)
            for run in self.run_program, self.run_plain:
                run("openssl", "dgst", "-sha256", "-verify", "public", "-signature", "signature", text)
            rounds += 1
        password = "-pbkdf2", "-pass", "pass:secret"
        self.run_program("openssl", "enc", "-aes-256-cbc", *password, "-in", text, "-out", "closed")
        self.run_plain("openssl", "enc", "-d", "-aes-256-cbc", *password, "-in", "closed", "-out", "opened")
        self.assertTrue((self.data / "opened").read_bytes() == text.read_bytes(), "decrypted otherwise")
        digest = self.run_program("openssl", "dgst", "-sha3-256", "-r", text).stdout.split()[0]
        self.assertEqual(digest, hashlib.sha3_256(text.read_bytes()).hexdigest())
        self.note(f"{rounds} keys sign and verify")

    def test_connections(self):
        self.run_program("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                         "-nodes", "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem")
        self.run_program("openssl", "verify", "-CAfile", "cert.pem", "cert.pem")
        port, page = free_port(), self.data / "page"
        page.write_text("served\n" * 20000)
        server = self.start_server("openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-key", "key.pem",
                                   "-cert", "cert.pem", "-WWW", "-quiet",
                                   ready=lambda: self.fetch(port) is not None)
        rounds = self.pick(10, 300)
        for _ in range(rounds):
            if self.fetch(port).count("served\n") != 20000:
                raise Failed("the page came back changed")
        self.check_mapped(server)
        self.stop_server(server, expect=-15)
        self.note(f"{rounds} TLS connections")

    def fetch(self, port):
        request = self.data / "request"
        request.write_text("GET /page HTTP/1.0\r\n\r\n")
        return self.run_program("openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-CAfile",
                                "cert.pem", "-verify_return_error", "-quiet", "-ign_eof", stdin=request).stdout
