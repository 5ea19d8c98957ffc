// SPDX-License-Identifier: MIT
/*
 * Hazard pointers in the words of C++26's <hazard_pointer> (P2530), in namespace prudence.
 *
 *     struct node : prudence::hazard_pointer_obj_base<node> { ... };
 *     prudence::hazard_pointer hazard = prudence::make_hazard_pointer();
 *     const node *found = hazard.protect(head);   // lives until `hazard` names something else
 *     ...
 *     head.exchange(next)->retire();              // deleted once no hazard pointer names it
 *
 * A program moves to the standard's header, or back, by one alias, as with <prudence/rcu.hpp>. Only
 * these are ours alone: objects of a cache in hazard_default_domain() (below), and batches.
 *
 * Deleters run on threads that retire, never on one of the library; see prudence_hazard_retire()
 * for how many objects wait at a time. A deleter must not throw.
 */
#ifndef PRUDENCE_HAZARD_POINTER_HPP
#define PRUDENCE_HAZARD_POINTER_HPP

#include <prudence/hazard.h>
#include <prudence/rcu.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>
#if defined(__has_include) && __has_include(<version>)
#include <version>
#endif
#if defined(__cpp_lib_span)
#include <span>
#endif

namespace prudence
{

namespace detail
{

// Works as callbacks_end, for deleters of hazard_pointer_obj_base. The first of the two waits for
// no thread; the last one waits up to a second for hazard pointers that name objects.
struct hazards_end {
    explicit hazards_end(unsigned milliseconds) noexcept : patience(milliseconds)
    {
    }
    hazards_end(const hazards_end &) = delete;
    hazards_end &operator=(const hazards_end &) = delete;
    ~hazards_end()
    {
        // Twice, because deleters retire objects.
        for (unsigned i = 0; prudence_hazard_reclaim() + prudence_hazard_reclaim() && i < patience;
             i++)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }

    unsigned patience;
};

#if defined(PRUDENCE_IS_UNLOADABLE)
PRUDENCE_MODULE_OWN inline hazards_end last_hazards_end(1000);
#endif

PRUDENCE_MODULE_OWN inline void retire(prudence_hazard_head *head, const void *object,
                                       std::size_t size,
                                       void (*run)(prudence_hazard_head *)) noexcept
{
    static const hazards_end first_hazards_end(0);

    prudence_hazard_retire(head, object, size, run);
}

} // namespace detail

// Base of an object that hazard pointers protect, and that retires itself. T may be incomplete
// until retire() is called.
template <class T, class D = std::default_delete<T>> class hazard_pointer_obj_base
{
  public:
    // Ends the object with d(object) once no hazard pointer names it. Call it once, after the
    // object was unlinked. Never fails.
    void retire(D d = D()) noexcept
    {
        static_assert(std::is_base_of_v<hazard_pointer_obj_base, T>,
                      "T derives from hazard_pointer_obj_base<T, D>");
        static_assert(std::is_move_assignable_v<D>, "retire() keeps the deleter in the object");
        prudence_retired_.deleter() = std::move(d);
        detail::retire(&prudence_retired_, static_cast<T *>(this), sizeof(T), run);
    }

  protected:
    hazard_pointer_obj_base() = default;
    hazard_pointer_obj_base(const hazard_pointer_obj_base &) = default;
    hazard_pointer_obj_base(hazard_pointer_obj_base &&) = default;
    hazard_pointer_obj_base &operator=(const hazard_pointer_obj_base &) = default;
    hazard_pointer_obj_base &operator=(hazard_pointer_obj_base &&) = default;
    ~hazard_pointer_obj_base() = default;

  private:
    using part = detail::retired_part<D, prudence_hazard_head>;

    static void run(prudence_hazard_head *head) noexcept
    {
        // The part is the first member, so it has this object's address.
        hazard_pointer_obj_base *self =
            reinterpret_cast<hazard_pointer_obj_base *>(static_cast<part *>(head));
        D d = std::move(self->prudence_retired_.deleter()); // the object does not outlive its call

        d(static_cast<T *>(self));
    }

    part prudence_retired_;
};

namespace detail
{

template <class T, class D> std::true_type has_hazard_base(const hazard_pointer_obj_base<T, D> *);
template <class T> std::false_type has_hazard_base(...);

} // namespace detail

/*
 * Whether hazard pointers protect objects of this type: those with the base above. A program says
 * so of a type whose objects all come from caches in hazard_default_domain():
 *
 *     template <> inline constexpr bool prudence::is_hazard_protectable<route> = true;
 */
template <class T>
inline constexpr bool is_hazard_protectable =
    decltype(detail::has_hazard_base<T>(static_cast<T *>(nullptr)))::value;

/*
 * A domain for caches whose objects hazard pointers protect: cache<route> routes("route",
 * hazard_default_domain()). Its objects need no base and no callback: the allocator
 * itself waits for the hazard pointers. A thread that waits for such a cache (barrier()) or for the
 * domain, while a hazard_pointer of the thread protects a retired object, waits for ever: the
 * library cannot refuse, because a hazard_pointer may move. A report follows after the option
 * stall_timeout.
 * The domain lives as long as the process. Throws std::bad_alloc.
 */
[[nodiscard]] inline prudence_domain *hazard_default_domain()
{
    static prudence_domain *const domain = [] {
        prudence_domain *made = prudence_domain_create("hazard", PRUDENCE_DOMAIN_HAZARD, nullptr);

        if (!made)
            detail::fail_to_allocate();
        return made;
    }();

    return domain;
}

// Names one object at a time, or none. It may be empty: then it can only be assigned, swapped and
// destroyed. Used by one thread at a time; it may move to another.
class [[nodiscard]] hazard_pointer
{
  public:
    constexpr hazard_pointer() noexcept = default;
    hazard_pointer(hazard_pointer &&other) noexcept : slot_(std::exchange(other.slot_, nullptr))
    {
    }
    hazard_pointer &operator=(hazard_pointer &&other) noexcept
    {
        if (this != &other) {
            prudence_hazard_release(slot_);
            slot_ = std::exchange(other.slot_, nullptr);
        }
        return *this;
    }
    ~hazard_pointer()
    {
        prudence_hazard_release(slot_);
    }

