/* SPDX-License-Identifier: Apache-2.0 */
/* Each variant has a base time, and each gene multiplies it: an ordered gene by a smooth bowl.
 * Neighbouring genes interact. One candidate in 16 is illegal and one in 20 fails. Every number is
 * a hash of the seed, so that nothing has to be stored. */
#include "tests/fake_space.h"

#include "search/mask.h"
#include "search/prune.h"
#include "target/code.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b + UINT64_C(0x632be59bd9b4e019);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static double unit(uint64_t a, uint64_t b)
{
    return (double)(mix(a, b) >> 11) * 0x1p-53;
}

static bool gene_is_ordered(int gene)
{
    return gene % 3 != 2;
}

double wpk_fake_space_time(uint64_t seed, const struct wpk_candidate *candidate)
{
    uint64_t where = mix(seed, wpk_candidate_hash(candidate));
    if (where % 20 == 0) {
        return -1;
    }
    uint64_t variant = (uint64_t)candidate->variant;
    double log_time = 2.0 * unit(mix(seed, 77), variant);
    for (int g = 0; g < candidate->gene_count; g++) {
        /* Genes of one name do the same thing in every variant, nearly. */
        double weight = 0.6 * pow(unit(mix(seed, 1), (uint64_t)g), 3);
        double value = candidate->gene[g];
        if (gene_is_ordered(g)) {
            double best = 7.0 * unit(mix(seed, 2), (uint64_t)g) + unit(mix(seed, variant), 3);
            log_time += weight * fmin((value - best) * (value - best) / 4, 4);
        } else {
            log_time += 2 * weight * unit(mix(seed, (uint64_t)g), candidate->gene[g]);
        }
        if (g > 0) {
            uint64_t pair = mix(candidate->gene[g - 1] / 2, candidate->gene[g] / 2);
            log_time += 0.15 * unit(mix(seed, (uint64_t)g), pair);
        }
    }
    return exp(log_time) * (1 + 0.02 * unit(where, 9));
}

wpk_err wpk_fake_space_init(const struct wpk_fake_space_options *options, struct wpk_space *out)
{
    struct wpk_space space = {.options = {.layouts = "fixed", .threads = 1}};
    space.variant_count = options->variant_count;
    space.variants = calloc((size_t)options->variant_count, sizeof *space.variants);
    for (int v = 0; v < options->variant_count; v++) {
        struct wpk_variant *variant = &space.variants[v];
        snprintf(variant->algorithm, sizeof variant->algorithm, "algorithm%d", v);
        snprintf(variant->layout, sizeof variant->layout, "fixed");
        variant->gene_count = options->gene_count;
        variant->genes = calloc((size_t)options->gene_count, sizeof *variant->genes);
        for (int g = 0; g < options->gene_count; g++) {
            struct wpk_gene *gene = &variant->genes[g];
            snprintf(gene->name, sizeof gene->name, "gene%d", g);
            gene->ordered = gene_is_ordered(g);
            gene->choice_count = 1 + (g + v) % options->choice_count;
            gene->choice = calloc((size_t)gene->choice_count, sizeof *gene->choice);
            for (int c = 0; c < gene->choice_count; c++) {
                char text[16];
                snprintf(text, sizeof text, "%d", 1 << c);
                gene->choice[c] = (struct wpk_gene_value){1 << c, strdup(text)};
            }
        }
    }
    for (int g = 0; g < options->gene_count; g++) {
        space.size_log2 += log2(space.variants[0].genes[g].choice_count);
    }
    space.size_log2 += log2(options->variant_count);
    *out = space;
    return WPK_OK;
}

void wpk_space_fini(struct wpk_space *space)
{
    for (int v = 0; v < space->variant_count; v++) {
        for (int g = 0; g < space->variants[v].gene_count; g++) {
            struct wpk_gene *gene = &space->variants[v].genes[g];
            for (int c = 0; c < gene->choice_count; c++) {
                free(gene->choice[c].text);
            }
            free(gene->choice);
        }
        free(space->variants[v].genes);
    }
    free(space->variants);
    memset(space, 0, sizeof *space);
}

