/* SPDX-License-Identifier: Apache-2.0 */

#include "common/format.h"
#include "nest/reach.h"
#include "search/candidate_nest.h"
#include "search/variant.h"
#include "target/cpu/rules.h"

#include <math.h>

static bool legal(const struct wpk_space *space, const struct wpk_candidate *candidate,
                  const char **why)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *structure = variant->plan;
    for (int g = 0; g < structure->plan.group_count; g++) {
        if (!wpk_cpu_is_legal_group(space, g, candidate, why)) {
            return false;
        }
    }
    return wpk_placement_is_legal(variant, &space->options, candidate, why) &&
           wpk_back_end_is_legal(variant, candidate, why);
}

static wpk_err nest_of(const struct wpk_space *space, const struct wpk_candidate *candidate,
                       struct wpk_nest *out)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *structure = variant->plan;
    struct wpk_decisions d[WPK_GROUPS_MAX];
    for (int g = 0; g < structure->plan.group_count; g++) {
        wpk_genes_read(variant, candidate, g, &d[g]);
    }
    wpk_err err = wpk_decisions_nest(variant, &space->options, d, out);
    if (err == WPK_OK && wpk_back_end_has_scope_output(wpk_genes_back_end(variant, candidate))) {
        /* A tensor that fits in registers stays there. */
        int64_t registers = (int64_t)space->options.device.cpu.vector_registers *
                            space->options.device.cpu.vector_bytes;
        for (int e = 0; e < out->entry_count; e++) {
            struct wpk_nest_entry *entry = &out->entry[e];
            if (entry->kind != WPK_NEST_STAGE || entry->inlined) {
                continue;
            }
            const struct wpk_stage *stage = wpk_nest_stage(out, entry);
            int64_t size = (int64_t)wpk_dtype_size(out->program->tensors[stage->output].dtype);
            int64_t bytes = size * wpk_extents_product(entry->extent, stage->rank);
            if (bytes > registers && wpk_nest_refuses_output(out, e) == NULL) {
                entry->scope = WPK_SCOPE_OUTPUT;
            }
        }
    }
    return err;
}

/* ---- what is counted of a nest */

/* Seconds of the candidate, with the nest and the features that they follow from. */
static wpk_err predict(const struct wpk_space *space, const struct wpk_candidate *candidate,
                       struct wpk_nest *nest, struct wpk_features *features, double *seconds)
{
    const struct wpk_structure *structure = space->variants[candidate->variant].plan;
    const struct wpk_machine *machine = &space->options.target.machine;
    wpk_err err = nest_of(space, candidate, nest);
    if (err == WPK_OK) {
        wpk_features(&structure->accesses, nest, machine, space->options.threads, features);
        *seconds = wpk_features_seconds(machine, features, space->options.threads);
    }
    return err;
}

static wpk_err bound(const struct wpk_space *space, const struct wpk_candidate *candidate,
                     double *seconds)
{
    struct wpk_nest nest;
    struct wpk_features features;
    return predict(space, candidate, &nest, &features, seconds);
}

/* Numbers over many magnitudes. */
static double log_of(double x)
{
    return wpk_real_log(1 + fmax(x, 0));
}

struct writer {
    double *out;
    int count;
};

static void put(struct writer *w, double x)
{
    WPK_ASSERT(w->count < WPK_FEATURES);
    w->out[w->count++] = x;
}

/* The body that most instructions are in. */
static void put_body(struct writer *w, const struct wpk_features *f)
{
    static const struct wpk_body none;
    const struct wpk_body *body = &none;
    double most = 0, all = 0, singles = 0;
    for (int i = 0; i < f->body_count; i++) {
        const struct wpk_body *one = &f->body[i];
        double work = one->runs * (one->arithmetic + one->loads + one->stores + one->singles);
        all += work;
        singles += one->runs * one->singles;
        if (work > most) {
            most = work;
            body = one;
        }
    }
    put(w, log_of(body->runs));
    put(w, body->values);
    put(w, body->lanes);
    put(w, body->arithmetic);
    put(w, body->loads);
    put(w, body->stores);
    put(w, body->singles);
    put(w, body->accumulators);
    put(w, body->terms);
    put(w, body->copies);
    put(w, all > 0 ? most / all : 0);
    put(w, log_of(singles));
    for (int i = 0; i < WPK_CACHES; i++) {
        put(w, log_of(body->traffic_bytes[i]));
    }
}

static wpk_err features_of(const struct wpk_space *space, const struct wpk_candidate *candidate,
                           double *out)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    struct writer w = {.out = out};
    struct wpk_nest nest;
    struct wpk_features features;
    double bound = 0;
    int copies = 0;
    wpk_err err = predict(space, candidate, &nest, &features, &bound);
    if (err != WPK_OK) {
        return err;
    }
    for (int e = 0; e < nest.entry_count; e++) {
        copies += nest.entry[e].kind == WPK_NEST_COPY;
    }
    put(&w, wpk_real_log(fmax(bound, 1e-12)));
    put(&w, variant->operations);
    put(&w, variant->last);
    put(&w, variant->staged);
    put(&w, wpk_genes_back_end(variant, candidate));
    put(&w, nest.entry_count);
    put(&w, copies);
    put(&w, log_of(features.flops));
    put(&w, features.recomputed);
    put(&w, log_of(features.arithmetic));
    put(&w, log_of(features.loads));
    put(&w, log_of(features.stores));
    put(&w, features.loads_per_multiply_add);
    put(&w, features.accumulators);
    for (int i = 0; i < WPK_CACHES; i++) {
        put(&w, log_of(features.footprint_bytes[i]));
        put(&w, log_of(features.traffic_bytes[i]));
    }
    put(&w, log_of(features.bytes));
    put(&w, features.tails);
    put(&w, features.parallel);
    put(&w, features.balance);
    put(&w, log_of(features.statements));
    put(&w, features.body_count);
    put_body(&w, &features);
    return WPK_OK;
}

const struct wpk_target_rules wpk_target_cpu = {
    .kind = "cpu",
    .version = WPK_SPACE_VERSION,
    .describe = wpk_cpu_describe,
    .check = wpk_variants_check,
    .list = wpk_variants_list,
    .derive = wpk_cpu_derive,
    .legal = legal,
    .repair = wpk_cpu_repair,
    .construct = wpk_cpu_construct,
    .features = features_of,
    .bound = bound,
    .nest = nest_of,
    .gene_at = wpk_cpu_gene_at,
    .complete = wpk_cpu_complete,
};