    [[nodiscard]] bool empty() const noexcept
    {
        return !slot_;
    }

    // The object that `src` links, protected from now on, or nullptr.
    template <class T> T *protect(const std::atomic<T *> &src) noexcept
    {
        T *found = src.load(std::memory_order_relaxed);

        while (!try_protect(found, src)) {
        }
        return found;
    }

    // Names `ptr`, then stores in it the pointer that `src` links. True if that is the same: it is
    // protected. Otherwise this names nothing.
    template <class T> bool try_protect(T *&ptr, const std::atomic<T *> &src) noexcept
    {
        T *const wanted = ptr;

        reset_protection(wanted);
        ptr = src.load(std::memory_order_acquire);
        if (ptr == wanted)
            return true;
        reset_protection();
        return false;
    }

    // Names *ptr, which is protected if it is not retired before. The object named before is no
    // longer protected.
    template <class T> void reset_protection(const T *ptr) noexcept
    {
        static_assert(is_hazard_protectable<std::remove_cv_t<T>>,
                      "T derives from hazard_pointer_obj_base, or is_hazard_protectable<T>");
        prudence_hazard_set(slot_, ptr);
    }
    void reset_protection(std::nullptr_t = nullptr) noexcept
    {
        prudence_hazard_reset(slot_);
    }

    void swap(hazard_pointer &other) noexcept
    {
        std::swap(slot_, other.slot_);
    }

  private:
    explicit hazard_pointer(prudence_hazard *slot) noexcept : slot_(slot)
    {
    }
    friend hazard_pointer make_hazard_pointer();

    prudence_hazard *slot_ = nullptr;
};

// A hazard pointer that is not empty. Throws std::bad_alloc.
[[nodiscard]] inline hazard_pointer make_hazard_pointer()
{
    return hazard_pointer(static_cast<prudence_hazard *>(
        detail::find_memory([] { return prudence_hazard_acquire_movable(); })));
}

inline void swap(hazard_pointer &a, hazard_pointer &b) noexcept
{
    a.swap(b);
}

#if defined(__cpp_lib_span)
// Batches, as P3428 proposes them; not part of C++26.

// Makes all of these, which are empty. Throws std::bad_alloc; then they still are.
inline void make_hazard_pointer_batch(std::span<hazard_pointer> batch)
{
    struct undo {
        std::span<hazard_pointer> made;
        ~undo()
        {
            for (hazard_pointer &each : made)
                each = hazard_pointer();
        }
    } undo{};

    for (std::size_t i = 0; i < batch.size(); i++) {
        batch[i] = make_hazard_pointer();
        undo.made = batch.first(i + 1);
    }
    undo.made = {};
}

// Gives these back; they are empty afterwards.
inline void clear_hazard_pointer_batch(std::span<hazard_pointer> batch) noexcept
{
    for (hazard_pointer &each : batch)
        each = hazard_pointer();
}
#endif

} // namespace prudence

#endif // PRUDENCE_HAZARD_POINTER_HPP
