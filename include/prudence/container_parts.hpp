// SPDX-License-Identifier: MIT
/* Private to the headers of containers: parts that hash_map, map, routes and id_table share. */
#ifndef PRUDENCE_CONTAINER_PARTS_HPP
#define PRUDENCE_CONTAINER_PARTS_HPP

#include <prudence/rcu.hpp>

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace prudence
{
namespace detail
{

// How functions take the key of a lookup. A std::string is found by any text.
template <class K> struct lookup {
    using type = const K &;
};
template <class A> struct lookup<std::basic_string<char, std::char_traits<char>, A>> {
    using type = std::string_view;
};
template <class K> using lookup_key = typename lookup<K>::type;

// Returns the error of an update, but never ENOMEM: then the new-handler is called, and the update
// tried again, or std::bad_alloc is thrown.
template <class Update> [[nodiscard]] int with_memory(Update update)
{
    for (;;) {
        if (int error = update(); error != ENOMEM)
            return error;
        handle_no_memory();
    }
}

// Calls f. Returns whether the walk goes on: f returns nothing, or false to end it.
template <class F, class... Arguments> bool visit(F &f, Arguments &&...arguments)
{
    if constexpr (std::is_void_v<std::invoke_result_t<F &, Arguments...>>) {
        f(std::forward<Arguments>(arguments)...);
        return true;
    } else {
        return static_cast<bool>(f(std::forward<Arguments>(arguments)...));
    }
}

template <class V> [[nodiscard]] std::optional<std::remove_cv_t<V>> copy_of(V *found)
{
    if (!found)
        return std::nullopt;
    return *found;
}

// The look-ups of hash_map and map. A Map has value_of(key), called inside a region, which returns
// the value's address or nullptr.
template <class Map, class K, class V> class lookups
{
    static_assert(std::is_same_v<V, std::remove_cv_t<V>>, "find() adds the const");

  public:
    using key_type = K;
    using mapped_type = V;
    using lookup_key = detail::lookup_key<K>;

    // Returns the value of the key, which lives until the guard ends, or nullptr.
    [[nodiscard]] const V *find(lookup_key key, const guard &) const noexcept
    {
        return static_cast<const Map *>(this)->value_of(key);
    }

    // Returns a copy of the value.
    [[nodiscard]] std::optional<V> get(lookup_key key) const
    {
        guard inside;

        return copy_of(find(key, inside));
    }

    [[nodiscard]] bool contains(lookup_key key) const noexcept
    {
        guard inside;

        return find(key, inside) != nullptr;
    }

  protected:
    lookups() = default;
    ~lookups() = default;
};

} // namespace detail
} // namespace prudence

#endif // PRUDENCE_CONTAINER_PARTS_HPP
