// SPDX-License-Identifier: MIT
// Every form of operator new and delete: served by our malloc, with new-handler and std::bad_alloc
// as the standard says. Plain checks: it is also run preloaded and linked statically.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include <malloc.h>

#include <prudence/prudence.h>

#include "../support/boundary_sizes.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                   \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

static void *volatile sink;

static void *keep(void *object)
{
    sink = object;
    return sink;
}

static bool is_aligned(const void *object, std::size_t alignment)
{
    return reinterpret_cast<std::uintptr_t>(object) % alignment == 0;
}

static void check(void *object, std::size_t size, std::size_t alignment)
{
    CHECK(keep(object) && is_aligned(object, alignment));
    CHECK(prudence_usable_size(object) >= size); // ours, or this aborts
    std::memset(object, 1, size);
}

static void every_form(std::size_t size)
{
    const std::align_val_t aligned{256};
    void *object;

    check(object = ::operator new(size), size, 16);
    ::operator delete(object);
    check(object = ::operator new(size), size, 16);
    ::operator delete(object, size);
    check(object = ::operator new[](size), size, 16);
    ::operator delete[](object);
    check(object = ::operator new[](size), size, 16);
    ::operator delete[](object, size);
    check(object = ::operator new(size, std::nothrow), size, 16);
    ::operator delete(object, std::nothrow);
    check(object = ::operator new[](size, std::nothrow), size, 16);
    ::operator delete[](object, std::nothrow);
    check(object = ::operator new(size, aligned), size, 256);
    ::operator delete(object, aligned);
    check(object = ::operator new(size, aligned), size, 256);
    ::operator delete(object, size, aligned);
    check(object = ::operator new[](size, aligned), size, 256);
    ::operator delete[](object, aligned);
    check(object = ::operator new[](size, aligned), size, 256);
    ::operator delete[](object, size, aligned);
    check(object = ::operator new(size, aligned, std::nothrow), size, 256);
    ::operator delete(object, aligned, std::nothrow);
    check(object = ::operator new[](size, aligned, std::nothrow), size, 256);
    ::operator delete[](object, aligned, std::nothrow);
    ::operator delete(nullptr);
    ::operator delete[](nullptr);
    ::operator delete(nullptr, aligned);
}

static std::size_t live_bytes()
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

// ---------------------------------------------------------------------------- out of memory

static const std::size_t too_much = PTRDIFF_MAX - 1000;
static volatile std::size_t hidden = too_much; // from the compiler
static int handler_calls;

static void give_up_after_three()
{
    if (++handler_calls == 3)
        std::set_new_handler(nullptr);
}

struct thrown_by_handler : std::bad_alloc {
};

static void throw_own()
{
    handler_calls++;
    throw thrown_by_handler();
}

template <typename Allocate> static bool throws_bad_alloc(Allocate allocate)
{
    try {
        sink = allocate();
    } catch (const std::bad_alloc &) {
        return true;
    }
    return false;
}

// The object's destructor must run while the exception passes: our frames unwind.
static bool destroyed;
struct witness {
    ~witness()
    {
        destroyed = true;
    }
};

static void without_memory()
{
    const std::align_val_t aligned{64}, huge{std::size_t{1} << 62};

    CHECK(throws_bad_alloc([] {
        witness here;
        return ::operator new(hidden);
    }));
    CHECK(destroyed);
    CHECK(throws_bad_alloc([] { return ::operator new[](hidden); }));
    CHECK(throws_bad_alloc([&] { return ::operator new(hidden, aligned); }));
    CHECK(throws_bad_alloc([&] { return ::operator new[](hidden, aligned); }));
    CHECK(throws_bad_alloc([&] { return ::operator new(10, huge); }));
    CHECK(throws_bad_alloc([&] { return ::operator new (10, std::align_val_t{3}); }));
    CHECK(!::operator new(hidden, std::nothrow));
    CHECK(!::operator new[](hidden, std::nothrow));
    CHECK(!::operator new(hidden, aligned, std::nothrow));
    CHECK(!::operator new[](hidden, aligned, std::nothrow));
}

