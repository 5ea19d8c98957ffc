# SPDX-License-Identifier: MIT
"""The allocators: where each one's library is, and its version."""

import json
import os
import re
import subprocess
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

from preload import ld_preload

SYSTEM = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}"
MIMALLOC3 = "mimalloc3/lib/python3*/site-packages/cmeel.prefix/lib/libmimalloc.so.3"
PEERS = "peers/libraries"  # the newest of Rust's registry, and those that Debian does not have


@dataclass
class Allocator:
    name: str
    library: str  # patterns, of which the first that exists counts; relative to the build folder unless it begins with /
    hint: str     # how to get it
    package: str = ""  # of Debian, or a crate, which knows the version when the library does not report it
    environment: dict = field(default_factory=dict)  # of its processes
    path: Path = None
    version: str = ""

    def find(self, build):
        found = (path for pattern in self.library.split() for path in sorted(Path("/").glob(pattern[1:]) if pattern[0] == "/" else build.glob(pattern)))
        self.path = next((path.resolve() for path in found), None)
        return self.path is not None


def debian(package):
    return f"`tools/setup --programs` installs it ({package})"


def crate(name):
    return f"`tools/setup --programs` builds it ({name} of Rust's registry), but not offline"


ALLOCATORS = [
    # Preloaded as well: some programs (redis-server) are linked with an allocator of their own.
    Allocator("glibc", f"{SYSTEM}/libc.so.6", "this system has another C library"),
    Allocator("prudence", "libprudence-malloc.so", "`make build` builds it"),
    Allocator("jemalloc", f"{PEERS}/jemalloc-prefix/src/jemalloc-build/lib/libjemalloc.so.2 {SYSTEM}/libjemalloc.so.2", debian("libjemalloc2")),
    Allocator("mimalloc", f"{PEERS}/libmimalloc2-crate.so {SYSTEM}/libmimalloc.so.2", debian("libmimalloc2.0")),
    Allocator("mimalloc3", MIMALLOC3, "`tools/setup --programs` installs it (cmeel-mimalloc of PyPI), but not offline"),
    Allocator("tcmalloc", f"{SYSTEM}/libtcmalloc_minimal.so.4", debian("libtcmalloc-minimal4")),
    Allocator("tcmalloc-google", f"{PEERS}/libtcmalloc-google.so", crate("libtcmalloc-sys"), "libtcmalloc-sys"),
    Allocator("snmalloc", f"{PEERS}/snmalloc/libsnmallocshim.so", crate("snmalloc-sys"), "snmalloc-sys"),
    Allocator("rpmalloc", f"{PEERS}/librpmalloc.so", crate("rpmalloc-sys"), "rpmalloc-sys"),
    Allocator("tbbmalloc", f"{SYSTEM}/libtbbmalloc_proxy.so.2", debian("libtbbmalloc2"), "libtbbmalloc2"),
    Allocator("scudo", "/usr/lib/llvm-14/lib/clang/*/lib/linux/"
              f"libclang_rt.scudo_standalone-{os.uname().machine}.so",
              debian("libclang-rt-14-dev"), "libclang-rt-14-dev"),
]

# An allocator of these with other options; measured only if it is named.
VARIANTS = [Allocator("prudence-huge", "libprudence-malloc.so", "`make build` builds it", environment={"PRUDENCE_OPTIONS": "huge_pages=1"})]


def probe(allocator, load):
    """Returns the output of the load program with this allocator preloaded, or None if the program does not run."""
    done = subprocess.run([load, "probe"], capture_output=True, text=True, timeout=60, env={**os.environ, **allocator.environment, "LD_PRELOAD": ld_preload(allocator.path)})
    return json.loads(done.stdout) if done.returncode == 0 else None


def package_version(package):
    if pinned := re.search(rf'^{package} = "=(.*)"', (Path(__file__).parent / "peers/Cargo.toml").read_text(encoding="utf-8"), re.M):
        return f"{package} {pinned[1]}"
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], text=True, capture_output=True)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def prepare(allocator, build, load):
    """Finds the library and its version. Returns the reason why the allocator cannot be measured, or None."""
    if not allocator.find(build):
        return f"{allocator.library} is not there: {allocator.hint}"
    said = probe(allocator, load)
    if said is None:
        return f"nothing runs with {allocator.path} preloaded"
    file = said["allocator"]["file"]
    if file != allocator.path.name:
        return f"with {allocator.path} preloaded malloc comes from {file}"
    allocator.version = said["allocator"]["version"]
    if allocator.package:
        allocator.version = package_version(allocator.package)
    return None
