// SPDX-License-Identifier: MIT
/*
 * A hash table that owns its keys and values, which readers search while writers change it: the
 * table of <prudence/hash.h>, with elements of a cache.
 *
 *     prudence::hash_map<std::string, address> hosts("hosts");
 *     hosts.insert_or_assign("example", first);
 *     std::optional<address> copy = hosts.get("example");
 *     { prudence::guard inside; if (const address *found = hosts.find("example", inside)) ... }
 *
 * Readers take no lock and wait for no writer. A value does not change: a writer replaces the
 * element. The one that was replaced or erased is destroyed when its readers have ended, on a
 * thread of the library.
 *
 * Writers: any number; call them outside of regions, so that they may wait for memory. If anything
 * throws, the table is as it was. Hash and Equal must not throw, and take the keys that find()
 * takes. Fork is as in <prudence/hash.h>. Not for signal handlers. Keys that an attacker chooses
 * need a keyed Hash.
 */
#ifndef PRUDENCE_HASH_MAP_HPP
#define PRUDENCE_HASH_MAP_HPP

#include <prudence/container_parts.hpp>
#include <prudence/hash.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace prudence
{

// The hash of keys: mixed numbers; of other types std::hash.
template <class K, class = void> struct key_hash : std::hash<K> {
};
template <class K>
struct key_hash<K, std::enable_if_t<std::is_integral_v<K> || std::is_enum_v<K>>> {
    std::uint64_t operator()(K key) const noexcept
    {
        return prudence_hash_mix(static_cast<std::uint64_t>(key));
    }
};
template <class A>
struct key_hash<std::basic_string<char, std::char_traits<char>, A>> : std::hash<std::string_view> {
};

namespace detail
{

// A template that an importer of a module instantiates cannot name the static function of C.
inline prudence_hash_node *hash_lookup(const prudence_hash *table, std::uint64_t hash,
                                       prudence_hash_match match, const void *key) noexcept
{
    return prudence_hash_lookup(table, hash, match, key);
}

} // namespace detail

// find(key, guard), get(key) and contains(key) are in detail::lookups.
template <class K, class V, class Hash = key_hash<K>, class Equal = std::equal_to<>>
class hash_map : public detail::lookups<hash_map<K, V, Hash, Equal>, K, V>
{
    using base = detail::lookups<hash_map, K, V>;
    friend base;

  public:
    using lookup_key = detail::lookup_key<K>;

    // `name` is in statistics and messages. The table has room for this number of elements at
    // first. Throws std::system_error if the library refuses.
    explicit hash_map(const char *name, std::size_t expected = 0, Hash hash = Hash(),
                      Equal equal = Equal())
        : elements_(name), hash_(std::move(hash)), equal_(std::move(equal))
    {
        prudence_hash_attr attr = {};

        attr.size = sizeof attr;
        attr.buckets = expected;
        table_ = prudence_hash_create(name, &attr);
        if (!table_)
            detail::fail_with(errno);
    }

    hash_map(const hash_map &) = delete;
    hash_map &operator=(const hash_map &) = delete;

    // Destroys all elements, when no thread uses the table any more. Inside a region, the library
    // reports that, and they stay.
    ~hash_map()
    {
        static_cast<void>(prudence_hash_destroy(table_, end, nullptr));
    }

    // Calls f(key, value) for each element, in no order, until f returns false, if it returns
    // anything. Elements that are there during the whole walk are found exactly once.
    template <class F> void for_each(const guard &, F f) const
    {
        prudence_hash_walk walk;
        bool more = true;

        for (prudence_hash_node *at = prudence_hash_first(&walk, table_); at && more;
             at = prudence_hash_next(&walk))
            more = detail::visit(f, std::as_const(of(at)->key), std::as_const(of(at)->value));
    }

    // The number of elements. Other threads change it.
    [[nodiscard]] std::size_t size() const noexcept
    {
        return prudence_hash_count(table_);
    }

    // Adds the key with V(arguments...). Returns false if the key is there.
    template <class... Arguments> bool emplace(K key, Arguments &&...arguments)
    {
        auto fresh = elements_.make(std::move(key), std::forward<Arguments>(arguments)...);
        asked in{*this, fresh->key};
        guard inside;

        if (prudence_hash_add(table_, in.hash, is_key, &in, fresh.get(), nullptr))
            return false;
        static_cast<void>(fresh.release());
        return true;
    }

    // Gives the key this value. Returns whether the key was not there.
    bool insert_or_assign(K key, V value)
    {
        auto fresh = elements_.make(std::move(key), std::move(value));
        asked in{*this, fresh->key};
        prudence_hash_node *old = nullptr;
        {
            guard inside;

            prudence_hash_put(table_, in.hash, is_key, &in, fresh.release(), &old);
        }
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
                fresh = elements_.make_in(std::move(memory), std::as_const(old->key),
                                          std::as_const(old->value));
                change(fresh->value);
                error = prudence_hash_replace(table_, old, fresh.get());
                if (!error)
                    static_cast<void>(fresh.release());
            }
            if (!error) {
                retire(old);
                return true;
            }
        }
    }

    // Returns whether the key was there.
    bool erase(lookup_key key)
    {
        element *old;
        int error;

        do {
            guard inside;

            old = lookup(key);
            error = old ? prudence_hash_remove(table_, old)
                        : 0; // ENOENT: another writer removed or replaced it first
        } while (error);
        retire(old);
        return old != nullptr;
    }

    // The table of C, whose nodes are private, for prudence_hash_stats() and
    // prudence_hash_resize().
    [[nodiscard]] prudence_hash *get_table() const noexcept
    {
        return table_;
    }

  private:
    struct element : prudence_hash_node {
        template <class Key, class... Arguments>
        explicit element(Key &&k, Arguments &&...arguments)
            : prudence_hash_node(), key(std::forward<Key>(k)),
              value(std::forward<Arguments>(arguments)...)
        {
        }

        K key;
        V value;
    };

    // A key to search for.
    struct asked {
        asked(const hash_map &map, lookup_key k) : key(k), hash(map.hash_(k)), equal(map.equal_)
        {
        }

        lookup_key key;
        std::uint64_t hash;
        const Equal &equal;
    };

    static element *of(prudence_hash_node *node) noexcept
    {
        return static_cast<element *>(node);
    }

    static bool is_key(const prudence_hash_node *node, const void *key) noexcept
    {
        const asked *in = static_cast<const asked *>(key);

        return in->equal(static_cast<const element *>(node)->key, in->key);
    }

    static void end(prudence_hash_node *node, void *) noexcept
    {
        cache_delete<element>()(of(node));
    }

    [[nodiscard]] element *lookup(lookup_key key) const noexcept
    {
        asked in{*this, key};

        return of(detail::hash_lookup(table_, in.hash, is_key, &in));
    }

    [[nodiscard]] const V *value_of(lookup_key key) const noexcept
    {
        const element *found = lookup(key);

        return found ? &found->value : nullptr;
    }

    void retire(prudence_hash_node *old) noexcept
    {
        elements_.retire(of(old));
    }

    cache<element> elements_; // outlives the table
    prudence_hash *table_;
    Hash hash_;
    Equal equal_;
};

} // namespace prudence

#endif // PRUDENCE_HASH_MAP_HPP