static void the_handler_is_called_until_it_gives_up()
{
    std::set_new_handler(give_up_after_three);
    CHECK(throws_bad_alloc([] { return ::operator new(hidden); }) && handler_calls == 3);
    handler_calls = 0;
    std::set_new_handler(give_up_after_three);
    CHECK(!::operator new[](hidden, std::nothrow) && handler_calls == 3);
    handler_calls = 0;
    std::set_new_handler(give_up_after_three);
    CHECK(throws_bad_alloc([] { return ::operator new (hidden, std::align_val_t{64}); }));
    CHECK(handler_calls == 3);
}

static void what_the_handler_throws_passes()
{
    bool caught = false;

    handler_calls = 0;
    std::set_new_handler(throw_own);
    try {
        sink = ::operator new(hidden);
    } catch (const thrown_by_handler &) {
        caught = true;
    }
    CHECK(caught && handler_calls == 1);
    CHECK(!::operator new(hidden, std::nothrow) && handler_calls == 2);
    std::set_new_handler(nullptr);
}

// Under the option limit: a handler that frees something lets the allocation succeed.
struct block {
    block *next;
    char bytes[9000];
};
static block *hoard;

static void free_some()
{
    handler_calls++;
    for (int i = 0; i < 50 && hoard; i++) {
        block *first = hoard;

        hoard = first->next;
        delete first;
    }
    prudence_trim();
}

static void the_handler_may_free_memory()
{
    unsigned blocks = 0;

    CHECK(prudence_option_set("limit", "30M") == 0);
    for (block *more; (more = new (std::nothrow) block); blocks++) {
        more->next = hoard;
        hoard = more;
    }
    CHECK(blocks > 1000 && blocks < 4000);
    CHECK(throws_bad_alloc([] { return ::operator new(10000); }));
    std::set_new_handler(free_some);
    handler_calls = 0;
    for (unsigned i = 0; i < 100; i++) {
        block *more = new block;

        more->next = hoard;
        hoard = more;
    }
    CHECK(handler_calls >= 1);
    std::set_new_handler(nullptr);
    while (hoard) {
        block *first = hoard;

        hoard = first->next;
        delete first;
    }
    CHECK(prudence_option_set("limit", "0") == 0);
}

// Memory that has the size, or nothing: never a small block for a size that has wrapped.
static void is_right(void *object, std::size_t size)
{
    CHECK(object ? size < BOUNDARY_NEVER : size > BOUNDARY_SURE);
    if (!object)
        return;
    CHECK(prudence_usable_size(object) >= size);
    if (size)
        static_cast<char *>(object)[size - 1] = 1;
}

static void at_boundary(std::size_t size)
{
    const std::align_val_t aligned{4096};
    void *object;

    is_right(object = keep(::operator new(size, std::nothrow)), size);
    ::operator delete(object);
    is_right(object = keep(::operator new[](size, std::nothrow)), size);
    ::operator delete[](object);
    is_right(object = keep(::operator new(size, aligned, std::nothrow)), size);
    ::operator delete(object, aligned);
    try {
        object = keep(::operator new(size));
        is_right(object, size);
        ::operator delete(object);
    } catch (const std::bad_alloc &) {
        is_right(nullptr, size);
    }
    try { // the product and what an array's length takes are the compiler's
        object = keep(new (std::align_val_t{64}) std::uint64_t[size]);
        CHECK(size < BOUNDARY_NEVER / 8);
        ::operator delete[](object, std::align_val_t{64});
    } catch (const std::bad_alloc &) {
        CHECK(size > BOUNDARY_SURE / 8);
    }
}

int main()
{
    std::size_t before;

    CHECK(prudence_option_set("background", "0") ==
          0);              // no thread of ours, for which libc allocates
    at_boundary(SIZE_MAX); // the first exception: what the runtime makes for it stays
    before = live_bytes();
    for (std::size_t size = 0; size < 200000; size = size * 2 + 1)
        every_form(size);
    for (unsigned i = 0; i < BOUNDARY_SIZES; i++)
        at_boundary(boundary_size(i));
    CHECK(live_bytes() == before);
    without_memory();
    the_handler_is_called_until_it_gives_up();
    what_the_handler_throws_passes();
    the_handler_may_free_memory();
    std::puts("ok");
    return 0;
}
