/* SPDX-License-Identifier: MIT */
/*
 * The misuse matrix. Each operation (operations.c) gets a pointer of each kind (kinds.c), in
 * objects of some sizes. Then the process goes on in one of four ways, the run (runs.c). A cell is
 * an operation, a kind and a size. Each run of each cell is a separate process (program_misuse.c),
 * and test_misuse.py judges how the process ended. The matrix is repeated for several origins of
 * the objects (origins.c).
 */
#ifndef TESTS_MISUSE_H
#define TESTS_MISUSE_H

#include <prudence/prudence.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBJECTS     300  /* number of objects in most cells */
#define OBJECTS_MAX 4096 /* number in cells that fill a ring of small objects */

struct operation;
struct kind;

/* State of a cell. */
struct subject {
    size_t size;
    bool by_cache;                  /* objects come from `cache`, else from prudence_malloc */
    struct prudence_cache *cache;   /* argument of operations by cache */
    struct prudence_domain *domain; /* the cache's domain; NULL: the default domain */
    bool takes_cache;               /* the operation takes the cache */
    bool other_cpu;                 /* the cell also frees or defers on a second CPU */
    size_t claimed;                 /* argument of prudence_free_sized */
    size_t count;                   /* length of `objects`, NULLs included */
    void *objects[OBJECTS_MAX];     /* the cell's objects; NULL: freed, deferred or misused */
    void *pointer;                  /* the misused pointer */
    _Alignas(16) char on_stack[64]; /* memory of main's stack, where the subject is */
};

enum operation_flags {
    OPERATION_BY_CACHE = 1 << 0, /* takes the cache, so the objects come from one */
    OPERATION_BY_SIZE = 1 << 1,  /* takes the size */
    OPERATION_KEEPS = 1 << 2,    /* may be used on objects with dates */
    OPERATION_ASKS = 1 << 3,     /* changes nothing, so nothing can be noticed later */
};

struct operation {
    const char *name;
    unsigned flags;
    void (*misuse)(struct subject *subject);
    void (*finish)(struct subject *subject); /* a later part of the operation, or NULL */
};

/* A pointer, and what has happened to its object. */
struct kind {
    const char *name;
    enum {
        NO_OBJECT,
        DEAD,  /* a freed or deferred object */
        OTHER, /* a live object of another cache or size */
        DATED, /* a live object that has a date */
    } state;
    void (*end)(const struct subject *subject, void *object); /* frees or defers */
    enum { HERE, THREAD, ENDED_THREAD, OTHER_CPU } where;     /* the end takes place */
    size_t others; /* number of other objects that end after it */
    enum {
        READ = 1 << 0, /* a reader is inside from before the end */
        MANY = 1 << 1, /* the objects have many slabs */
        SYNCHRONIZE = 1 << 2,
        EMPTY = 1 << 3, /* the caches of CPUs */
        TRIM = 1 << 4,
    } then;
    void (*make)(struct subject *subject); /* makes the pointer of the chosen object, or NULL */
    const char *report;                    /* what a report says that comes at the call */
};

#define ALL_BUT_10 SIZE_MAX

struct run {
    const char *name;
    void (*go_on)(struct subject *subject);
};

/* Source of the objects. */
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
/* Ends the process if the cell cannot be set up. */
void require(bool condition, const char *what);

/* kinds.c */

/* Sets the subject's pointer. */
void make_pointer(struct subject *subject, const struct kind *kind);
void *allocate(struct subject *subject);
void give(const struct subject *subject, void *object);
/* threads.c */

/* Pins the thread to the home CPU or to the next. Returns false if there is only one CPU. */
bool stay_on_cpu(bool home);
/* Calls `end` for the pointer in another thread. */
void end_in_thread(struct subject *subject,
                   void (*end)(const struct subject *subject, void *object), bool at_home,
                   bool stays);
/* Make a thread enter a section of the objects' domain, and leave the section. reader_leaves() does
 * nothing if no thread has entered. */
void reader_enters(const struct subject *subject);
void reader_leaves(void);
/* Waits for the readers of the objects' domain. */
void synchronize(const struct subject *subject);

#endif /* TESTS_MISUSE_H */
