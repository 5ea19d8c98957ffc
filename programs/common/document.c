/* SPDX-License-Identifier: MIT */
#include "document.h"

#include <stdio.h>
#include <time.h>

#include "host.h"

json_t *document_begin(const char *program)
{
    time_t now = time(NULL);
    char date[32];

    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    return json_pack("{s:s, s:s, s:o}", "program", program, "date", date, "host",
                     host_description());
}

int document_write(json_t *document, const char *path)
{
    if (!json_dump_file(document, path, JSON_INDENT(1) | JSON_REAL_PRECISION(9)))
        return 0;
    fprintf(stderr, "%s: cannot write '%s'\n",
            json_string_value(json_object_get(document, "program")), path);
    return -1;
}
