/* SPDX-License-Identifier: Apache-2.0 */
#include "op/derive.h"
#include "op/rewrite.h"

/* A stage that is being put into the one that reads it. */
struct inlining {
    int tensor;
    int expr;
};

/* The load reads the stage's own element, as output axes of the reader in order. */
static bool is_own_element(const struct wpk_program *program, const struct wpk_stage *reader,
                           const struct wpk_node *load)
{
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    bool own = reader->rank == tensor->rank;

    for (int d = 0; own && d < tensor->rank; d++) {
        own = wpk_index_axis(program, load->index[d]) == d &&
              reader->axes[d].extent == tensor->extent[d];
    }
    return own;
}

/* The only load of the tensor in the program; -1: none, or several. */
static int only_reader(const struct wpk_program *program, int tensor, int *load)
{
    int reader = -1;

    for (int s = 0; s < program->stage_count; s++) {
        int loads[WPK_LOADS_MAX];
        int count = wpk_stage_loads(program, &program->stages[s], loads, WPK_LOADS_MAX);
        for (int i = 0; i < count; i++) {
            if (program->nodes[loads[i]].tensor == tensor) {
                if (reader >= 0) {
                    return -1;
                }
                reader = s;
                *load = loads[i];
            }
        }
    }
    return reader;
}

static int replace(struct wpk_program *program, const struct wpk_node *load, const int *index,
                   void *user)
{
    const struct inlining *inlining = user;

    return load->tensor == inlining->tensor ? inlining->expr
                                            : wpk_rewrite_keep(program, load, index);
}

/* Put one stage into its reader. False: there is none that can be. */
static bool inline_one(struct wpk_program *program, wpk_err *err)
{
    for (int s = 0; s < program->stage_count; s++) {
        struct wpk_stage *stage = &program->stages[s];
        int load = -1;
        int reader = program->tensors[stage->output].role == WPK_ROLE_INTERMEDIATE &&
                             stage->reduction == WPK_REDUCE_NONE
                         ? only_reader(program, stage->output, &load)
                         : -1;
        if (reader < 0 ||
            !is_own_element(program, &program->stages[reader], &program->nodes[load])) {
            continue;
        }
        struct inlining inlining = {.tensor = stage->output, .expr = stage->expr};
        int expr =
            wpk_rewrite_expr(program, program->stages[reader].expr, NULL, replace, &inlining);
        program->stages[reader].expr = expr;
        *err = expr >= 0 ? wpk_program_tidy(program) : wpk_program_full_error(program);
        return true;
    }
    return false;
}

wpk_err wpk_derive_inline(struct wpk_program *program)
{
    wpk_err err = wpk_program_loads_fit(program) ? WPK_OK : WPK_ENOSPC;

    while (err == WPK_OK && inline_one(program, &err)) {
    }
    return err;
}
