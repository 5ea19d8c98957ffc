/* SPDX-License-Identifier: MIT */
/*
 * Runs one cell of the misuse matrix (misuse.h): `program_misuse OPERATION KIND SIZE RUN ORIGIN`,
 * each a number from the list that the program prints without arguments, except the size. The list
 * also says which cells mean nothing. The program prints how far it has come. It exits with 20 if
 * the cell cannot be set up, and with 77 if the cell needs a second CPU and there is none.
 */
#include "misuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOT_SET_UP = 20, NO_SECOND_CPU = 77 };

void say(const char *word, const void *pointer)
{
    char line[80];
    int length = pointer ? snprintf(line, sizeof line, "%s %p\n", word, pointer)
                         : snprintf(line, sizeof line, "%s\n", word);

    if (write(STDOUT_FILENO, line, (size_t)length) != length)
        _exit(NOT_SET_UP);
}

void require(bool condition, const char *what)
{
    if (condition)
        return;
    say(what, NULL);
    _exit(NOT_SET_UP);
}

/* Returns the reason why a cell means nothing, or NULL if the cell means something. */
static const char *means_nothing(const struct operation *operation, const struct kind *kind)
{
    if (kind->state == OTHER && !(operation->flags & (OPERATION_BY_CACHE | OPERATION_BY_SIZE)))
        return "it takes objects of any cache and size";
    if (kind->state == DATED && operation->flags & OPERATION_KEEPS)
        return "it may be used on objects with dates";
    return NULL;
}

/* Returns true if the library cannot notice the misuse later. */
static bool leaves_nothing(const struct operation *operation, const struct kind *kind)
{
    return operation->flags & OPERATION_ASKS && kind->state == DEAD;
}

static void list_all(void)
{
    for (size_t i = 0; i < operation_count; i++)
        printf("operation\t%s\n", operations[i].name);
    for (size_t i = 0; i < kind_count; i++)
        printf("kind\t%s\t%s\n", kinds[i].name, kinds[i].report);
    for (size_t i = 0; i < run_count; i++)
        printf("run\t%s\n", runs[i].name);
    for (size_t i = 0; i < origin_count; i++)
        printf("origin\t%s\n", origins[i].name);
    for (size_t i = 0; i < operation_count; i++) {
        for (size_t k = 0; k < kind_count; k++) {
            const char *reason = means_nothing(&operations[i], &kinds[k]);

            if (reason)
                printf("nothing\t%zu\t%zu\t%s\n", i, k, reason);
            if (leaves_nothing(&operations[i], &kinds[k]))
                printf("asks\t%zu\t%zu\n", i, k);
        }
    }
}

static size_t number(const char *text, size_t below)
{
    size_t value = strtoul(text, NULL, 10);

    require(value < below, "arguments");
    return value;
}

int main(int count, char **arguments)
{
    struct subject subject;
    const struct operation *operation;
    const struct kind *kind;
    const struct run *run;
    const struct origin *origin;

    if (count != 6) {
        list_all();
        return 0;
    }
    operation = &operations[number(arguments[1], operation_count)];
    kind = &kinds[number(arguments[2], kind_count)];
    run = &runs[number(arguments[4], run_count)];
    origin = &origins[number(arguments[5], origin_count)];
    memset(&subject, 0, sizeof subject);
    subject.other_cpu = kind->where == OTHER_CPU;
    if (!stay_on_cpu(true) && subject.other_cpu)
        return NO_SECOND_CPU;
    subject.size = subject.claimed = number(arguments[3], 1 << 20);
    subject.takes_cache = operation->flags & OPERATION_BY_CACHE;
    subject.cache = origin->make(&subject);
    subject.by_cache = subject.cache != NULL;
    make_pointer(&subject, kind);
    say("call", subject.pointer);
    operation->misuse(&subject);
    if (operation->finish)
        operation->finish(&subject);
    run->go_on(&subject);
    return 0;
}
