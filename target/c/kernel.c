/* SPDX-License-Identifier: Apache-2.0 */
#include "target/c/kernel.h"

#include "nest/schedule.h"
#include "nest/target.h"

#include <stdlib.h>
#include <string.h>

struct wpk_c_kernel *wpk_c_kernel_new(const struct wpk_schedule *schedule,
                                      const struct wpk_program *program, const char *symbol)
{
    struct wpk_c_kernel *k = WPK_DEMAND(calloc(1, sizeof(*k)));
    k->nest = schedule->nest;
    k->program = program;
    k->symbol = symbol;
    k->strict = wpk_target_is_strict(schedule->target);
    k->known = WPK_DEMAND(calloc((size_t)program->node_count + 1, sizeof(*k->known)));
    k->used = WPK_DEMAND(calloc((size_t)program->node_count + 1, sizeof(*k->used)));
    for (int e = 0; e < k->nest->entry_count; e++) {
        k->entry_of[k->nest->entry[e].stage] = e;
    }
    return k;
}

void wpk_c_kernel_free(struct wpk_c_kernel *k)
{
    wpk_c_storage_drop(k->storage, &k->storage_count);
    wpk_c_storage_drop(k->surveyed, &k->surveyed_count);
    wpk_forms_fini(&k->forms);
    wpk_buf_fini(&k->functions);
    free(k->known);
    free(k->used);
    free(k);
}

static void print_pass(struct wpk_c_kernel *k, void (*pass)(struct wpk_c_kernel *k, void *user),
                       void *user)
{
    k->text.forms = &k->forms;
    k->text.name_count = 0;
    k->forms.width = 1;
    k->function = 0;
    k->storage_count = 0;
    for (int t = 0; t < k->program->tensor_count; t++) {
        k->storage_of[t] = -1;
    }
    pass(k, user);
    if (k->forms.full) {
        wpk_c_refuse(k, "indices are too long");
    }
}

void wpk_c_print_passes(struct wpk_c_kernel *k, void (*pass)(struct wpk_c_kernel *k, void *user),
                        void *user)
{
    k->surveying = true;
    print_pass(k, pass, user);
    memcpy(k->surveyed, k->storage, sizeof(k->surveyed));
    k->surveyed_count = k->storage_count;
    k->storage_count = 0;
    wpk_forms_fini(&k->forms);
    memset(k->text.type, 0, sizeof(k->text.type));
    memset(k->text.function, 0, sizeof(k->text.function));
    k->surveying = false;
    if (k->refusal == NULL) {
        print_pass(k, pass, user);
    }
}

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
