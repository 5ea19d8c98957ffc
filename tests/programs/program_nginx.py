# SPDX-License-Identifier: MIT
# ctest: long (redis and postgresql are servers, too)
# ctest: processors 2
"""nginx: two workers under wrk's load, reloaded during the load; files come back as they are, also zipped."""

import gzip
import hashlib
import random
import signal
import socket
import urllib.request

from support import Failed, Program, free_port

CONFIGURATION = """
daemon off;
worker_processes 2;
pid {folder}/pid;
error_log stderr warn;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
    uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
    gzip on; gzip_types *; gzip_min_length 1;
    proxy_buffers 32 4k;
    server {{ listen 127.0.0.1:{port}; root {folder}/files;
              location /again/ {{ proxy_pass http://127.0.0.1:{port}/; }} }}
}}
"""


class Nginx(Program):
    packages = ("nginx-light", "wrk")
    wanted = ("nginx", "wrk")

    def setUp(self):
        super().setUp()
        self.port = free_port()
        files = self.make_folder("data/files")
        dice = random.Random(1)
        self.sums = {}
        for size in (0, 10, 4096, 100000, 3000000):
            text = bytes(dice.choices(b"abcdefgh \n", k=size))
            (files / f"{size}.txt").write_bytes(text)
            self.sums[f"{size}.txt"] = hashlib.md5(text).hexdigest()
        self.configuration = self.data / "nginx.conf"
        self.configuration.write_text(CONFIGURATION.format(folder=self.data, port=self.port))

    def is_listening(self):
        with socket.create_connection(("127.0.0.1", self.port), 1):
            return True

    def check_files(self):
        for name, expected in self.sums.items():
            for place in ("", "again/"):
                for coding in ("identity", "gzip"):
                    request = urllib.request.Request(f"http://127.0.0.1:{self.port}/{place}{name}",
                                                     headers={"Accept-Encoding": coding})
                    with urllib.request.urlopen(request, timeout=30) as answer:
                        body = answer.read()
                        if answer.headers.get("Content-Encoding") == "gzip":
                            body = gzip.decompress(body)
                    if hashlib.md5(body).hexdigest() != expected:
                        raise Failed(f"/{place}{name} came back changed ({coding})")

    def test_files(self):
        server = self.start_server("nginx", "-p", self.data, "-c", self.configuration,
                                   ready=self.is_listening, end=signal.SIGQUIT, drop=True)
        self.check_files()
        requests = 0
        for _ in range(self.pick(2, 10)):
            for place in ("4096.txt", "again/100000.txt"):
                done = self.run_program("wrk", "-t", 2, "-c", 40, "-d", f"{self.pick(1, 5)}s", "-H",
                                        "Accept-Encoding: gzip", f"http://127.0.0.1:{self.port}/{place}")
                if "Non-2xx" in done.stdout:
                    raise Failed(f"nginx refused requests:\n{done.stdout}")
                requests += int(done.stdout.split(" requests in ")[0].split()[-1])
            self.check_mapped(server)
            server.send_signal(signal.SIGHUP)  # new workers; the old ones end
            self.check_files()
        self.stop_server(server)
        self.note(f"{requests} requests, files as they are")
