/* SPDX-License-Identifier: Apache-2.0 */
/* The features of a candidate as numbers for cost models. */
#include "common/real.h"
#include "search/candidate_nest.h"
#include "search/feature.h"
#include "search/genes.h"
#include "search/space_kind.h"

#include <math.h>
#include <string.h>

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

static void put_whole(struct writer *w, const struct wpk_features *f)
{
    put(w, log_of(f->flops));
    put(w, f->recomputed);
    put(w, log_of(f->arithmetic));
    put(w, log_of(f->loads));
    put(w, log_of(f->stores));
    put(w, f->loads_per_multiply_add);
    put(w, f->accumulators);
    for (int i = 0; i < WPK_CACHES; i++) {
        put(w, log_of(f->footprint_bytes[i]));
        put(w, log_of(f->traffic_bytes[i]));
    }
    put(w, log_of(f->bytes));
    put(w, f->tails);
    put(w, f->parallel);
    put(w, f->balance);
    put(w, log_of(f->statements));
    put(w, f->body_count);
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

/* The prediction, and the genes as they are: sizes as logarithms. */
static wpk_err put_genes(const struct wpk_space *space, const struct wpk_candidate *candidate,
                         struct writer *w)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    double predicted = 0;
    wpk_err err = wpk_space_predict(space, candidate, &predicted);
    put(w, predicted);
    for (int i = 0; i < variant->gene_count && i < WPK_FEATURES - 1; i++) {
        int64_t value = variant->genes[i].choice[candidate->gene[i]].value;
        put(w, variant->genes[i].ordered ? log_of((double)value) : (double)value);
    }
    return err;
}

wpk_err wpk_space_features(const struct wpk_space *space, const struct wpk_candidate *candidate,
                           double *out)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    const struct wpk_structure *structure = variant->plan;
    const struct wpk_target *target = &space->options.target;
    struct writer w = {.out = out};
    struct wpk_nest nest;
    struct wpk_features features;
    memset(out, 0, WPK_FEATURES * sizeof(*out));
    if (wpk_space_kind_of(space) != NULL) {
        return put_genes(space, candidate, &w);
    }
    wpk_err err = wpk_candidate_nest(space, candidate, &nest);
    if (err != WPK_OK) {
        return err;
    }
    wpk_features(&structure->accesses, &nest, &target->machine, space->options.threads, &features);
    double bound = target->rules->bound(&target->machine, &features, space->options.threads);
    int copies = 0;
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
    put_whole(&w, &features);
    put_body(&w, &features);
    return WPK_OK;
}
