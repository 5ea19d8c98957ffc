// SPDX-License-Identifier: MIT
/*
 * A cache of objects of one type.
 *
 *     prudence::cache<route> routes("route");
 *     auto route = routes.make(prefix, hop);   // std::unique_ptr<route, cache_delete<route>>
 *     routes.retire(std::move(old));           // freed when its readers have ended
 *
 * A retired object lives until its grace period is over. Then its destructor, if it has one that
 * does something, runs on a thread of the library. Pointers from a cache never go to `delete`.
 */
#ifndef PRUDENCE_CACHE_HPP
#define PRUDENCE_CACHE_HPP

#include <prudence/allocator.hpp>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

namespace prudence
{

// Ends an object of a cache at once. Like std::default_delete, but pointers to a base class do not
// convert, because the object of a cache may begin before them.
template <class T> struct cache_delete {
    void operator()(T *object) const noexcept
    {
        prudence_free(object);
    }
};

// Ends an object of a cache when its readers have ended.
template <class T> struct cache_retire {
    void operator()(T *object) const noexcept
    {
        prudence_free_deferred(object);
    }
};

namespace detail
{

// The object whose constructor has thrown in this thread, while its memory goes back. Visible, so
// that modules whose symbols are hidden have the same one.
PRUDENCE_API inline thread_local const void *not_constructed;

template <class T> void destroy_in_cache(void *object, void *)
{
    if (object != not_constructed)
        static_cast<T *>(object)->~T();
}

// Returns the remaining time; 0: none.
template <class Clock, class Duration>
[[nodiscard]] std::uint64_t
nanoseconds_until(const std::chrono::time_point<Clock, Duration> &deadline)
{
    const auto now = Clock::now();

    if (deadline <= now)
        return 0;
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - now).count());
}

} // namespace detail

template <class T> class cache
{
    static_assert(std::is_object_v<T> && !std::is_array_v<T>, "a cache has objects of one type");
    static_assert(std::is_nothrow_destructible_v<T>,
                  "an exception of a destructor could not be caught");
    static_assert(sizeof(T) <= 131072, "a cache has objects of 131072 bytes at most");
    static_assert(alignof(T) <= 4096, "a cache aligns objects to 4096 bytes at most");

  public:
    using value_type = T;
    using unique_ptr = std::unique_ptr<T, cache_delete<T>>;
    using retiring_ptr = std::unique_ptr<T, cache_retire<T>>;

    // Gives memory back in which nothing was constructed.
    struct unmake {
        prudence_cache *owner;
        void operator()(void *memory) const noexcept
        {
            detail::not_constructed = memory;
            prudence_cache_free(owner, memory);
            detail::not_constructed = nullptr;
        }
    };
    using place = std::unique_ptr<void, unmake>;

    // Says at compile time whether objects end without code of T.
    static constexpr bool only_memory = std::is_trivially_destructible_v<T>;

    // `name` is in statistics and messages; `domain` is whose readers see the objects. Throws
    // std::system_error if the library refuses, with the error number; the library has said why.
    explicit cache(const char *name, prudence_domain *domain = nullptr)
    {
        prudence_cache_attr attr = {};

        attr.size = sizeof attr;
        attr.alignment = alignof(T);
        attr.domain = domain;
        if constexpr (!only_memory) {
            attr.destructor = detail::destroy_in_cache<T>;
            attr.flags = PRUDENCE_CACHE_DESTRUCT_SOON;
        }
        cache_ = prudence_cache_create(name, sizeof(T), &attr);
        if (!cache_)
            detail::fail_with(errno);
    }

    cache(const cache &) = delete;
    cache &operator=(const cache &) = delete;

    // Waits for retired objects and their destructors. In a section, a callback or the destructor
    // of an object of another cache, nothing can wait: then a thread of the library ends the cache
    // soon. So it does where the objects are protected by hazard pointers and one that this thread
    // has made names something. A protection by a hazard_pointer that another thread made and moved
    // here is waited for. The library reports objects that live, and keeps the cache for the rest
    // of the process.
    ~cache()
    {
        static_cast<void>(prudence_cache_destroy_later(cache_));
    }

    // Makes an object. Throws std::bad_alloc, or the exception of the constructor.
    template <class... Arguments> [[nodiscard]] unique_ptr make(Arguments &&...arguments)
    {
        return make_in(reserve(), std::forward<Arguments>(arguments)...);
    }

    // Makes an object in two steps: memory, and later the object. Inside a section an allocation
    // cannot wait for readers to give memory back, so it is better made before.
    [[nodiscard]] place reserve()
    {
        return place(detail::find_memory([this] { return prudence_cache_alloc(cache_); }),
                     unmake{cache_});
    }

    template <class... Arguments>
    [[nodiscard]] unique_ptr make_in(place memory, Arguments &&...arguments)
    {
        T *object = ::new (memory.get()) T(std::forward<Arguments>(arguments)...);

        static_cast<void>(memory.release());
        return unique_ptr(object);
    }

    // Makes an object that is retired when its owner lets go of it.
    template <class... Arguments> [[nodiscard]] retiring_ptr make_retiring(Arguments &&...arguments)
    {
        return retiring_ptr(make(std::forward<Arguments>(arguments)...).release());
    }

    // Defer an object of this cache, which readers can no longer find.
    void retire(T *object) noexcept
    {
        prudence_cache_free_deferred(cache_, object);
    }
    void retire(unique_ptr object) noexcept
    {
        retire(object.release());
    }

    // Waits until objects that were retired before have ended. Throws std::system_error where that
    // would never be (EDEADLK: inside a section, or in a destructor). Hazard pointers of this
    // thread that protect such objects are waited for, too, because they may move to another
    // thread. The library reports them after the option stall_timeout. Reset them before.
    void barrier()
    {
        if (int error = prudence_cache_barrier(cache_))
            detail::fail_with(error);
    }

    // Waits until a deadline. Returns whether the objects have ended. Destructors may run here,
    // and those of 32 objects may make the caller late.
    template <class Clock, class Duration>
    [[nodiscard]] bool barrier_until(const std::chrono::time_point<Clock, Duration> &deadline)
    {
        int error = prudence_cache_barrier_timed(cache_, detail::nanoseconds_until(deadline));

        if (error && error != ETIMEDOUT)
            detail::fail_with(error);
        return error == 0;
    }

    // The cache of C, for functions that have no form here.
    [[nodiscard]] prudence_cache *get() const noexcept
    {
        return cache_;
    }

  private:
    prudence_cache *cache_;
};

} // namespace prudence

#endif // PRUDENCE_CACHE_HPP
