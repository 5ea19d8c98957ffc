/* SPDX-License-Identifier: MIT */
/* Secrets of hashes (<prudence/hash_bytes.h>). */
#include <prudence/hash_bytes.h>

#include "os/os.h"
#include "process.h"

void prudence_hash_draw_secret(struct prudence_hash_secret *secret)
{
    process_start(); /* os_secret asks which system calls are allowed */
    os_secret(secret->words);
}
