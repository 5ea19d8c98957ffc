# SPDX-License-Identifier: MIT
# ctest: long (threads that compress; z3 and openssl stay)
# ctest: processors 2
"""tar, xz with threads, gzip, bzip2: archives come back whole, and the same as without us."""

import random

from support import Program


class Tar(Program):
    packages = ("tar", "xz-utils", "gzip", "bzip2")
    wanted = ("tar", "xz", "gzip", "bzip2")

    def build(self):
        tree, dice = self.make_folder("data/tree"), random.Random(1)
        words = [dice.randbytes(dice.randrange(2, 30)) for _ in range(3000)]
        for number in range(self.pick(40, 700)):
            place = tree / f"folder {number % 17}" / ("deep/" * (number % 5))
            place.mkdir(parents=True, exist_ok=True)
            (place / f"file{number}").write_bytes(b"".join(dice.choices(words, k=dice.randrange(4000))))

    def test_archives(self):
        self.build()
        shape = "tar", "--sort=name", "--mtime=@0", "--owner=0", "--group=0", "-cf"
        self.run_program(*shape, "ours.tar", "tree")
        self.run_plain(*shape, "plain.tar", "tree")
        archive = (self.data / "ours.tar").read_bytes()
        self.assertTrue(archive == (self.data / "plain.tar").read_bytes(), "the archives differ")
        for packer in (("xz", "-T2", "--block-size=1MiB"), ("xz", "-T1", "-9"), ("gzip", "-9"), ("bzip2",)):
            packed, name = [], f"packed.{packer[0]}"
            for run in self.run_program, self.run_plain:
                run(*packer, "-c", "ours.tar", stdout=self.data / name)
                packed.append((self.data / name).read_bytes())
            self.assertTrue(packed[0] == packed[1], f"{' '.join(packer)} packs otherwise")
            self.run_program(packer[0], "-dc", name, stdout=self.data / "unpacked")
            self.assertTrue((self.data / "unpacked").read_bytes() == archive, f"{packer[0]} unpacks otherwise")
        place = self.make_folder("data/out")
        self.run_program("tar", "-C", place, "-xJf", "packed.xz")
        self.run_plain("diff", "-r", "tree", place / "tree")
        self.note(f"{len(archive)} bytes through tar, xz, gzip and bzip2, the same as without us")