wpk_err wpk_space_derive_text(const char *op WPK_UNUSED, const char *device WPK_UNUSED,
                              const char *layouts WPK_UNUSED, int threads WPK_UNUSED,
                              struct wpk_space *out WPK_UNUSED, struct wpk_diag *diag)
{
    return wpk_fail(diag, WPK_EUNSUPPORTED, "candidates of this space have no code");
}

wpk_err wpk_code_schedule(const struct wpk_space *space WPK_UNUSED,
                          const char *candidate WPK_UNUSED, struct wpk_buf *out WPK_UNUSED,
                          struct wpk_diag *diag)
{
    return wpk_fail(diag, WPK_EUNSUPPORTED, "candidates of this space have no code");
}

wpk_err wpk_code_print(enum wpk_code form WPK_UNUSED, const char *schedule WPK_UNUSED,
                       struct wpk_buf *out WPK_UNUSED, struct wpk_diag *diag)
{
    return wpk_fail(diag, WPK_EUNSUPPORTED, "candidates of this space have no code");
}

wpk_err wpk_space_derive(const struct wpk_program *program, const struct wpk_space_options *options,
                         struct wpk_space *out, struct wpk_diag *diag)
{
    (void)program;
    (void)options;
    (void)diag;
    struct wpk_fake_space_options fake = {
        .variant_count = 4, .gene_count = 8, .choice_count = 8, .seed = 1};
    return wpk_fake_space_init(&fake, out);
}

const struct wpk_variant *wpk_space_variant(const struct wpk_space *space, int variant)
{
    return &space->variants[variant];
}

wpk_err wpk_space_variant_error(const struct wpk_space *space, int variant)
{
    (void)space;
    (void)variant;
    return WPK_ENOENT;
}

wpk_err wpk_space_pin(struct wpk_space *space, const char *name, const char *value,
                      struct wpk_diag *diag)
{
    (void)space;
    (void)value;
    return wpk_fail(diag, WPK_ENOENT, "no gene %s", name);
}

wpk_err wpk_space_pin_packing(struct wpk_space *space, const char *text, struct wpk_diag *diag)
{
    (void)space;
    return wpk_fail(diag, WPK_EUNSUPPORTED, "no candidate like %s", text);
}

/* Keep all variants: this space has no estimate of errors. */
void wpk_space_prune(struct wpk_space *space, struct wpk_accuracy accuracy)
{
    (void)space;
    (void)accuracy;
}

bool wpk_space_is_legal(const struct wpk_space *space, const struct wpk_candidate *candidate)
{
    return candidate->variant < space->variant_count &&
           candidate->gene_count == space->variants[candidate->variant].gene_count &&
           mix(5, wpk_candidate_hash(candidate)) % 16 != 0;
}

wpk_err wpk_space_construct(const struct wpk_space *space, struct wpk_candidate *out, int max,
                            int *filled)
{
    int count = 0;
    for (int round = 0; round < 3; round++) {
        for (int v = 0; v < space->variant_count && count < max; v++) {
            struct wpk_candidate candidate = {.variant = v,
                                              .gene_count = space->variants[v].gene_count};
            for (int g = 0; g < candidate.gene_count; g++) {
                int choices = space->variants[v].genes[g].choice_count;
                candidate.gene[g] = (uint8_t)((choices - 1) * (round + 1) / 4);
            }
            if (wpk_space_is_legal(space, &candidate)) {
                out[count++] = candidate;
            }
        }
    }
    *filled = count;
    return WPK_OK;
}

wpk_err wpk_space_draw(const struct wpk_space *space, struct wpk_rng *rng,
                       struct wpk_candidate *out)
{
    struct wpk_candidate candidate = {0};
    candidate.variant = (int)wpk_rng_below(rng, (uint64_t)space->variant_count);
    const struct wpk_variant *variant = &space->variants[candidate.variant];
    candidate.gene_count = variant->gene_count;
    for (int g = 0; g < variant->gene_count; g++) {
        candidate.gene[g] = (uint8_t)wpk_rng_below(rng, (uint64_t)variant->genes[g].choice_count);
    }
    wpk_err err = wpk_space_repair(space, rng, &candidate);
    if (err == WPK_OK) {
        *out = candidate;
    }
    return err;
}

