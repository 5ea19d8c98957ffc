/* SPDX-License-Identifier: MIT */
/*
 * The misuse matrix: each operation (operations.c) gets a pointer of each kind (kinds.c), in objects of four sizes; then the
 * process goes on in one of four ways, its run (runs.c). A cell is an operation, a kind and a size. Each run of each cell is a
 * process of its own (program_misuse.c), and test_misuse.py judges how it ended. The whole matrix exists for several origins of
 * the objects (origins.c).
 */
#ifndef TESTS_MISUSE_H
#define TESTS_MISUSE_H

#include <prudence/prudence.h>
#include <stdbool.h>
#include <stddef.h>

#define OBJECTS     300  /* of most cells */
#define OBJECTS_MAX 4096 /* of those that fill a ring of small objects */

struct operation;
struct kind;

/* What a cell works on. */
struct subject {
    size_t size;
    bool by_cache;                  /* the objects are those of `cache`; else of prudence_malloc */
    struct prudence_cache *cache;   /* what operations by cache are given */
    struct prudence_domain *domain; /* of the cache; NULL: the default domain */
    bool takes_cache;               /* the operation takes the cache */
    bool other_cpu;                 /* something of the objects' cache is on another CPU, too */
    size_t claimed;                 /* the size that prudence_free_sized is given */
    size_t count;                   /* of `objects`, NULLs included */
    void *objects[OBJECTS_MAX];     /* allocated by the cell; NULL: freed, deferred or misused */
    void *pointer;                  /* is misused */
    _Alignas(16) char on_stack[64]; /* the subject is on main's stack */
};

enum operation_flags {
    OPERATION_BY_CACHE = 1 << 0, /* takes the cache, so it has objects of one */
    OPERATION_BY_SIZE = 1 << 1,  /* takes the size */
    OPERATION_KEEPS = 1 << 2,    /* may be used on objects with dates */
    OPERATION_ASKS = 1 << 3,     /* changes nothing, so nothing can be noticed later */
};

struct operation {
    const char *name;
    unsigned flags;
    void (*misuse)(struct subject *subject);
    void (*finish)(struct subject *subject); /* NULL, or what comes later and belongs to it */
};

enum kind_flags {
    KIND_DEAD = 1 << 0,      /* an object that was freed or deferred */
    KIND_OTHER = 1 << 1,     /* a live object of another cache, or size */
    KIND_DATED = 1 << 2,     /* a live object that has a date */
    KIND_OTHER_CPU = 1 << 3, /* needs a second CPU */
};

struct kind {
    const char *name;
    unsigned flags;
    void (*make)(struct subject *subject); /* leaves the pointer in the subject */
};

struct run {
    const char *name;
    void (*go_on)(struct subject *subject);
};

/* Where the objects come from. */
struct origin {
    const char *name;
    struct prudence_cache *(*make)(struct subject *subject);
};

extern const struct operation operations[];
extern const struct kind kinds[];
extern const struct run runs[];
extern const struct origin origins[];
extern const size_t operation_count, kind_count, run_count, origin_count;

/* program_misuse.c */

/* Tells test_misuse.py how far the process has come. */
void say(const char *word, const void *pointer);
/* Ends the process when the cell cannot be set up as it should. */
void require(bool condition, const char *what);

/* kinds.c */

void *allocate(struct subject *subject);
void give(const struct subject *subject, void *object);
/* threads.c */

/* Stays on one CPU. False: there is no second one. */
bool stay_on_cpu(bool home);
/* Calls `end` for the pointer in another thread. */
void end_in_thread(struct subject *subject,
                   void (*end)(const struct subject *subject, void *object), bool at_home,
                   bool stays);
/* A thread enters a section of the objects' domain, and leaves it; the second does nothing if none has entered. */
void reader_enters(const struct subject *subject);
void reader_leaves(void);
/* Waits for the readers of the objects' domain. */
void synchronize(const struct subject *subject);

#endif /* TESTS_MISUSE_H */
