/* SPDX-License-Identifier: MIT */
/*
 * The file that prudence-latent reads while the program runs, and after it has ended or crashed.
 * The program maps it shared and adds to it by relaxed atomic additions. prudence_latent/record.py
 * has the same layout; `version` distinguishes them.
 *
 * Times are in ns. A thread adds to one of PARTS parts, so few threads share a line.
 */
#ifndef LATENT_LAYOUT_H
#define LATENT_LAYOUT_H

#include <stdint.h>

#define LATENT_MAGIC   UINT64_C(0x746e6574616c7270) /* "prlatent" */
#define LATENT_VERSION 3
#define PARTS          16
#define SITES          512    /* calling places; the last is for all that have no room */
#define SLOTS          131072 /* of time */
#define BUCKETS        256    /* of waits: four to each power of two */
#define FILE_BYTES     232
#define PROGRAM_BYTES  256

/* The function that a place called. */
enum latent_kind {
    KIND_NONE,
    KIND_CALL,        /* call_rcu */
    KIND_SYNCHRONIZE, /* waits for a grace period */
    KIND_BARRIER,     /* waits for callbacks */
    KIND_DEFER,       /* defer_rcu, DPDK's queue, ck_hp_free: counted, not followed */
    KIND_RECLAIM,     /* calls what waits, in the caller's thread (Concurrency Kit, DPDK) */
    KIND_INTERNAL,    /* liburcu's own call of what it offers */
};

struct latent_site {
    uint64_t place;  /* the address after the call; 0: free; atomic */
    uint32_t kind;   /* of enum latent_kind */
    uint32_t named;  /* the rest is written; atomic */
    uint64_t offset; /* of the call in the file */
    char function[16];
    char file[FILE_BYTES];
};

/* Counts of the events at a site. */
struct latent_use {
    uint64_t calls;   /* begun */
    uint64_t ended;   /* callbacks that have run, or calls that are over */
    uint64_t waited;  /* by those that ended */
    uint64_t most;    /* of one; atomic maximum */
    uint64_t bytes;   /* freed by its callbacks, or within the call */
    uint64_t refused; /* calls of them that the queue did not take, or that failed */
};

struct latent_slot {
    int64_t waiting, bytes; /* differences */
};

struct latent_part {
    uint64_t waits[BUCKETS];  /* of callbacks */
    uint64_t sleeps[BUCKETS]; /* of synchronize and barrier */
    struct latent_use uses[SITES];
    struct latent_slot slots[SLOTS];
};

struct latent_file {
    uint64_t magic, version;
    uint64_t process, parent;
    uint64_t began;     /* CLOCK_MONOTONIC */
    uint64_t slot_ns;   /* of a slot of time */
    uint64_t seen;      /* a call of any function that the shim knows */
    uint64_t untracked; /* callbacks without room in the table */
    uint64_t own_free;  /* the program's `free` is not the shim's: bytes are not seen */
    uint64_t waiting;   /* callbacks that wait now; atomic */
    uint64_t reserved[6];
    char program[PROGRAM_BYTES]; /* the file that runs, cut if it is longer */
    struct latent_site sites[SITES];
    struct latent_part parts[PARTS];
};

#endif /* LATENT_LAYOUT_H */
