/* SPDX-License-Identifier: MIT */
/* Functions that the compiler calls where it instruments for ThreadSanitizer; they pass on to
 * the explorer. */
#include <string.h>

#include "explorer.h"

#define HERE __builtin_return_address(0)

/* The compiler declares none of these; they are part of the interface to the runtime. */
void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);
void __tsan_read_range(void *address, unsigned long bytes);
void __tsan_write_range(void *address, unsigned long bytes);
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_init(void)
{
}
void __tsan_func_entry(void *caller)
{
    (void)caller;
}
void __tsan_func_exit(void)
{
}

/* Ignored: an order that the library announces to ThreadSanitizer must follow from its own
 * synchronization here. */
void __tsan_release(void *address);
void __tsan_release(void *address)
{
    (void)address;
}
void __tsan_acquire(void *address);
void __tsan_acquire(void *address)
{
    (void)address;
}

void __tsan_read_range(void *address, unsigned long bytes)
{
    explore_plain(address, bytes, false, HERE);
}

void __tsan_write_range(void *address, unsigned long bytes)
{
    explore_plain(address, bytes, true, HERE);
}

#define PLAIN(name, bytes, write)                                                                  \
    void __tsan_##name##bytes(void *address);                                                      \
    void __tsan_##name##bytes(void *address)                                                       \
    {                                                                                              \
        explore_plain(address, bytes, write, HERE);                                                \
    }
#define PLAIN_OF(bytes)                                                                            \
    PLAIN(read, bytes, false)                                                                      \
    PLAIN(write, bytes, true)                                                                      \
    PLAIN(unaligned_read, bytes, false)                                                            \
    PLAIN(unaligned_write, bytes, true)                                                            \
    PLAIN(volatile_read, bytes, false)                                                             \
    PLAIN(volatile_write, bytes, true)
PLAIN_OF(1)
PLAIN_OF(2)
PLAIN_OF(4)
PLAIN_OF(8)
PLAIN_OF(16)

static bool to_operand(uint64_t *value, uint64_t operand, uint64_t expected)
{
    (void)expected;
    *value = operand;
    return true;
}

static bool to_sum(uint64_t *value, uint64_t operand, uint64_t expected)
{
    (void)expected;
    *value += operand;
    return true;
}

static bool to_difference(uint64_t *value, uint64_t operand, uint64_t expected)
{
    (void)expected;
    *value -= operand;
    return true;
}

static bool to_and(uint64_t *value, uint64_t operand, uint64_t expected)
{
    (void)expected;
    *value &= operand;
    return true;
}

static bool to_or(uint64_t *value, uint64_t operand, uint64_t expected)
{
    (void)expected;
    *value |= operand;
    return true;
}

static bool to_xor(uint64_t *value, uint64_t operand, uint64_t expected)
{
    (void)expected;
    *value ^= operand;
    return true;
}

static bool if_expected(uint64_t *value, uint64_t operand, uint64_t expected)
{
    if (*value != expected)
        return false;
    *value = operand;
    return true;
}

#define UPDATE(type, bits, name, change)                                                           \
    type __tsan_atomic##bits##_##name(volatile type *address, type operand, int order);            \
    type __tsan_atomic##bits##_##name(volatile type *address, type operand, int order)             \
    {                                                                                              \
        return (type)explore_update(address, sizeof(type), change, operand, 0,                     \
                                    (enum explore_order)order, EXPLORE_RELAXED, HERE);             \
    }

#define EXCHANGE_IF(type, bits, name)                                                              \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile type *address, type *expected,      \
                                                      type value, int order, int failing);         \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile type *address, type *expected,      \
                                                      type value, int order, int failing)          \
    {                                                                                              \
        type before =                                                                              \
            (type)explore_update(address, sizeof(type), if_expected, value, *expected,             \
                                 (enum explore_order)order, (enum explore_order)failing, HERE);    \
        bool done = before == *expected;                                                           \
                                                                                                   \
        *expected = before;                                                                        \
        return done;                                                                               \
    }

#define ATOMIC(type, bits)                                                                         \
    type __tsan_atomic##bits##_load(const volatile type *address, int order);                      \
    type __tsan_atomic##bits##_load(const volatile type *address, int order)                       \
    {                                                                                              \
        return (type)explore_load(address, sizeof(type), (enum explore_order)order, HERE);         \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *address, type value, int order);               \
    void __tsan_atomic##bits##_store(volatile type *address, type value, int order)                \
    {                                                                                              \
        explore_store(address, sizeof(type), value, (enum explore_order)order, HERE);              \
    }                                                                                              \
    UPDATE(type, bits, exchange, to_operand)                                                       \
    UPDATE(type, bits, fetch_add, to_sum)                                                          \
    UPDATE(type, bits, fetch_sub, to_difference)                                                   \
    UPDATE(type, bits, fetch_and, to_and)                                                          \
    UPDATE(type, bits, fetch_or, to_or)                                                            \
    UPDATE(type, bits, fetch_xor, to_xor)                                                          \
    EXCHANGE_IF(type, bits, strong)                                                                \
    EXCHANGE_IF(type, bits, weak)

ATOMIC(uint8_t, 8)
ATOMIC(uint16_t, 16)
ATOMIC(uint32_t, 32)
ATOMIC(uint64_t, 64)

void __tsan_atomic_thread_fence(int order)
{
    explore_fence((enum explore_order)order, HERE);
}

/* Orders a thread and that thread's signal handlers; there are none here. */
void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}
