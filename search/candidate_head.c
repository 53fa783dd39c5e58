/* SPDX-License-Identifier: Apache-2.0 */
#include "search/gene_list.h"

#include <stdio.h>
#include <string.h>

wpk_err wpk_candidate_read_head(const struct wpk_space *space, char **rest,
                                char algorithm[WPK_ALGORITHM_MAX], const char **layout,
                                struct wpk_diag *diag)
{
    static const char name[] = "algorithm", last[] = "layout=";
    size_t used = 0;
    const char *version = strtok_r(NULL, " ", rest), *word = strtok_r(NULL, " ", rest);
    if (version == NULL || strcmp(version, wpk_space_version(space)) != 0) {
        return wpk_fail(diag, WPK_EMISMATCH, "space version %s, expected %s",
                        version == NULL ? "missing" : version, wpk_space_version(space));
    }
    algorithm[0] = '\0';
    for (; word != NULL && wpk_begins(word, name) && used < WPK_ALGORITHM_MAX;
         word = strtok_r(NULL, " ", rest)) {
        const char *value = word + strlen(name);
        used += (size_t)snprintf(algorithm + used, WPK_ALGORITHM_MAX - used, "%s%s",
                                 used > 0 ? " " : "", *value == '\0' ? "" : value + 1);
    }
    if (used == 0 || word == NULL || !wpk_begins(word, last)) {
        return wpk_fail(diag, WPK_EPARSE, "expected algorithm=... layout=... behind the version");
    }
    *layout = word + strlen(last);
    return WPK_OK;
}
