/* SPDX-License-Identifier: Apache-2.0 */
#include "target/gpu/space/reading.h"

/* The load reads its tensor at the stage's own point. */
static bool is_own_point(const struct wpk_program *program, const struct wpk_node *load)
{
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        if (wpk_index_axis(program, load->index[d]) != d) {
            return false;
        }
    }
    return load->outside < 0;
}

static bool is_at_axes(const struct wpk_program *program, const struct wpk_node *load)
{
    for (int d = 0; d < program->tensors[load->tensor].rank; d++) {
        if (wpk_index_axis(program, load->index[d]) < 0) {
            return false;
        }
    }
    return true;
}

struct wpk_cuda_reading wpk_cuda_read(const struct wpk_program *program, int tensor)
{
    struct wpk_cuda_reading found = {.stage = -1, .load = -1, .own_point = true, .at_axes = true};
    for (int s = 0; s < program->stage_count; s++) {
        int loads[WPK_LOADS_MAX];
        int count = wpk_stage_loads(program, &program->stages[s], loads, WPK_LOADS_MAX);
        for (int l = 0; l < count && l < WPK_LOADS_MAX; l++) {
            const struct wpk_node *load = &program->nodes[loads[l]];
            if (load->tensor == tensor) {
                bool own = is_own_point(program, load) &&
                           program->stages[s].rank == program->tensors[tensor].rank;
                found.loads++;
                found.stage = s;
                found.load = loads[l];
                found.own_point = found.own_point && own;
                found.at_axes = found.at_axes && is_at_axes(program, load);
            }
        }
    }
    return found;
}
