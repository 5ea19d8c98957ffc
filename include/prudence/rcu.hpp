// SPDX-License-Identifier: MIT
/*
 * Read-copy-update in the words of C++26's <rcu> (P2545), in namespace prudence, and three types
 * that most writers also want: guard, rcu_ptr and copy_update.
 *
 * A program moves to the standard's header, or back, by one alias:
 *
 *     namespace rcu = prudence; // namespace rcu = std;
 *
 * The domain is the default domain of <prudence/rcu.h>, so sections of C and C++ protect the same
 * objects. Retired objects whose deleter would only free memory are deferred to the allocator. For
 * all others their deleter runs after the grace period as a callback (<prudence/call.h>), on a
 * thread of the library. A deleter must not throw.
 */
#ifndef PRUDENCE_RCU_HPP
#define PRUDENCE_RCU_HPP

#include <prudence/allocator.hpp>
#include <prudence/cache.hpp>
#include <prudence/call.h>
#include <prudence/rcu.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace prudence
{

// Regions of RCU protection; Cpp17Lockable, so that std::scoped_lock enters one. They nest. lock()
// never waits.
class rcu_domain
{
  public:
    rcu_domain(const rcu_domain &) = delete;
    rcu_domain &operator=(const rcu_domain &) = delete;

    void lock() noexcept
    {
        prudence_read_lock();
    }
    bool try_lock() noexcept
    {
        lock();
        return true;
    }
    void unlock() noexcept
    {
        prudence_read_unlock();
    }

  private:
    constexpr rcu_domain() noexcept = default;
    friend rcu_domain &rcu_default_domain() noexcept;
};

inline rcu_domain &rcu_default_domain() noexcept
{
    static rcu_domain domain;

    return domain;
}

// Waits until all regions that are open now have ended. The library reports a call inside a region
// and ends the process.
inline void rcu_synchronize(rcu_domain & = rcu_default_domain()) noexcept
{
    prudence_synchronize();
}

// Waits until the deleters of all objects that were retired before this call have returned. Where
// that would never be (in a deleter, inside a region), the library reports the call, and the
// process ends.
inline void rcu_barrier(rcu_domain & = rcu_default_domain()) noexcept
{
    if (prudence_barrier() != 0)
        std::abort();
}

// Works like rcu_barrier(), but no longer than until the deadline. Returns whether all deleters
// have returned; the others run later, as without this call.
template <class Clock, class Duration>
[[nodiscard]] bool flush_until(const std::chrono::time_point<Clock, Duration> &deadline,
                               rcu_domain & = rcu_default_domain())
{
    int error = prudence_domain_barrier_timed(prudence_default_domain(),
                                              detail::nanoseconds_until(deadline));

    if (error && error != ETIMEDOUT)
        std::abort();
    return error == 0;
}

// ------------------------------------------------------------------------ retiring (private)

namespace detail
{

// True if `delete` of a T calls an operator of T's own.
template <class T, class = void> struct has_plain_delete : std::false_type {
};
template <class T>
struct has_plain_delete<T, std::void_t<decltype(T::operator delete(std::declval<void *>()))>>
    : std::true_type {
};
template <class T, class = void> struct has_sized_delete : std::false_type {
};
template <class T>
struct has_sized_delete<
    T, std::void_t<decltype(T::operator delete(std::declval<void *>(), std::size_t()))>>
    : std::true_type {
};
template <class T, class = void> struct has_aligned_delete : std::false_type {
};
template <class T>
struct has_aligned_delete<
    T, std::void_t<decltype(T::operator delete(std::declval<void *>(), std::align_val_t()))>>
    : std::true_type {
};
template <class T, class = void> struct has_destroying_delete : std::false_type {
};
#if defined(__cpp_impl_destroying_delete) && defined(__cpp_lib_destroying_delete)
template <class T>
struct has_destroying_delete<
    T, std::void_t<decltype(T::operator delete(std::declval<T *>(), std::destroying_delete_t()))>>
    : std::true_type {
};
#endif
template <class T>
inline constexpr bool has_own_delete =
    has_plain_delete<T>::value || has_sized_delete<T>::value || has_aligned_delete<T>::value ||
    has_destroying_delete<T>::value;

// Types with an operator delete that a program may replace alone.
template <class T>
inline constexpr bool is_over_aligned = alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__;

// Properties of a deleter: whether it would only free the memory of a T, by which means.
enum class ending { unknown, by_operator_delete, by_free };

template <class T, class D> constexpr ending ending_of()
{
    if constexpr (!std::is_trivially_destructible_v<T>)
        return ending::unknown;
    else if constexpr (std::is_same_v<D, std::default_delete<T>>)
        return has_own_delete<T> || is_over_aligned<T> ? ending::unknown
                                                       : ending::by_operator_delete;
    else if constexpr (std::is_same_v<D, cache_delete<T>> || std::is_same_v<D, cache_retire<T>>)
        return ending::by_free;
    else
        return ending::unknown;
}

inline bool operator_delete_is_known() noexcept
{
    static const bool known = prudence_malloc_deletes();

    return known;
}

// Defers an object if nothing is lost by that. Otherwise returns false.
template <class T, class D> bool retire_memory(T *object) noexcept
{
    constexpr ending known = ending_of<T, D>();

    if constexpr (known == ending::unknown)
        return false;
    else if (known == ending::by_operator_delete && !operator_delete_is_known())
        return false;
    else
        return prudence_domain_free_deferred(
            prudence_default_domain(),
            const_cast<void *>(static_cast<const volatile void *>(object)));
}

// A head and a deleter, which takes no room if it has no members. A copy of the object has a head
// that no thread uses. It is copied like the rest, because C++26 says that the bases are trivially
// copyable if the deleter is.
template <class D, class Head = prudence_head, bool = std::is_empty_v<D> && !std::is_final_v<D>>
struct retired_part : Head, private D {
    constexpr retired_part() noexcept(noexcept(D())) : Head(), D()
    {
    }
    explicit retired_part(D &&d) : Head(), D(std::move(d))
    {
    }
    D &deleter() noexcept
    {
        return *this;
    }
};
template <class D, class Head> struct retired_part<D, Head, false> : Head {
    constexpr retired_part() noexcept(noexcept(D())) : Head(), kept()
    {
    }
    explicit retired_part(D &&d) : Head(), kept(std::move(d))
    {
    }
    D &deleter() noexcept
    {
        return kept;
    }

  private:
    D kept;
};

/*
 * When the program ends, or a shared library is unloaded, waits for the deleters of
 * retired objects. There are two of these for each module. One is made by the first retirement, so
 * it ends before all static objects that are older, which deleters may use. The other is older than
 * the static objects of files that include this header, so it ends after them, when a shared
 * library's code is about to go.
 */
struct callbacks_end {
    callbacks_end() noexcept
    {
    }
    callbacks_end(const callbacks_end &) = delete;
    callbacks_end &operator=(const callbacks_end &) = delete;
    ~callbacks_end()
    {
        static_cast<void>(prudence_barrier_nested());
    }
};

#if defined(PRUDENCE_IS_UNLOADABLE)
PRUDENCE_MODULE_OWN inline callbacks_end last_callbacks_end;
#endif

PRUDENCE_MODULE_OWN inline void call(prudence_head *head, void (*run)(prudence_head *)) noexcept
{
    static const callbacks_end first_callbacks_end;

    prudence_call(head, run);
}

// The record of an object without a head.
template <class T, class D> struct retirement : retired_part<D> {
    retirement(T *p, D &&d) : retired_part<D>(std::move(d)), object(p)
    {
    }

    static void run(prudence_head *head) noexcept
    {
        retirement *self = static_cast<retirement *>(head);

        self->deleter()(self->object);
        self->~retirement();
        detail::deallocate(self, sizeof(retirement), alignof(retirement));
    }

    T *object;
};

// Memory for a retirement.
struct give_back {
    std::size_t bytes, alignment;
    void operator()(void *memory) const noexcept
    {
        deallocate(memory, bytes, alignment);
    }
};
using place = std::unique_ptr<void, give_back>;

[[nodiscard]] inline place reserve(std::size_t bytes, std::size_t alignment)
{
    return place(detail::allocate(bytes, alignment), give_back{bytes, alignment});
}

// Throws only the exceptions of the deleter's move.
template <class T, class D> void retire_by_callback(place memory, T *object, D &&d)
{
    retirement<T, D> *kept =
        ::new (memory.get()) retirement<T, D>(object, std::move(d)); // NOLINT: moved by its type

    static_cast<void>(memory.release());
    detail::call(kept, retirement<T, D>::run);
}

} // namespace detail

// ----------------------------------------------------------------------------------- retiring

// Base of an object that retires itself. T may be incomplete until retire() is called.
template <class T, class D = std::default_delete<T>> class rcu_obj_base
{
  public:
    // Ends the object with d(object) when all regions that are open now have ended. Call it once,
    // after the object was unlinked. Never fails.
    void retire(D d = D(), rcu_domain & = rcu_default_domain()) noexcept
    {
        static_assert(std::is_base_of_v<rcu_obj_base, T>, "T derives from rcu_obj_base<T, D>");
        static_assert(std::is_move_assignable_v<D>, "retire() keeps the deleter in the object");
        if (detail::retire_memory<T, D>(static_cast<T *>(this)))
            return;
        prudence_retired_.deleter() = std::move(d);
        detail::call(&prudence_retired_, run);
    }

  protected:
    rcu_obj_base() = default;
    rcu_obj_base(const rcu_obj_base &) = default;
    rcu_obj_base(rcu_obj_base &&) = default;
    rcu_obj_base &operator=(const rcu_obj_base &) = default;
    rcu_obj_base &operator=(rcu_obj_base &&) = default;
    ~rcu_obj_base() = default;

  private:
    using part = detail::retired_part<D>;

    static void run(prudence_head *head) noexcept
    {
        // The part is the first member, so it has this object's address.
        rcu_obj_base *self = reinterpret_cast<rcu_obj_base *>(static_cast<part *>(head));
        D d = std::move(self->prudence_retired_.deleter()); // the object does not outlive its call

        d(static_cast<T *>(self));
    }

    part prudence_retired_;
};

// Ends *p with d(p) when all regions that are open now have ended. Throws std::bad_alloc (not if
// only memory has to be freed), or the exception of the deleter's move; then nothing was retired.
template <class T, class D = std::default_delete<T>>
void rcu_retire(T *p, D d = D(), rcu_domain & = rcu_default_domain())
{
    using retirement = detail::retirement<T, D>;

    static_assert(std::is_move_constructible_v<D>, "rcu_retire() keeps the deleter");
    static_assert(std::is_invocable_v<D &, T *>, "d(p) must be valid");
    if (!detail::retire_memory<T, D>(p))
        detail::retire_by_callback(detail::reserve(sizeof(retirement), alignof(retirement)), p,
                                   std::move(d));
}

// ------------------------------------------------------------------- readers and writers

// A region from here to the end of the scope.
class [[nodiscard]] guard
{
  public:
    [[nodiscard]] guard() noexcept
    {
        prudence_read_lock();
    }
    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;
    ~guard()
    {
        prudence_read_unlock();
    }
};

/*
 * An owner that readers follow. It owns one object or none; an object that it lets go of is
 * retired. D ends an object, as for std::unique_ptr.
 *
 *     prudence::rcu_ptr<const config> current;
 *     { prudence::guard inside; use(*current.load(inside)); }
 *     current.publish(std::make_unique<const config>(next));
 */
template <class T, class D = std::default_delete<T>> class rcu_ptr
{
    static_assert(std::is_empty_v<D> && std::is_nothrow_default_constructible_v<D>,
                  "an rcu_ptr keeps no deleter");

  public:
    using unique_ptr = std::unique_ptr<T, D>;

    constexpr rcu_ptr() noexcept = default;
    explicit rcu_ptr(unique_ptr object) noexcept : object_(object.release())
    {
    }
    rcu_ptr(const rcu_ptr &) = delete;
    rcu_ptr &operator=(const rcu_ptr &) = delete;

    // Waits for readers, and ends the object and those that were published before, so a deleter may
    // use objects that were made before the rcu_ptr. If only memory has to be freed, nothing waits.
    // In a section, a callback or a destructor of a cache nothing can wait: they are retired.
    ~rcu_ptr()
    {
        if (!object_ || detail::retire_memory<T, D>(object_))
            return;
        retire(reserve_to_end(), object_);
        static_cast<void>(prudence_barrier_nested());
    }

    // The object, which lives until the guard ends, or nullptr.
    [[nodiscard]] T *load(const guard &) const noexcept
    {
        return prudence_dereference(object_);
    }

    // Readers find `object` from now on. The object before it is retired. Throws std::bad_alloc
    // (not if only memory has to be freed); then nothing has changed.
    void publish(unique_ptr object)
    {
        detail::place memory = reserve();

        retire(std::move(memory), exchange(object.release()));
    }

    // Readers find `object` from now on. The caller owns the one before, which readers may still
    // see.
    [[nodiscard]] T *exchange(T *object) noexcept
    {
        return __atomic_exchange_n(&object_, object, __ATOMIC_ACQ_REL);
    }

    // Publishes if the object is still `expected`, and then retires that. Otherwise returns false,
    // and `object` keeps its own. The caller is in a region since it loaded `expected`. Throws as
    // publish() does.
    [[nodiscard]] bool publish_if(T *expected, unique_ptr &object)
    {
        detail::place memory = reserve();
        T *found = expected;

        if (!__atomic_compare_exchange_n(&object_, &found, object.get(), false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            return false;
        static_cast<void>(object.release());
        retire(std::move(memory), expected);
        return true;
    }

  private:
    using retirement = detail::retirement<T, D>;

    // Returns memory for a callback, if one will be needed.
    [[nodiscard]] static detail::place reserve()
    {
        constexpr detail::ending known = detail::ending_of<T, D>();

        if (known == detail::ending::by_free ||
            (known == detail::ending::by_operator_delete && detail::operator_delete_is_known()))
            return detail::place();
        return detail::reserve(sizeof(retirement), alignof(retirement));
    }

    [[nodiscard]] static detail::place reserve_to_end() noexcept
    {
        return detail::place(prudence_malloc(sizeof(retirement)),
                             detail::give_back{sizeof(retirement), alignof(retirement)});
    }

    // Without memory, waits for readers and ends the object itself.
    static void retire(detail::place memory, T *object) noexcept
    {
        if (!object || detail::retire_memory<T, D>(object))
            return;
        if (!memory)
            memory = reserve_to_end();
        if (memory) {
            detail::retire_by_callback(std::move(memory), object, D());
        } else {
            rcu_synchronize();
            D()(object);
        }
    }

    T *object_ = nullptr; // written atomically
};

namespace detail
{

// `make(old)` returns the copy. It is called inside the region.
template <class Pointer, class Make, class Change>
bool copy_update_once(Pointer &ptr, bool &done, Make &&make, Change &change)
{
    typename Pointer::unique_ptr next; // ends after the guard; that may wait
    guard inside;
    auto *old = ptr.load(inside);

    done = !old;
    if (!old)
        return false;
    auto copy = make(*old);
    auto &changed = *copy;

    next = std::move(copy);
    change(changed);
    done = ptr.publish_if(old, next);
    return done;
}

} // namespace detail

/*
 * Replaces the object of `ptr` by a copy that `change(copy)` has changed. If another writer
 * publishes first, this starts over with that writer's object, so `change` may be called several
 * times.
 * Returns false if there is no object. An exception of the copy or of `change` passes through, and
 * nothing has changed. `change` runs inside a region, so it must not wait for regions to end.
 *
 * The second form is for objects of a cache. It takes memory before the region, because an
 * allocation may wait for regions to end, but never for one that the caller is in.
 */
template <class T, class Change> bool copy_update(rcu_ptr<T> &ptr, Change change)
{
    bool done = false, updated = false;

    while (!done)
        updated = detail::copy_update_once(
            ptr, done, [](const T &old) { return std::make_unique<std::remove_cv_t<T>>(old); },
            change);
    return updated;
}

template <class T, class Change>
bool copy_update(rcu_ptr<T, cache_delete<T>> &ptr, cache<T> &objects, Change change)
{
    bool done = false, updated = false;

    while (!done) {
        auto memory = objects.reserve();

        updated = detail::copy_update_once(
            ptr, done, [&](const T &old) { return objects.make_in(std::move(memory), old); },
            change);
    }
    return updated;
}

} // namespace prudence

#endif // PRUDENCE_RCU_HPP
