/* SPDX-License-Identifier: Apache-2.0 */
#include "target/c/kernel.h"

void wpk_c_refuse(struct wpk_c_kernel *k, const char *why)
{
    if (k->refusal == NULL) {
        k->refusal = why;
        k->refused = k->printing;
    }
}

int wpk_c_list_loops(const struct wpk_c_kernel *k, int entry, bool update,
                     struct wpk_nest_loop *loop, int *added)
{
    const struct wpk_nest_loops *loops =
        update ? &k->nest->entry[entry].update : &k->nest->entry[entry].pure;
    const struct wpk_stage *stage = &k->program->stages[k->nest->entry[entry].stage];
    int count = 0;
    for (int a = 0; a < (update ? stage->axis_count : stage->rank); a++) {
        bool found = false;
        for (int i = 0; i < loops->count; i++) {
            found = found || wpk_nest_at(k->nest, loops, i)->axis == a;
        }
        if (!found) {
            loop[count++] = (struct wpk_nest_loop){.axis = a, .step = 1};
        }
    }
    *added = count;
    for (int i = 0; i < loops->count && count < WPK_C_LOOPS_MAX; i++) {
        loop[count++] = *wpk_nest_at(k->nest, loops, i);
    }
    return count;
}
