/* SPDX-License-Identifier: Apache-2.0 */
/* Deriving one variant: its order of axes, then what its kind of device does with the program. An
 * order "last<p>" moves axis p of all tensors of the output's rank to the end: that axis becomes
 * contiguous at the boundary (layouts "any") or behind staging copies ("fixed"). */
#include "search/variant.h"

#include "ir/derive/derive.h"
#include "ir/derive/rewrite.h"
#include "ir/notation/notation.h"
#include "search/gene_list.h"
#include "search/genes.h"
#include "search/prune.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wpk_variant_order(int rank, int last, int *order)
{
    int n = 0;
    for (int d = 0; d < rank; d++) {
        if (d != last) {
            order[n++] = d;
        }
    }
    if (last >= 0) {
        order[n] = last;
    }
}

void wpk_variant_drop(struct wpk_variant *variant)
{
    struct wpk_structure *structure = variant->plan;
    for (int i = 0; i < variant->gene_count; i++) {
        wpk_gene_fini(&variant->genes[i]);
    }
    free(variant->genes);
    if (structure != NULL) {
        wpk_accesses_fini(&structure->accesses);
        wpk_plan_fini(&structure->plan);
        free(structure->kind);
    }
    free(structure);
    wpk_program_fini(&variant->program);
    variant->genes = NULL;
    variant->gene_count = 0;
    variant->plan = NULL;
    variant->state = WPK_VARIANT_NONE;
}

void wpk_variant_fini(struct wpk_variant *variant)
{
    if (variant != NULL) {
        wpk_variant_drop(variant);
        memset(variant, 0, offsetof(struct wpk_variant, program));
    }
}

void wpk_variants_keep(struct wpk_space *space, const bool *keep)
{
    int kept = 0;
    for (int v = 0; v < space->variant_count; v++) {
        struct wpk_variant *from = &space->variants[v], *to = &space->variants[kept];
        if (!keep[v]) {
            wpk_variant_fini(from);
            continue;
        }
        kept++;
        if (from != to) {
            memcpy(to, from, offsetof(struct wpk_variant, program));
            wpk_program_move(&from->program, &to->program);
            memset(from, 0, offsetof(struct wpk_variant, program));
        }
    }
    space->variant_count = kept;
}

/* A space may keep many variants: give back what building the program took beyond it. */
static void trim(struct wpk_program *program)
{
    size_t used = (size_t)program->node_count * sizeof(*program->nodes);
    struct wpk_node *nodes = used == 0 ? NULL : realloc(program->nodes, used);
    if (nodes != NULL) {
        program->nodes = nodes;
        program->node_capacity = program->node_count;
    }
}

/* FNV-1a, 64 bits, of the program's text. */
static wpk_err identify(struct wpk_variant *variant)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_program_print(&variant->program, &text);
    wpk_buf_append_text(&text, variant->layout);
    err = err == WPK_OK ? wpk_buf_status(&text) : err;
    variant->identity = 0xcbf29ce484222325u;
    for (size_t i = 0; i < text.size && err == WPK_OK; i++) {
        variant->identity = (variant->identity ^ (uint8_t)text.data[i]) * 0x100000001b3u;
    }
    wpk_buf_fini(&text);
    return err;
}

wpk_err wpk_variant_derive(const struct wpk_space *space, struct wpk_variant *variant)
{
    WPK_ASSERT(variant->state == WPK_VARIANT_LISTED);
    struct wpk_program *program = &variant->program;
    variant->plan = calloc(1, sizeof(struct wpk_structure));
    wpk_err err = variant->plan == NULL ? WPK_ENOMEM : wpk_program_copy(&space->program, program);
    err = err == WPK_OK ? wpk_program_tidy(program) : err; /* all stages are needed */
    if (err == WPK_OK && variant->last >= 0) {
        int rank = program->tensors[wpk_program_output(program)].rank, order[WPK_RANK_MAX];
        wpk_variant_order(rank, variant->last, order);
        err = wpk_derive_permute(program, order, rank);
    }
    err = err == WPK_OK ? space->options.target.rules->derive(space, variant) : err;
    err = err == WPK_OK && space->lazy ? identify(variant) : err;
    err = err != WPK_OK && program->full ? wpk_program_full_error(program) : err;
    if (err == WPK_OK) {
        trim(program);
        variant->state = WPK_VARIANT_DERIVED;
    } else {
        wpk_variant_drop(variant);
        variant->state = err == WPK_ENOMEM ? WPK_VARIANT_LISTED : WPK_VARIANT_NONE;
    }
    return err;
}

