// SPDX-License-Identifier: MIT
/*
 * A map in the order of the keys that owns its keys and values, which readers search and walk while
 * writers change it: the map of <prudence/map.h>, with elements of a cache. Keys are integers,
 * enums or std::string (in the order of its bytes).
 *
 *     prudence::map<std::uint64_t, flow> flows("flows");
 *     flows.insert_or_assign(7, first);
 *     {
 *         prudence::guard inside;
 *
 *         flows.for_each_from(5, inside, [](std::uint64_t key, const flow &value) { ... });
 *     }
 *
 * Readers take no lock and wait for no writer. A value does not change: a writer replaces the
 * element. The one that was replaced or erased is destroyed when its readers have ended, on a
 * thread of the library.
 *
 * Writers: any number; call them outside of regions, so that they may wait for memory. If anything
 * throws, the map is as it was. Fork is as in <prudence/map.h>. Not for signal handlers.
 */
#ifndef PRUDENCE_MAP_HPP
#define PRUDENCE_MAP_HPP

#include <prudence/container_parts.hpp>
#include <prudence/map.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace prudence
{

namespace detail
{

// The functions of C, for both kinds of keys.
inline prudence_map_node *map_lookup(const prudence_map *map, std::uint64_t key) noexcept
{
    return prudence_map_lookup(map, key);
}
inline prudence_map_node *map_lookup(const prudence_map *map, std::string_view key) noexcept
{
    return prudence_map_lookup_bytes(map, key.data(), key.size());
}
inline prudence_map_node *map_ceiling(const prudence_map *map, std::uint64_t key) noexcept
{
    return prudence_map_ceiling(map, key);
}
inline prudence_map_node *map_ceiling(const prudence_map *map, std::string_view key) noexcept
{
    return prudence_map_ceiling_bytes(map, key.data(), key.size());
}
inline prudence_map_node *map_floor(const prudence_map *map, std::uint64_t key) noexcept
{
    return prudence_map_floor(map, key);
}
inline prudence_map_node *map_floor(const prudence_map *map, std::string_view key) noexcept
{
    return prudence_map_floor_bytes(map, key.data(), key.size());
}
inline prudence_map_node *map_first_from(prudence_map_walk *walk, const prudence_map *map,
                                         std::uint64_t key) noexcept
{
    return prudence_map_first_from(walk, map, key);
}
inline prudence_map_node *map_first_from(prudence_map_walk *walk, const prudence_map *map,
                                         std::string_view key) noexcept
{
    return prudence_map_first_from_bytes(walk, map, key.data(), key.size());
}
inline int map_erase(prudence_map *map, std::uint64_t key, prudence_map_node **old) noexcept
{
    return prudence_map_erase(map, key, old);
}
inline int map_erase(prudence_map *map, std::string_view key, prudence_map_node **old) noexcept
{
    return prudence_map_erase_bytes(map, key.data(), key.size(), old);
}

// The key of an element, and its form in C.
template <class K, class = void> struct map_key {
    static_assert(!sizeof(K), "the keys of a map are integers, enums or std::string");
};

template <class K, bool = std::is_enum_v<K>> struct number_of {
    using type = K;
};
template <class K> struct number_of<K, true> {
    using type = std::underlying_type_t<K>;
};

// Numbers, in an order in which negative ones come first.
template <class K> struct map_key<K, std::enable_if_t<std::is_integral_v<K> || std::is_enum_v<K>>> {
    static_assert(sizeof(K) <= sizeof(std::uint64_t), "the keys of a map have 64 bits at most");

    static constexpr unsigned flags = 0;
    static constexpr std::uint64_t sign =
        std::is_signed_v<typename number_of<K>::type> ? std::uint64_t(1) << 63 : 0;

    static std::uint64_t encode(K key) noexcept
    {
        return static_cast<std::uint64_t>(key) ^ sign;
    }

    struct node : prudence_map_node {
        explicit node(K k) noexcept : prudence_map_node{encode(k)}
        {
        }
        [[nodiscard]] K get() const noexcept
        {
            return static_cast<K>(this->key ^ sign);
        }
    };
};

// Strings. The node points to the bytes of its own string, which does not move.
template <class A> struct map_key<std::basic_string<char, std::char_traits<char>, A>> {
    using string = std::basic_string<char, std::char_traits<char>, A>;

    static constexpr unsigned flags = PRUDENCE_MAP_BYTES;

    static std::string_view encode(std::string_view key) noexcept
    {
        return key;
    }

    struct node : prudence_map_bytes {
        explicit node(string k) noexcept : prudence_map_bytes(), text(std::move(k))
        {
            prudence_map_set_bytes(this, text.data(), text.size());
        }
        node(const node &) = delete;
        node &operator=(const node &) = delete;
        [[nodiscard]] const string &get() const noexcept
        {
            return text;
        }

      private:
        string text;
    };
};

} // namespace detail

// find(key, guard), get(key) and contains(key) are in detail::lookups.
template <class K, class V> class map : public detail::lookups<map<K, V>, K, V>
{
    using base = detail::lookups<map, K, V>;
    friend base;
    using kind = detail::map_key<K>;

  public:
    using lookup_key = detail::lookup_key<K>;

    // The result of ceiling() and similar functions.
    class element : private kind::node
    {
      public:
        template <class Key, class... Arguments>
        explicit element(Key &&k, Arguments &&...arguments)
            : kind::node(std::forward<Key>(k)), value_(std::forward<Arguments>(arguments)...)
        {
        }
        element(const element &) = delete;
        element &operator=(const element &) = delete;

        [[nodiscard]] decltype(auto) key() const noexcept
        {
            return kind::node::get();
        }
        [[nodiscard]] const V &value() const noexcept
        {
            return value_;
        }

      private:
        friend class map;
        V value_;
    };

    // `name` is in statistics and messages. Throws std::system_error if the library refuses.
    explicit map(const char *name) : elements_(name)
    {
        prudence_map_attr attr = {};

        attr.size = sizeof attr;
        attr.flags = kind::flags;
        map_ = prudence_map_create(name, &attr);
        if (!map_)
            detail::fail_with(errno);
    }

    map(const map &) = delete;
    map &operator=(const map &) = delete;

    // Destroys all elements, when no thread uses the map any more. Inside a region, the library
    // reports that, and they stay.
    ~map()
    {
        static_cast<void>(prudence_map_destroy(map_, end, nullptr));
    }

    // Return the nearest element, which lives until the guard ends, or nullptr: the lowest that is
    // not below the key, the highest that is not above it, the first and the last of all.
    [[nodiscard]] const element *ceiling(lookup_key key, const guard &) const noexcept
    {
        return of(detail::map_ceiling(map_, kind::encode(key)));
    }
    [[nodiscard]] const element *floor(lookup_key key, const guard &) const noexcept
    {
        return of(detail::map_floor(map_, kind::encode(key)));
    }
    [[nodiscard]] const element *lowest(const guard &) const noexcept
    {
        return of(prudence_map_lowest(map_));
    }
    [[nodiscard]] const element *highest(const guard &) const noexcept
    {
        return of(prudence_map_highest(map_));
    }

    // Call f(key, value) for each element, or those from a key on, in the order of keys, until f
    // returns false, if it returns anything. The promises are those of <prudence/map.h>.
    template <class F> void for_each(const guard &, F f) const
    {
        prudence_map_walk walk;

        visit_all(&walk, prudence_map_first(&walk, map_), f);
    }
    template <class F> void for_each_from(lookup_key key, const guard &, F f) const
    {
        prudence_map_walk walk;

        visit_all(&walk, detail::map_first_from(&walk, map_, kind::encode(key)), f);
    }

    // The number of elements. Other threads change it.
    [[nodiscard]] std::size_t size() const noexcept
    {
        return prudence_map_count(map_);
    }

    // Adds the key with V(arguments...). Returns false if the key is there.
    template <class... Arguments> bool emplace(K key, Arguments &&...arguments)
    {
        auto fresh = elements_.make(std::move(key), std::forward<Arguments>(arguments)...);

        if (detail::with_memory([&] { return prudence_map_add(map_, to(fresh.get()), nullptr); }))
            return false;
        static_cast<void>(fresh.release());
        return true;
    }

    // Gives the key this value. Returns whether the key was not there.
    bool insert_or_assign(K key, V value)
    {
        auto fresh = elements_.make(std::move(key), std::move(value));
        prudence_map_node *old = nullptr;

        static_cast<void>(
            detail::with_memory([&] { return prudence_map_put(map_, to(fresh.get()), &old); }));
        static_cast<void>(fresh.release());
        retire(old);
        return !old;
    }

    // Replaces the value by a copy that change(copy) has changed. If another writer replaces it
    // first, this starts over with that writer's value. Returns false if the key is not there.
    // `change` runs inside a region.
    template <class Change> bool update(lookup_key key, Change change)
    {
        for (;;) {
            auto memory = elements_.reserve();
            typename cache<element>::unique_ptr fresh; // ends after the guard; that may wait
            element *old;
            int error;
            {
                guard inside;

                old = lookup(key);
                if (!old)
                    return false;
                fresh = elements_.make_in(std::move(memory), old->key(), old->value());
                change(fresh->value_);
                error = prudence_map_replace(map_, to(old), to(fresh.get()));
                if (!error)
                    static_cast<void>(fresh.release());
            }
            if (!error) {
                elements_.retire(old);
                return true;
            }
        }
    }

    // Returns whether the key was there.
    bool erase(lookup_key key) noexcept
    {
        prudence_map_node *old = nullptr;

        static_cast<void>(detail::map_erase(map_, kind::encode(key), &old));
        retire(old);
        return old != nullptr;
    }

    // The map of C, whose nodes are private, for prudence_map_stats().
    [[nodiscard]] prudence_map *get_map() const noexcept
    {
        return map_;
    }

  private:
    // A node is the first member or base of the element's base, so they have one address.
    static element *of(prudence_map_node *node) noexcept
    {
        return static_cast<element *>(reinterpret_cast<typename kind::node *>(node));
    }
    static prudence_map_node *to(element *at) noexcept
    {
        return reinterpret_cast<prudence_map_node *>(static_cast<typename kind::node *>(at));
    }

    static void end(prudence_map_node *node, void *) noexcept
    {
        cache_delete<element>()(of(node));
    }

    [[nodiscard]] element *lookup(lookup_key key) const noexcept
    {
        return of(detail::map_lookup(map_, kind::encode(key)));
    }

    [[nodiscard]] const V *value_of(lookup_key key) const noexcept
    {
        const element *found = lookup(key);

        return found ? &found->value_ : nullptr;
    }

    template <class F> static void visit_all(prudence_map_walk *walk, prudence_map_node *at, F &f)
    {
        bool more = true;

        for (; at && more; at = prudence_map_next(walk))
            more = detail::visit(f, std::as_const(*of(at)).key(), of(at)->value());
    }

    void retire(prudence_map_node *old) noexcept
    {
        elements_.retire(of(old));
    }

    cache<element> elements_; // outlives the map
    prudence_map *map_;
};

} // namespace prudence

#endif // PRUDENCE_MAP_HPP
