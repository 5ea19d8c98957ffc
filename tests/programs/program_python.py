# SPDX-License-Identifier: MIT
# ctest: cost 19
"""CPython and its own tests, with PYTHONMALLOC=malloc: every object is ours, not one of pymalloc's."""

from support import Failed, Program

MALLOC = {"PYTHONMALLOC": "malloc"}
ALLOCATES = """
import json, threading
def work(seed, results):
    table = {str(n): [n] * (n % 40) for n in range(seed, seed + 20000)}
    results[seed] = sum(map(len, json.loads(json.dumps(table)).values()))
results = {}
threads = [threading.Thread(target=work, args=(n, results)) for n in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(results == {n: sum(m % 40 for m in range(n, n + 20000)) for n in range(4)})
"""
SHORT = """test_dict test_bytes test_struct test_zlib test_thread test_fork1""".split()
FULL = SHORT + """test_list test_set test_threading test_unicode test_re test_decimal test_array test_bigmem test_buffer
test_bz2 test_concurrent_futures test_ctypes
test_deque test_functools test_gc test_io test_json test_lzma test_memoryio test_memoryview test_mmap
test_multiprocessing_fork test_pickle test_queue test_socket test_ssl test_subprocess test_weakref
test_xml_etree test_xml_etree_c""".split()


class Python(Program):
    packages = ("python3.11", "libpython3.11-testsuite")
    wanted = ("/usr/bin/python3.11", "/usr/lib/python3.11/test/test_list.py")
    least = 1000000

    def test_threads_and_objects(self):
        done = self.run_program("/usr/bin/python3.11", self.script("allocate.py", ALLOCATES),
                                 env=MALLOC)
        self.assertEqual(done.stdout, "True\n")

    def test_own_tests(self):
        passed, failed, environment = 0, [], []
        for name in self.pick(SHORT, FULL):
            # Sockets to virtual machines hang where there is a device but no peer.
            command = ["/usr/bin/python3.11", "-m", "test", "--timeout", "240", "-i", "*VSOCK*", name]
            try:
                # Some compare standard error, and which descriptors are open.
                self.run_program(*command, env=MALLOC, trace=False, watch=True)
                passed += 1
            except Failed as error:
                try:
                    self.run_plain(*command, env=MALLOC)
                    failed.append(f"{name}: {error}")
                except Failed:
                    environment.append(name)
        if failed:
            raise Failed("\n".join(failed))
        self.note(f"{passed} of its test files pass")
        if environment:
            self.note(f"fail without us as well: {' '.join(environment)}")
