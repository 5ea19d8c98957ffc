/* SPDX-License-Identifier: MIT */
/* Takes attributes of tables over: all begin with their size, and 0 is the default of each member,
 * so any number of members is enough. */
#include "tables/attributes.h"

#include <errno.h>

#include <prudence/structure.h>

#include "os/os.h"
#include "valid_attr.h"
#include "valid_name.h"

bool attributes_take(const char *what, const char *name, const char *structure, const void *given,
                     void *attributes, size_t size)
{
    const struct attr_names names = {what, "table", name, "attr", structure};

    __builtin_memset(attributes, 0, size);
    if (name_is_valid(what, name) &&
        (!given || attr_take(&names, given, attributes, size, sizeof(size_t))))
        return true;
    errno = EINVAL;
    return false;
}

bool attributes_domain_is_valid(const char *what, const char *name,
                                const struct prudence_domain *domain)
{
    if (prudence_domain_kind_of(domain) != PRUDENCE_DOMAIN_HAZARD)
        return true;
    os_report(
        "%s: '%s': the domain is of kind hazard, whose readers have no sections; choose another "
        "kind, or a set with a member of another kind",
        what, name);
    errno = EINVAL;
    return false;
}
