/* SPDX-License-Identifier: Apache-2.0 */
#include "target/cpu/tile_order.h"

#include "search/reuse.h"

#include <math.h>
#include <string.h>

/* True if the tile loops have the vector axis outermost, and all other axes in the order of the
 * program. */
static bool begins_with_vector(const struct wpk_decisions *d)
{
    bool sorted = d->vec < 0 || d->inner[0] == d->vec;
    for (int k = 0, previous = -1; k < d->order_count; k++) {
        if (d->inner[k] != d->vec) {
            sorted = sorted && d->inner[k] > previous;
            previous = d->inner[k];
        }
    }
    return sorted;
}

/* Bytes of a load's tensor that the loops over tiles read from beyond a cache: what a loop's body
 * reads is read again by each loop that the load does not depend on, where the cache does not hold
 * it. */
static double count_traffic(const struct wpk_variant *variant, const struct wpk_decisions *d, int g,
                            const struct wpk_node *load, int64_t cache_bytes)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_program *program = &variant->program;
    const struct wpk_tensor *tensor = &program->tensors[load->tensor];
    const struct wpk_group *group = &s->plan.group[g];
    const struct wpk_member *member = &group->member[group->contraction];
    const struct wpk_stage *stage = &program->stages[member->stage];
    bool used[WPK_AXES_MAX] = {false}, reads[WPK_RANK_MAX] = {false};
    double held = (double)wpk_tensor_elements(tensor) * (double)wpk_dtype_size(tensor->dtype);
    for (int dim = 0; dim < tensor->rank; dim++) {
        (void)wpk_reuse_mark_index(program, load->index[dim], used);
    }
    for (int a = 0; a < stage->rank; a++) {
        if (used[a] && member->root_axis[a] >= 0) {
            reads[member->root_axis[a]] = true;
        }
    }
    for (int k = 0; k < d->order_count; k++) {
        int a = d->inner[k];
        held /= reads[a] ? (double)wpk_tile_count(wpk_root_of(variant, g), d, a) : 1;
    }
    double bytes = held;
    for (int k = d->order_count - 1; k >= 0; k--) {
        int a = d->inner[k];
        double times = (double)wpk_tile_count(wpk_root_of(variant, g), d, a);
        bytes *= reads[a] || held > (double)cache_bytes ? times : 1;
        held *= reads[a] ? times : 1;
    }
    return bytes;
}

/* Of a contraction, for the order of the tile loops that `d` has. */
static double count_operand_traffic(const struct wpk_variant *variant,
                                    const struct wpk_machine *machine,
                                    const struct wpk_decisions *d, int g)
{
    const struct wpk_structure *s = variant->plan;
    const struct wpk_stage *stage = wpk_contraction_of(variant, &s->plan.group[g]);
    int loads[WPK_LOADS_MAX];
    int count = wpk_stage_loads(&variant->program, stage, loads, WPK_LOADS_MAX);
    double sum = 0;
    for (int i = 0; i < count; i++) {
        sum += count_traffic(variant, d, g, &variant->program.nodes[loads[i]],
                             machine->cache_bytes[0] / 2);
    }
    return sum;
}

void wpk_tile_order_set(const struct wpk_variant *variant, const struct wpk_machine *machine, int g,
                        enum wpk_tile_order wanted, struct wpk_candidate *out)
{
    const struct wpk_structure *s = variant->plan;
    int gene = s->slots[g].inner;
    double least = HUGE_VAL;
    struct wpk_candidate best = *out;
    for (int i = 0; gene >= 0 && i < variant->genes[gene].choice_count; i++) {
        struct wpk_candidate attempt = *out;
        struct wpk_decisions d;
        double cost = 1;
        attempt.gene[gene] = (uint8_t)i;
        wpk_genes_read(variant, &attempt, g, &d);
        if (wanted == WPK_TILE_ORDER_VECTOR) {
            cost = begins_with_vector(&d) ? 0 : 1;
        } else if (s->plan.group[g].reuse) {
            cost = count_operand_traffic(variant, machine, &d, g);
        }
        if (wanted == WPK_TILE_ORDER_TRAFFIC && d.vec >= 0 && d.inner[d.order_count - 1] != d.vec) {
            cost *= 1.0001; /* of equal orders the one with the vector axis innermost */
        }
        if (cost < least) {
            least = cost;
            best = attempt;
        }
    }
    *out = best;
}
