/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/operation.h"

#include <string.h>

static const struct wpk_ptx_operation *find_in(const struct wpk_ptx_operation *table,
                                               const char *name, const char *form,
                                               enum wpk_ptx_type type)
{
    for (; table->name != NULL; table++) {
        if (table->type == type && strcmp(table->name, name) == 0 &&
            strcmp(table->form, form) == 0) {
            return table;
        }
    }
    return NULL;
}

const struct wpk_ptx_operation *wpk_ptx_operation_find(const char *name, const char *form,
                                                       enum wpk_ptx_type type)
{
    const struct wpk_ptx_operation *const tables[] = {wpk_ptx_integers, wpk_ptx_floats,
                                                      wpk_ptx_compares, wpk_ptx_controls};
    const struct wpk_ptx_operation *found = NULL;
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && found == NULL; i++) {
        found = find_in(tables[i], name, form, type);
    }
    return found;
}