wpk_err wpk_space_repair(const struct wpk_space *space, struct wpk_rng *rng,
                         struct wpk_candidate *candidate)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    for (int i = 0; i < WPK_REPAIR_TRIES_MAX; i++) {
        if (wpk_space_is_legal(space, candidate)) {
            return WPK_OK;
        }
        int g = (int)wpk_rng_below(rng, (uint64_t)variant->gene_count);
        candidate->gene[g] = (uint8_t)wpk_rng_below(rng, (uint64_t)variant->genes[g].choice_count);
    }
    return WPK_EEXHAUSTED;
}

bool wpk_candidate_equal(const struct wpk_candidate *a, const struct wpk_candidate *b)
{
    return a->variant == b->variant && a->gene_count == b->gene_count &&
           memcmp(a->gene, b->gene, (size_t)a->gene_count) == 0;
}

uint64_t wpk_space_key(const struct wpk_space *space, const struct wpk_candidate *candidate)
{
    (void)space;
    return wpk_candidate_hash(candidate);
}

uint64_t wpk_candidate_hash(const struct wpk_candidate *candidate)
{
    uint64_t hash = (uint64_t)candidate->variant;
    for (int g = 0; g < candidate->gene_count; g++) {
        hash = mix(hash, candidate->gene[g]);
    }
    return hash;
}

/* "variant:gene,gene,...": enough to tell candidates apart and to read them back. */
wpk_err wpk_candidate_encode(const struct wpk_space *space, const struct wpk_candidate *candidate,
                             char *out, size_t size)
{
    (void)space;
    int at = snprintf(out, size, "%d:", candidate->variant);
    for (int g = 0; g < candidate->gene_count; g++) {
        at += snprintf(out + at, size - (size_t)at, "%d,", candidate->gene[g]);
    }
    return WPK_OK;
}

wpk_err wpk_candidate_decode(const struct wpk_space *space, const char *text,
                             struct wpk_candidate *out, struct wpk_diag *diag)
{
    (void)diag;
    struct wpk_candidate candidate = {0};
    char *end;
    long variant = strtol(text, &end, 10);
    if (variant < 0 || variant >= space->variant_count || *end != ':') {
        return WPK_EPARSE;
    }
    candidate.variant = (int)variant;
    candidate.gene_count = space->variants[variant].gene_count;
    for (int g = 0; g < candidate.gene_count; g++) {
        candidate.gene[g] = (uint8_t)strtol(end + 1, &end, 10);
    }
    *out = candidate;
    return WPK_OK;
}

/* ---- what learning strategies read */

wpk_err wpk_space_predict(const struct wpk_space *space, const struct wpk_candidate *candidate,
                          double *out)
{
    (void)space;
    (void)candidate;
    *out = 0;
    return WPK_OK;
}

wpk_err wpk_space_features(const struct wpk_space *space, const struct wpk_candidate *candidate,
                           double *out)
{
    const struct wpk_variant *variant = &space->variants[candidate->variant];
    memset(out, 0, WPK_FEATURES * sizeof *out);
    out[1] = candidate->variant;
    for (int g = 0; g < candidate->gene_count; g++) {
        out[2 + g % (WPK_FEATURES - 2)] +=
            (double)candidate->gene[g] / variant->genes[g].choice_count;
    }
    return WPK_OK;
}

wpk_err wpk_mask_begin(const struct wpk_space *space, int variant, struct wpk_candidate *out)
{
    *out = (struct wpk_candidate){.variant = variant,
                                  .gene_count = space->variants[variant].gene_count};
    return WPK_OK;
}

int wpk_mask_gene(const struct wpk_space *space, const struct wpk_variant *variant, int step)
{
    (void)space;
    (void)variant;
    return step;
}

int wpk_mask_values(const struct wpk_space *space, const struct wpk_candidate *candidate, int step,
                    bool *allowed)
{
    int count = space->variants[candidate->variant].genes[step].choice_count;
    for (int c = 0; c < count; c++) {
        allowed[c] = true;
    }
    return count;
}

void wpk_mask_decide(const struct wpk_space *space, struct wpk_candidate *candidate, int step,
                     int choice)
{
    (void)space;
    candidate->gene[step] = (uint8_t)choice;
}

const char *wpk_space_version(const struct wpk_space *space)
{
    (void)space;
    return WPK_SPACE_VERSION;
}

const char *wpk_space_version_of(const char *device_kind)
{
    (void)device_kind;
    return WPK_SPACE_VERSION;
}
