/* SPDX-License-Identifier: MIT */
/* Takes over the attributes of programs that were compiled with other versions of the headers. */
#include <string.h>

#include "base/base.h"
#include "os/os.h"
#include "valid_attr.h"

#define SIZE_MOST 4096

bool attr_take(const struct attr_names *names, const void *given, void *known, size_t size,
               size_t least)
{
    const unsigned char *bytes = given;
    size_t told;

    memcpy(&told, given, sizeof told);
    if (told < least || told > SIZE_MOST || told % sizeof told) {
        os_report("%s: %s '%s': %s->size is %zu, not sizeof(struct %s), which is %zu", names->what,
                  names->kind, names->name, names->argument, told, names->structure, size);
        return false;
    }
    for (size_t i = size; i < told; i++)
        if (bytes[i]) {
            os_report(
                "%s: %s '%s': byte %zu of struct %s is not 0, and this library knows only the "
                "first %zu bytes; the program was compiled for a newer version",
                names->what, names->kind, names->name, i, names->structure, size);
            return false;
        }
    give_sized(known, size, given, told);
    return true;
}
