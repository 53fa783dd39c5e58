/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/codegen.h"

#include "op/nest_check.h"

#include <string.h>

/* Halide has a call for every word of a nest. */
static bool halide_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag)
{
    (void)schedule;
    (void)diag;
    return true;
}

static const struct wpk_codegen all[] = {
    {.name = "halide-cpu", .accepts = halide_accepts},
};

#define COUNT ((int)(sizeof(all) / sizeof(all[0])))

const struct wpk_codegen *wpk_codegen_at(int i)
{
    return i < COUNT ? &all[i] : NULL;
}

const struct wpk_codegen *wpk_codegen_find(const char *name)
{
    int i = 0;
    while (i < COUNT && strcmp(all[i].name, name) != 0) {
        i++;
    }
    return wpk_codegen_at(i);
}

wpk_err wpk_codegen_check(const struct wpk_schedule *schedule, struct wpk_diag *diag)
{
    const struct wpk_codegen *by = wpk_codegen_find(schedule->by);
    WPK_ASSERT(by != NULL);
    wpk_err err = wpk_nest_check(schedule->nest, diag);
    return err == WPK_OK && !by->accepts(schedule, diag) ? WPK_EINVAL : err;
}
