/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/codegen.h"

#include "codegen/c_print.h"
#include "op/nest_check.h"

#include <string.h>

/* Halide has a call for every word of a nest, but blocks and threads need a device to run on. */
static bool halide_accepts(const struct wpk_schedule *schedule, struct wpk_diag *diag)
{
    const struct wpk_nest *nest = schedule->nest;
    if (strstr(schedule->target, "-opencl") != NULL) {
        return true;
    }
    for (int i = 0; i < nest->loop_count; i++) {
        const struct wpk_nest_loop *loop = &nest->loop[i];
        if (wpk_bind_is_block(loop->binding) || wpk_bind_is_thread(loop->binding)) {
            wpk_diag_set_at(diag, loop->at.line, loop->at.column,
                            "%s needs a target with opencl: write parallel, serial or unroll",
                            wpk_bind_name(loop->binding));
            return false;
        }
    }
    for (int e = 0; e < nest->entry_count; e++) {
        const struct wpk_nest_entry *entry = &nest->entry[e];
        if (entry->scope == WPK_SCOPE_SHARED || entry->scope == WPK_SCOPE_GLOBAL) {
            wpk_diag_set_at(diag, entry->at.line, entry->at.column,
                            "scope %s needs a target with opencl: write stack or heap",
                            wpk_scope_name(entry->scope));
            return false;
        }
    }
    return true;
}

static const struct wpk_codegen all[] = {
    {.name = "halide-cpu", .accepts = halide_accepts},
    {.name = "c", .accepts = wpk_c_accepts},
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