const struct wpk_variant *wpk_space_variant(const struct wpk_space *space, int v)
{
    struct wpk_variant *variant = &space->variants[v];
    WPK_ASSERT(v >= 0 && v < space->variant_count);
    if (variant->state == WPK_VARIANT_LISTED && wpk_variant_derive(space, variant) == WPK_OK &&
        space->pruned && !wpk_variant_prune(variant, space->accuracy, space->error_least)) {
        wpk_variant_drop(variant);
    }
    return variant->state == WPK_VARIANT_DERIVED ? variant : NULL;
}

wpk_err wpk_space_variant_error(const struct wpk_space *space, int v)
{
    return space->variants[v].state == WPK_VARIANT_LISTED ? WPK_ENOMEM : WPK_ENOENT;
}

bool wpk_variant_is_short(const struct wpk_space *space, int variant)
{
    const struct wpk_program *program = &space->program;
    int last = space->variants[variant].last, rank = 0;
    for (int t = 0; t < program->tensor_count; t++) {
        bool output = program->tensors[t].role == WPK_ROLE_OUTPUT;
        rank = output ? program->tensors[t].rank : rank;
    }
    for (int t = 0; t < program->tensor_count && last >= 0; t++) {
        const struct wpk_tensor *tensor = &program->tensors[t];
        bool permuted = tensor->role == WPK_ROLE_INPUT || tensor->role == WPK_ROLE_OUTPUT;
        if (permuted && tensor->rank == rank &&
            tensor->extent[last] >= space->options.target.machine.lanes_max) {
            return false;
        }
    }
    return last >= 0;
}

bool wpk_variant_algorithm(const struct wpk_variant *variant, int site,
                           struct wpk_variant_algorithm *out)
{
    const char *word = variant->algorithm;
    for (int i = 0; i < site && *word != '\0'; i++) {
        word += strcspn(word, " ");
        word += *word == ' ';
    }
    int length = (int)strcspn(word, " "), name = (int)strcspn(word, "= ");
    bool named = word[name] == '=';
    snprintf(out->gene, sizeof(out->gene), "algorithm%s%.*s", named ? "." : "", named ? name : 0,
             word);
    snprintf(out->value, sizeof(out->value), "%.*s", named ? length - name - 1 : length,
             word + (named ? name + 1 : 0));
    return length > 0;
}

/* ---- the boundary */

wpk_err wpk_variant_boundary(const struct wpk_variant *variant, const struct wpk_program *original,
                             int tensor, struct wpk_tensor_type *out)
{
    const struct wpk_tensor *logical = &original->tensors[tensor];
    int physical = wpk_program_find_tensor(&variant->program, logical->name);
    if (physical < 0) {
        return WPK_ENOENT;
    }
    memset(out, 0, sizeof(*out));
    out->dtype = logical->dtype;
    out->rank = logical->rank;
    memcpy(out->extent, logical->extent, sizeof(out->extent));
    out->layout = wpk_layout_row_major(logical->rank);
    int output = wpk_program_output(original);
    int last = variant->staged ? -1 : variant->last;
    if (last >= 0 && logical->rank == original->tensors[output].rank &&
        logical->role != WPK_ROLE_CONSTANT) {
        wpk_variant_order(logical->rank, last, out->layout.axis);
    }
    const struct wpk_tensor *laid = &variant->program.tensors[physical];
    for (int d = 0; d < laid->rank && laid->rank == logical->rank; d++) { /* else without borders */
        out->layout.pad_before[out->layout.axis[d]] = laid->pad_before[d];
        out->layout.pad_after[out->layout.axis[d]] = laid->pad_after[d];
    }
    return WPK_OK;
}
