// SPDX-License-Identifier: MIT
/*
 * A table that owns objects and gives each a small number: handles, sessions, connections. It is
 * the table of <prudence/id_table.h>, with objects of a cache.
 *
 *     prudence::id_table<session> sessions("sessions");
 *     std::uint32_t id = sessions.emplace(user);
 *     { prudence::guard inside; if (session *found = sessions.find(id, inside)) ... }
 *     sessions.erase(id);
 *
 * Readers take no lock and wait for no writer. An object that was replaced or erased is destroyed
 * when its readers have ended, on a thread of the library. A number is used again when its object
 * is erased, the lowest free one first. Threads may change an object that they find, so it has a
 * lock or atomic members of its own; with id_table<const T> they cannot.
 *
 * Writers: any number; call them outside of regions, so that they may wait for memory. If anything
 * throws, the table is as it was. Fork is as in <prudence/id_table.h>. Not for signal handlers.
 */
#ifndef PRUDENCE_ID_TABLE_HPP
#define PRUDENCE_ID_TABLE_HPP

#include <prudence/container_parts.hpp>
#include <prudence/id_table.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace prudence
{

template <class T> class id_table
{
    using object = std::remove_const_t<T>;

  public:
    using value_type = T;
    using id_type = std::uint32_t;

    // `name` is in statistics and messages. The table has room for `expected` objects at first, and
    // for `most` at last; 0: the defaults of <prudence/id_table.h>. Throws std::system_error if the
    // library refuses.
    explicit id_table(const char *name, id_type expected = 0, id_type most = 0) : objects_(name)
    {
        prudence_id_table_attr attr = {};

        attr.size = sizeof attr;
        attr.ids = expected;
        attr.ids_most = most;
        table_ = prudence_id_table_create(name, &attr);
        if (!table_)
            detail::fail_with(errno);
    }

    id_table(const id_table &) = delete;
    id_table &operator=(const id_table &) = delete;

    // Destroys all objects, when no thread uses the table any more. Inside a region, the library
    // reports that, and they stay.
    ~id_table()
    {
        static_cast<void>(prudence_id_table_destroy(table_, end, nullptr));
    }

    // Returns the object with this number, which lives until the guard ends, or nullptr.
    [[nodiscard]] T *find(id_type id, const guard &) const noexcept
    {
        return static_cast<T *>(prudence_id_table_lookup(table_, id));
    }

    // Returns a copy of it.
    [[nodiscard]] std::optional<object> get(id_type id) const
    {
        guard inside;

        return detail::copy_of(find(id, inside));
    }

    // Calls f(id, object) for each object, in the order of numbers, until f returns false, if it
    // returns anything. Objects that are there during the whole walk are found exactly once.
    template <class F> void for_each(const guard &, F f) const
    {
        prudence_id_table_walk walk;
        bool more = true;

        for (void *at = prudence_id_table_first(&walk, table_); at && more;
             at = prudence_id_table_next(&walk))
            more = detail::visit(f, id_type(walk.id), *static_cast<T *>(at));
    }

    // The number of objects. Other threads change it.
    [[nodiscard]] std::size_t size() const noexcept
    {
        return prudence_id_table_count(table_);
    }

    // Makes an object. Returns the lowest free number, which is now the object's. Throws
    // std::length_error if all are in use.
    template <class... Arguments> [[nodiscard]] id_type emplace(Arguments &&...arguments)
    {
        auto fresh = objects_.make(std::forward<Arguments>(arguments)...);
        id_type id = 0;

        if (detail::with_memory([&] { return prudence_id_table_add(table_, fresh.get(), &id); }))
            detail::fail_by_limit("prudence::id_table: all identifiers are in use");
        static_cast<void>(fresh.release());
        return id;
    }

    // Makes an object in the place of the one with this number. Returns false if there was none.
    template <class... Arguments> bool replace(id_type id, Arguments &&...arguments)
    {
        auto fresh = objects_.make(std::forward<Arguments>(arguments)...);
        void *old = nullptr;

        if (prudence_id_table_replace(table_, id, fresh.get(), &old))
            return false;
        static_cast<void>(fresh.release());
        retire(old);
        return true;
    }

    // Returns whether there was an object. Of several threads that erase one number, one gets true.
    bool erase(id_type id) noexcept
    {
        void *old = nullptr;

        static_cast<void>(prudence_id_table_erase(table_, id, &old));
        retire(old);
        return old != nullptr;
    }

    // The table of C, whose objects are private, for prudence_id_table_stats().
    [[nodiscard]] prudence_id_table *get_table() const noexcept
    {
        return table_;
    }

  private:
    static void end(void *at, void *) noexcept
    {
        cache_delete<object>()(static_cast<object *>(at));
    }

    void retire(void *old) noexcept
    {
        objects_.retire(static_cast<object *>(old));
    }

    cache<object> objects_; // outlives the table
    prudence_id_table *table_;
};

} // namespace prudence

#endif // PRUDENCE_ID_TABLE_HPP
