/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target on files, or on all files of folders, in the order of their names:
 *
 *   fuzz_TARGET FILE-OR-FOLDER...
 *
 * The last printed name belongs to the input that failed.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"

static unsigned inputs;

static _Noreturn void fail(const char *path)
{
    fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
    exit(1);
}

/* Runs the target on a block of exactly the input's size, so that a sanitizer sees a read past the
 * end. */
static void replay_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size ? size : 1);

    if (!file || !data || fread(data, 1, size, file) != size)
        fail(path);
    fclose(file);
    printf("%s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    inputs++;
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void replay(const char *path)
{
    struct dirent **entries;
    struct stat status;
    int count;

    if (stat(path, &status))
        fail(path);
    if (!S_ISDIR(status.st_mode)) {
        replay_file(path, (size_t)status.st_size);
        return;
    }
    count = scandir(path, &entries, is_shown, alphasort);
    if (count < 0)
        fail(path);
    for (int i = 0; i < count; i++) {
        char child[PATH_MAX];

        snprintf(child, sizeof child, "%s/%s", path, entries[i]->d_name);
        replay(child);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    printf("%u inputs\n", inputs);
    return inputs ? 0 : 1;
}
