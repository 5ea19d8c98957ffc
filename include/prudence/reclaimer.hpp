// SPDX-License-Identifier: MIT
/*
 * Destructors on a thread that the program chooses. Objects that are retired to a reclaimer wait
 * for their readers as with rcu_retire(). Then they wait until a thread of the program calls run(),
 * and end there.
 *
 *     prudence::reclaimer ended;              // of an event loop, a thread, an executor
 *     ended.retire(connection);               // by any thread
 *     ended.run();                            // by the thread on which ~connection belongs
 *
 * If the destructors belong on the thread that retires, each thread has a reclaimer of its own:
 *
 *     thread_local prudence::reclaimer mine;
 *
 * A thread of the library moves objects from their grace period to the reclaimer, and calls
 * `notify` when there is something to run. It never runs a deleter. Retired objects that no thread
 * ends stay in memory; pending() counts them.
 *
 * Threads: any number retire, also inside regions. One at a time calls run(), drain() and
 * drain_until(), also from a deleter. Fork: a child has the objects too, except one that the
 * library's thread was moving. Not for signal handlers.
 */
#ifndef PRUDENCE_RECLAIMER_HPP
#define PRUDENCE_RECLAIMER_HPP

#include <prudence/rcu.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace prudence
{

class reclaimer
{
  public:
    // Called on a thread of the library when an object becomes ready and none was. It must not wait
    // for this reclaimer's objects, nor throw. (Write to an eventfd, or post run() to an executor.)
    using notify_function = void (*)(void *argument) noexcept;

    reclaimer() noexcept = default;
    explicit reclaimer(notify_function notify, void *argument = nullptr) noexcept
        : notify_(notify), argument_(argument)
    {
    }
    reclaimer(const reclaimer &) = delete;
    reclaimer &operator=(const reclaimer &) = delete;

    // Waits for the readers of all objects and ends them here. No thread may retire any more,
    // except their deleters. Inside a region, the library reports the call, and the process ends.
    ~reclaimer()
    {
        do
            rcu_barrier();
        while (run() > 0);
    }

    // Ends *p with d(p), in run(), when all regions that are open now have ended. Throws
    // std::bad_alloc (not if only memory has to be freed), or the exception of the deleter's move;
    // then nothing was retired. If only memory has to be freed, the allocator does that on its own.
    template <class T, class D = std::default_delete<T>> void retire(T *p, D d = D())
    {
        using record = retired<T, D>;

        static_assert(std::is_move_constructible_v<D>, "retire() keeps the deleter");
        static_assert(std::is_invocable_v<D &, T *>, "d(p) must be valid");
        if (detail::retire_memory<T, D>(p))
            return;
        detail::place memory = detail::reserve(sizeof(record), alignof(record));
        record *kept = ::new (memory.get()) record(this, p, std::move(d)); // NOLINT: as rcu.hpp

        static_cast<void>(memory.release());
        pending_.fetch_add(1, std::memory_order_relaxed); // a count, which orders nothing
        detail::call(kept, record::arrive);
    }

    // Ends up to `most` objects whose readers have ended. Returns their number. Never waits.
    std::size_t run(std::size_t most = std::numeric_limits<std::size_t>::max()) noexcept
    {
        std::size_t done = 0;

        while (done < most) {
            prudence_head *head = next();

            if (!head)
                break;
            head->func(head);
            pending_.fetch_sub(1, std::memory_order_relaxed);
            done++;
        }
        return done;
    }

    // Waits until all objects that were retired before can end, and ends them here. Where that
    // would never be (inside a region, in a callback of the library), the process ends as in
    // rcu_barrier().
    void drain() noexcept
    {
        rcu_barrier();
        run();
    }

    // Works like drain(), but begins no deleter after the deadline. Returns whether all have ended.
    template <class Clock, class Duration>
    [[nodiscard]] bool drain_until(const std::chrono::time_point<Clock, Duration> &deadline)
    {
        return run_until(deadline) && flush_until(deadline) && run_until(deadline);
    }

    // The number of objects that were retired here and have not ended. Other threads change it.
    [[nodiscard]] std::size_t pending() const noexcept
    {
        return pending_.load(std::memory_order_relaxed);
    }

  private:
    // The record of an object. The head's two words are the library's until arrive(). After that
    // they are the link of the reclaimer's list, and the function that ends the object.
    template <class T, class D> struct retired : detail::retired_part<D> {
        retired(reclaimer *r, T *p, D &&d)
            : detail::retired_part<D>(std::move(d)), owner(r), object(p)
        {
        }

        static void arrive(prudence_head *head) noexcept
        {
            head->func = end;
            static_cast<retired *>(head)->owner->arrive(head);
        }

        static void end(prudence_head *head) noexcept
        {
            retired *self = static_cast<retired *>(head);

            self->deleter()(self->object);
            self->~retired();
            detail::deallocate(self, sizeof(retired), alignof(retired));
        }

        reclaimer *owner;
        T *object;
    };

    // On the library's thread. The reclaimer outlives this call, because ~reclaimer has a barrier.
    // Release: the thread that runs the deleter sees all that happened before.
    void arrive(prudence_head *head) noexcept
    {
        prudence_head *newest = arrived_.load(std::memory_order_relaxed);

        do
            head->next = newest;
        while (!arrived_.compare_exchange_weak(newest, head, std::memory_order_release,
                                               std::memory_order_relaxed));
        if (!newest && notify_)
            notify_(argument_);
    }

    // Takes the next object, in the order of arrival; nullptr: none.
    prudence_head *next() noexcept
    {
        if (!ready_)
            for (prudence_head *head = arrived_.exchange(nullptr, std::memory_order_acquire); head;)
                ready_ = std::exchange(head, std::exchange(head->next, ready_));
        return ready_ ? std::exchange(ready_, ready_->next) : nullptr;
    }

    // Returns whether no object was ready any more before the deadline.
    template <class Clock, class Duration>
    bool run_until(const std::chrono::time_point<Clock, Duration> &deadline)
    {
        while (Clock::now() < deadline)
            if (!run(1))
                return true;
        return !ready_ && !arrived_.load(std::memory_order_relaxed);
    }

    notify_function notify_ = nullptr;
    void *argument_ = nullptr;
    std::atomic<prudence_head *> arrived_{nullptr}; // newest first
    prudence_head *ready_ = nullptr;                // oldest first; of the thread in run()
    std::atomic<std::size_t> pending_{0};
};

} // namespace prudence

#endif // PRUDENCE_RECLAIMER_HPP
