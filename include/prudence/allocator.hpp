// SPDX-License-Identifier: MIT
/*
 * Memory of Prudence for containers of C++: an allocator, and a resource for std::pmr.
 *
 * Both have no state: memory that one instance allocated, any other may free. When memory runs out
 * they behave as operator new: the new-handler is called as long as there is one, then
 * std::bad_alloc is thrown. Threads, signals, fork and misuse are as in <prudence/prudence.h>.
 *
 *     std::map<int, record, std::less<int>,
 *              prudence::allocator<std::pair<const int, record>>> records;
 *     std::pmr::vector<int> numbers(prudence::get_memory_resource());
 */
#ifndef PRUDENCE_ALLOCATOR_HPP
#define PRUDENCE_ALLOCATOR_HPP

#include <prudence/prudence.h>

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>
#include <type_traits>

#if defined(__has_include)
#if __has_include(<memory_resource>)
#include <memory_resource>
#endif
#endif

namespace prudence
{

/*
 * Of a module's own: the program, and each shared library, has a variable or function of its own
 * even if the libraries are linked without hidden symbols. PRUDENCE_IS_UNLOADABLE says that this
 * code may be part of a shared library, which may be unloaded before the program ends.
 */
#define PRUDENCE_MODULE_OWN __attribute__((visibility("hidden")))
#if defined(__PIC__) && !defined(__PIE__)
#define PRUDENCE_IS_UNLOADABLE 1
#endif

namespace detail
{

// The alignment of every object of prudence_malloc().
inline constexpr std::size_t default_alignment = 16;

/*
 * These throw. libstdc++ has functions for that, which throw even if they are called by code that
 * is compiled without exceptions. So all files of a program have the same definition of the
 * functions that call these, whatever exceptions they are compiled with. With other standard
 * libraries, and older ones, the process ends where there are no exceptions, and all files of a
 * program must agree.
 */
#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE >= 11
[[noreturn]] inline void fail_to_allocate()
{
    std::__throw_bad_alloc();
}
[[noreturn]] inline void fail_by_length()
{
    std::__throw_bad_array_new_length();
}
[[noreturn]] inline void fail_by_limit(const char *what)
{
    std::__throw_length_error(what);
}
[[noreturn]] inline void fail_by_argument(const char *what)
{
    std::__throw_invalid_argument(what);
}
[[noreturn]] inline void fail_with(int error)
{
    std::__throw_system_error(error);
}
#else
template <class E, class... Arguments> [[noreturn]] void fail(Arguments... arguments)
{
#if defined(__cpp_exceptions)
    throw E(arguments...);
#else
    std::abort();
#endif
}
[[noreturn]] inline void fail_to_allocate()
{
    fail<std::bad_alloc>();
}
[[noreturn]] inline void fail_by_length()
{
    fail<std::bad_array_new_length>();
}
[[noreturn]] inline void fail_by_limit(const char *what)
{
    fail<std::length_error>(what);
}
[[noreturn]] inline void fail_by_argument(const char *what)
{
    fail<std::invalid_argument>(what);
}
[[noreturn]] inline void fail_with(int error)
{
    fail<std::system_error>(error, std::ref(std::generic_category()));
}
#endif

// Calls the new-handler, as operator new does. Throws if there is none.
inline void handle_no_memory()
{
    if (std::new_handler handler = std::get_new_handler())
        handler();
    else
        fail_to_allocate();
}

// Returns what `find` returns, which is not null.
template <class Find> [[nodiscard]] void *find_memory(Find find)
{
    for (;;) {
        if (void *memory = find())
            return memory;
        handle_no_memory();
    }
}

[[nodiscard]] inline void *allocate(std::size_t bytes, std::size_t alignment)
{
    return find_memory([=] {
        return alignment > default_alignment ? prudence_aligned_alloc(alignment, bytes)
                                             : prudence_malloc(bytes);
    });
}

inline void deallocate(void *memory, std::size_t bytes, std::size_t alignment) noexcept
{
    if (alignment > default_alignment)
        prudence_free(memory); // its size is not one of a class
    else
        prudence_free_sized(memory, bytes);
}

} // namespace detail

template <class T> class allocator
{
  public:
    using value_type = T;
    using size_type = std::size_t;
    using difference_type = std::ptrdiff_t;
    using propagate_on_container_move_assignment = std::true_type;
    using is_always_equal = std::true_type;

    constexpr allocator() noexcept = default;
    template <class U> constexpr allocator(const allocator<U> &) noexcept
    {
    }

    // Throws std::bad_array_new_length if no size_t has that many bytes.
    [[nodiscard]] T *allocate(std::size_t count)
    {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
            detail::fail_by_length();
        return static_cast<T *>(detail::allocate(count * sizeof(T), alignof(T)));
    }

#if defined(__cpp_lib_allocate_at_least)
    // Allocates as many objects as fit into the block of the size class.
    [[nodiscard]] std::allocation_result<T *, std::size_t> allocate_at_least(std::size_t count)
    {
        T *memory = allocate(count);

#if defined(__GNUC__)
        __asm__("" : "+r"(memory)); // else the compiler's checks know `count` objects only
#endif
        return {memory, prudence_usable_size(memory) / sizeof(T)};
    }
#endif

    void deallocate(T *memory, std::size_t count) noexcept
    {
        detail::deallocate(memory, count * sizeof(T), alignof(T));
    }
};

template <class T, class U>
constexpr bool operator==(const allocator<T> &, const allocator<U> &) noexcept
{
    return true;
}

template <class T, class U>
constexpr bool operator!=(const allocator<T> &, const allocator<U> &) noexcept
{
    return false;
}

#if defined(__cpp_lib_memory_resource)

class memory_resource final : public std::pmr::memory_resource
{
  private:
    void *do_allocate(std::size_t bytes, std::size_t alignment) override
    {
        return detail::allocate(bytes, alignment);
    }

    void do_deallocate(void *memory, std::size_t bytes, std::size_t alignment) override
    {
        detail::deallocate(memory, bytes, alignment);
    }

    // Modules may have an instance each if their symbols are hidden.
    bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override
    {
#if defined(__cpp_rtti)
        return dynamic_cast<const memory_resource *>(&other) != nullptr;
#else
        return this == &other;
#endif
    }
};

// Returns the resource, which lives as long as the process.
[[nodiscard]] inline memory_resource *get_memory_resource() noexcept
{
    // Never destroyed, because destructors of static objects may still free.
    static memory_resource *const resource = [] {
        alignas(memory_resource) static unsigned char place[sizeof(memory_resource)];
        return ::new (static_cast<void *>(place)) memory_resource;
    }();

    return resource;
}

#endif

} // namespace prudence

#endif // PRUDENCE_ALLOCATOR_HPP
