// SPDX-License-Identifier: MIT
/*
 * Prefixes of IPv4 or IPv6 addresses that own a value each, and for an address the value of the
 * longest prefix that matches: the table of <prudence/routes.h>, with values of a cache.
 *
 *     prudence::routes<hop> routes("routes");               // or routes<hop, PRUDENCE_ROUTES_IPV6>
 *     routes.insert_or_assign({{192, 0, 2, 0}, 24}, hop{1});
 *     { prudence::guard inside; const hop *found = routes.match(address, inside); ... }
 *
 * Readers take no lock and wait for no writer. A value does not change: a writer replaces it. The
 * one that was replaced or erased is destroyed when its readers have ended, on a thread of the
 * library.
 *
 * Writers: any number; call them outside of regions, so that they may wait for memory. If anything
 * throws, the table is as it was. Fork is as in <prudence/routes.h>. Not for signal handlers.
 */
#ifndef PRUDENCE_ROUTES_HPP
#define PRUDENCE_ROUTES_HPP

#include <prudence/container_parts.hpp>
#include <prudence/routes.h>
#include <prudence/structure.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace prudence
{

namespace detail
{

// A template that an importer of a module instantiates cannot name the static functions of C.
inline std::uintptr_t routes_lookup(const prudence_routes *table,
                                    const std::array<unsigned char, 4> &address) noexcept
{
    return prudence_routes_lookup_ipv4(table, address.data());
}
inline std::uintptr_t routes_lookup(const prudence_routes *table,
                                    const std::array<unsigned char, 16> &address) noexcept
{
    return prudence_routes_lookup_ipv6(table, address.data());
}

} // namespace detail

template <class T, prudence_routes_family Family = PRUDENCE_ROUTES_IPV4> class routes
{
    static_assert(std::is_same_v<T, std::remove_cv_t<T>>, "match() adds the const");

  public:
    using mapped_type = T;
    // Bytes as in a packet.
    using address = std::array<unsigned char, Family == PRUDENCE_ROUTES_IPV4 ? 4 : 16>;

    // The first `length` bits of the address. All others are 0.
    struct prefix {
        address first;
        unsigned length;
    };

    // `name` is in statistics and messages. The table is sized for this number of prefixes at
    // first. Throws std::system_error if the library refuses.
    explicit routes(const char *name, std::size_t expected = 0) : values_(name)
    {
        prudence_routes_attr attr = {};

        attr.size = sizeof attr;
        attr.family = Family;
        attr.prefixes = expected;
        table_ = prudence_routes_create(name, &attr);
        if (!table_)
            detail::fail_with(errno);
    }

    routes(const routes &) = delete;
    routes &operator=(const routes &) = delete;

    // Destroys all values, when no thread uses the table any more. Inside a region, the library
    // reports that, and they stay.
    ~routes()
    {
        prudence_routes_walk walk;

        // Otherwise prudence_routes_destroy() fails, and the table stays, with all values.
        if (prudence_domain_may_wait(nullptr, nullptr, nullptr, nullptr, nullptr) == 0)
            for (std::uintptr_t at = prudence_routes_first(&walk, table_, nullptr); at;
                 at = prudence_routes_next(&walk))
                retire(at);
        static_cast<void>(prudence_routes_destroy(table_));
    }

    // Returns the value of the longest prefix that matches the address, which lives until the guard
    // ends, or nullptr.
    [[nodiscard]] const T *match(const address &wanted, const guard &) const noexcept
    {
        return of(detail::routes_lookup(table_, wanted));
    }

    // Returns a copy of it.
    [[nodiscard]] std::optional<T> get(const address &wanted) const
    {
        guard inside;

        return detail::copy_of(match(wanted, inside));
    }

    // Returns the value of exactly this prefix, which lives until the guard ends, or nullptr.
    [[nodiscard]] const T *find(const prefix &wanted, const guard &) const noexcept
    {
        const prudence_routes_prefix in = to_c(wanted);

        return of(prudence_routes_get(table_, &in));
    }

    // Calls f(prefix, value) for each prefix, or those within one, in the order of addresses, until
    // f returns false, if it returns anything. The promises are those of <prudence/routes.h>.
    template <class F> void for_each(const guard &, F f) const
    {
        visit_all(nullptr, f);
    }
    template <class F> void for_each_within(const prefix &outer, const guard &, F f) const
    {
        const prudence_routes_prefix within = to_c(outer);

        visit_all(&within, f);
    }

    // The number of prefixes. Other threads change it.
    [[nodiscard]] std::size_t size() const noexcept
    {
        return prudence_routes_count(table_);
    }

    // Adds the prefix with T(arguments...). Returns false if the prefix is there. Also throws
    // std::invalid_argument if it is too long, or has bits after its length.
    template <class... Arguments> bool emplace(const prefix &where, Arguments &&...arguments)
    {
        auto fresh = values_.make(std::forward<Arguments>(arguments)...);

        if (add(where, fresh.get()))
            return false;
        static_cast<void>(fresh.release());
        return true;
    }

    // Gives the prefix this value. Returns whether the prefix was not there. Throws as emplace().
    bool insert_or_assign(const prefix &where, T value)
    {
        const prudence_routes_prefix at = to_c(where);
        auto fresh = values_.make(std::move(value));
        std::uintptr_t old = 0;
        bool added;

        do // until no other writer comes between the two
            added = !add(where, fresh.get());
        while (!added && prudence_routes_replace(table_, &at, to(fresh.get()), &old));
        static_cast<void>(fresh.release());
        retire(old);
        return added;
    }

    // Returns whether the prefix was there. May throw std::bad_alloc, because a smaller node takes
    // the place of the one that had the prefix.
    bool erase(const prefix &where)
    {
        const prudence_routes_prefix at = to_c(where);
        std::uintptr_t old = 0;

        static_cast<void>(
            detail::with_memory([&] { return prudence_routes_erase(table_, &at, &old); }));
        retire(old);
        return old != 0;
    }

    // The table of C, whose values are private, for prudence_routes_stats().
    [[nodiscard]] prudence_routes *get_table() const noexcept
    {
        return table_;
    }

  private:
    static prudence_routes_prefix to_c(const prefix &from) noexcept
    {
        prudence_routes_prefix to = {};

        std::memcpy(to.address, from.first.data(), from.first.size());
        to.length = from.length;
        return to;
    }

    static prefix from_c(const prudence_routes_prefix &from) noexcept
    {
        prefix to = {};

        std::memcpy(to.first.data(), from.address, to.first.size());
        to.length = from.length;
        return to;
    }

    static T *of(std::uintptr_t value) noexcept
    {
        return reinterpret_cast<T *>(value);
    }
    static std::uintptr_t to(T *value) noexcept
    {
        return reinterpret_cast<std::uintptr_t>(value);
    }

    // Returns 0, or EEXIST.
    [[nodiscard]] int add(const prefix &where, T *value)
    {
        const prudence_routes_prefix at = to_c(where);
        int error = detail::with_memory(
            [&] { return prudence_routes_add(table_, &at, to(value), nullptr); });

        if (error == EINVAL)
            detail::fail_by_argument("prudence::routes: a prefix is too long or has more bits");
        return error;
    }

    template <class F> void visit_all(const prudence_routes_prefix *within, F &f) const
    {
        prudence_routes_walk walk;
        bool more = true;

        for (std::uintptr_t at = prudence_routes_first(&walk, table_, within); at && more;
             at = prudence_routes_next(&walk))
            more = detail::visit(f, from_c(walk.prefix), std::as_const(*of(at)));
    }

    void retire(std::uintptr_t old) noexcept
    {
        values_.retire(of(old));
    }

    cache<T> values_; // outlives the table
    prudence_routes *table_;
};

} // namespace prudence

#endif // PRUDENCE_ROUTES_HPP
