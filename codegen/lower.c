/* SPDX-License-Identifier: Apache-2.0 */
/* Turning a candidate's decisions into directives, one group after the other. See lowering.h for
 * the parts, and for the loops that they make of a group. */
#include "codegen/lower.h"

#include "codegen/lowering.h"
#include "op/derive.h"
#include "search/variant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static wpk_err describe_boundary(const struct wpk_lowering *l);
static void describe_target(const struct wpk_space_options *options, char *out);
static void lower_group(struct wpk_lowering *l, int g);

/* The sum of a group's contraction becomes a sum of blocks' sums. */
static wpk_err cut_sum(struct wpk_lowering *l, int g)
{
    const struct wpk_decisions *d = &l->decisions[g];
    const struct wpk_stage *stage = wpk_contraction_of(l->variant, &l->structure->plan.group[g]);
    const char *tensor = l->variant->program.tensors[stage->output].name;
    return wpk_derive_block_reduction(&l->out->program,
                                      wpk_schedule_find_stage(&l->out->program, tensor),
                                      d->split_axis, d->split, l->partial[g]);
}

static wpk_err lower_program(struct wpk_lowering *l, struct wpk_packed_names *packed)
{
    wpk_err err = wpk_program_copy(&l->variant->program, &l->out->program);
    if (err == WPK_OK) {
        err = describe_boundary(l);
    }
    if (err == WPK_OK) {
        err = wpk_lowering_pack(l, packed);
    }
    for (int g = 0; g < l->structure->plan.group_count && err == WPK_OK; g++) {
        err = l->decisions[g].blocked ? cut_sum(l, g) : WPK_OK;
    }
    return err == WPK_OK ? wpk_schedule_split(l->out) : err;
}

wpk_err wpk_lower(const struct wpk_space *space, const struct wpk_candidate *candidate,
                  struct wpk_schedule *out, struct wpk_diag *diag)
{
    memset(out, 0, sizeof(*out));
    if (!wpk_space_is_legal(space, candidate)) {
        wpk_diag_set(diag, "the candidate breaks a rule of its space");
        return WPK_EINVAL;
    }
    struct wpk_packed_names packed = {.count = 0};
    struct wpk_lowering *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return WPK_ENOMEM;
    }
    l->space = space;
    l->variant = &space->variants[candidate->variant];
    l->structure = l->variant->plan;
    l->out = out;
    int group_count = l->structure->plan.group_count;
    for (int g = 0; g < group_count; g++) {
        wpk_genes_read(l->variant, candidate, g, &l->decisions[g]);
    }
    out->threads = space->options.threads;
    describe_target(&space->options, out->target);
    l->err = lower_program(l, &packed);
    /* consumers first: where they are computed names loops that must exist */
    for (int g = group_count - 1; g >= 0 && l->err == WPK_OK; g--) {
        lower_group(l, g);
    }
    for (int i = 0; i < packed.count && l->err == WPK_OK; i++) {
        wpk_lowering_copy_packed(l, packed.name[i]);
    }
    wpk_err err = l->err;
    free(l);
    if (err != WPK_OK) {
        wpk_schedule_fini(out);
    }
    return err;
}

static void lower_group(struct wpk_lowering *l, int g)
{
    const struct wpk_group *group = &l->structure->plan.group[g];
    int64_t region[WPK_MEMBERS_MAX][WPK_AXES_MAX];
    wpk_lowering_nest(l, g);
    wpk_plan_regions(&l->variant->program, group, l->decisions[g].tile, region);
    for (int m = 0; m < group->member_count; m++) {
        if (!group->member[m].inlined) {
            wpk_lowering_member(l, g, m, region[m]);
        }
    }
}

/* ---- the boundary and the target */

static wpk_err describe_boundary(const struct wpk_lowering *l)
{
    const struct wpk_program *original = &l->space->program;
    for (int t = 0; t < original->tensor_count; t++) {
        const struct wpk_tensor *tensor = &original->tensors[t];
        if (tensor->role != WPK_ROLE_INPUT && tensor->role != WPK_ROLE_CONSTANT &&
            tensor->role != WPK_ROLE_OUTPUT) {
            continue;
        }
        struct wpk_boundary *boundary = &l->out->boundary[l->out->boundary_count++];
        snprintf(boundary->name, WPK_NAME_MAX, "%s", tensor->name);
        wpk_err err = wpk_variant_boundary(l->variant, original, t, &boundary->type);
        if (err != WPK_OK) {
            return err;
        }
    }
    return WPK_OK;
}

static void describe_target(const struct wpk_space_options *options, char *out)
{
    const struct wpk_device *device = &options->device;
    static const char *const features[WPK_ISA_COUNT] = {
        [WPK_ISA_SSE41] = "sse41",
        [WPK_ISA_AVX] = "sse41-avx",
        [WPK_ISA_AVX2] = "sse41-avx-avx2-f16c-fma",
        [WPK_ISA_AVX512] = "sse41-avx-avx2-f16c-fma-avx512-avx512_skylake",
    };
    /* what bf16 stands for: schema/device.h */
    bool newest = device->isa == WPK_ISA_AVX512 && device->bf16;
    snprintf(out, WPK_TARGET_MAX, "x86-64-linux-%s%s%s", features[device->isa],
             newest ? "-avx512_cannonlake-avx512_zen4" : "",
             options->strict ? "-strict_float" : "");
}
