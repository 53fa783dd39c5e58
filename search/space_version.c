/* SPDX-License-Identifier: Apache-2.0 */
/* In a file of its own, for which search/fake_space.c stands in tests of strategies. */
#include "search/space_kind.h"

static const char *version_of(const struct wpk_space_kind *kind)
{
    return kind == NULL ? WPK_SPACE_VERSION : kind->version;
}

const char *wpk_space_version_of(const char *device_kind)
{
    const struct wpk_target_rules *rules = wpk_target_rules_of(device_kind);
    return version_of(rules != NULL ? rules->space : NULL);
}

const char *wpk_space_version(const struct wpk_space *space)
{
    return version_of(wpk_space_kind_of(space));
}
