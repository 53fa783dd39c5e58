/* SPDX-License-Identifier: Apache-2.0 */
/* The space of implementations of a program on a device, and one point of it.
 *
 * A space is derived, never written by hand. It is a list of variants: the programs equivalent to
 * the given one (algorithm x layout), each with its own list of genes. Genes of the same name mean
 * the same thing in every variant, so candidates of different variants can be crossed.
 *
 * A candidate is a variant and a value for each of its genes. Its text is self-describing, e.g.
 *     cpu-2 algorithm=direct layout=halo-last1 Y.vec=k Y.lanes=16 Y.tile.k=32 Y.inner=y,k,x ...
 * and never a bare index: it can be read back as long as the space's version is known. */
#ifndef WPK_SEARCH_SPACE_H
#define WPK_SEARCH_SPACE_H

#include "common/buf.h"
#include "common/rng.h"
#include "op/program.h"
#include "schema/device.h"
#include "schema/tensor.h"

#define WPK_SPACE_VERSION "cpu-2"
#define WPK_GENES_MAX 160
#define WPK_CHOICES_MAX 64
#define WPK_VARIANTS_MAX 32
#define WPK_GENE_NAME_MAX (2 * WPK_NAME_MAX + 16) /* GROUP.tile.AXIS, with its NUL */
#define WPK_VARIANT_NAME_MAX 64
#define WPK_GENE_ALL INT64_MAX /* the value of a size that is the whole extent */
#define WPK_CANDIDATE_TEXT_MAX 4096
#define WPK_REPAIR_TRIES_MAX 64

/* A choice is a number; its text is for people and for other spaces, in which numbers of axes and
 * groups may be others. */
struct wpk_choice {
    int64_t value; /* genes.h says of what */
    char *text;    /* owned; of any length */
};

/* One decision. Choices are ordered where order has a meaning (sizes ascend), so that a mutation
 * may step to a neighbour. */
struct wpk_gene {
    char name[WPK_GENE_NAME_MAX];
    bool ordered;
    int choice_count;
    struct wpk_choice *choice; /* owned; [choice_count] */
};

struct wpk_variant {
    char algorithm[WPK_VARIANT_NAME_MAX]; /* "direct", "im2col", "winograd(4)", … */
    char layout[WPK_VARIANT_NAME_MAX];    /* "asis", "halo-last1", "staged-last1", … */
    double error_sums;              /* expected error ÷ direct evaluation's: of sums whose terms are
                                       added one after the other; its square and that of … */
    double error_rest;              /* … all else add up */
    int boundary_last;              /* axis that is last in inputs and outputs of the output's rank,
                                       -1: they lie as written */
    struct wpk_program program;     /* derived; its boundary tensors have the layout applied */
    struct wpk_gene *genes;         /* owned; [gene_count] */
    int gene_count;
    void *plan;                     /* owned; the variant's structure: plan.h */
};

struct wpk_space_options {
    const char *layouts; /* "fixed" or "any" */
    int threads;         /* of the kernel */
    bool strict;         /* kernels round what the program says, in its order */
    struct wpk_device device;
};

struct wpk_space {
    struct wpk_space_options options; /* `layouts` points into static text */
    struct wpk_program program;       /* owned; the original */
    struct wpk_variant *variants;     /* owned; [variant_count] */
    int variant_count;
    double size_log2;                 /* of the whole space, illegal points included */
};

struct wpk_candidate {
    int variant;
    int gene_count;
    uint8_t gene[WPK_GENES_MAX]; /* [gene_count] index of the choice */
};

/* Derive the space of `program` on a device.
 *
 *   owns    caller calls wpk_space_fini
 *   errors  WPK_EINVAL, WPK_EUNSUPPORTED a program no variant can compute; WPK_ENOMEM
 */
wpk_err wpk_space_derive(const struct wpk_program *program, const struct wpk_space_options *options,
                         struct wpk_space *out, struct wpk_diag *diag);
void wpk_space_fini(struct wpk_space *space);

/* Pin a gene ("algorithm", "layout" or a gene's name) to one value: variants and choices that
 * contradict are removed.
 *   errors  WPK_ENOENT no such gene or value */
wpk_err wpk_space_pin(struct wpk_space *space, const char *name, const char *value,
                      struct wpk_diag *diag);

/* Set size_log2 anew after variants or choices were removed. */
void wpk_space_measure(struct wpk_space *space);

/* Constructed candidates: good guesses for every variant, best guesses first, interleaved so that
 * any prefix covers all variants.
 *   shape   out [max]; returns how many were filled */
int wpk_space_construct(const struct wpk_space *space, struct wpk_candidate *out, int max);

/* A legal candidate drawn uniformly over variants, then genes.
 *   errors  WPK_EEXHAUSTED no legal point found within WPK_REPAIR_TRIES_MAX */
wpk_err wpk_space_draw(const struct wpk_space *space, struct wpk_rng *rng,
                       struct wpk_candidate *out);

/* Change `candidate` as little as possible until it is legal.
 *   errors  WPK_EEXHAUSTED */
wpk_err wpk_space_repair(const struct wpk_space *space, struct wpk_rng *rng,
                         struct wpk_candidate *candidate);

/* Is it legal? The rules: registers, unrolled statements, divisibility, and where producers are
 * computed: how much of them is needed there, and how often it is computed again. None of them
 * looks at caches: block sizes are left to the measurements. */
bool wpk_space_is_legal(const struct wpk_space *space, const struct wpk_candidate *candidate);

bool wpk_candidate_equal(const struct wpk_candidate *a, const struct wpk_candidate *b);
uint64_t wpk_candidate_hash(const struct wpk_candidate *candidate);

/* Text both ways; decode(encode(c)) equals c. Decoding needs the space it was drawn from.
 *   errors  WPK_EPARSE, WPK_EMISMATCH another version, WPK_ENOENT unknown gene or value;
 *           WPK_ENOSPC on encode */
wpk_err wpk_candidate_encode(const struct wpk_space *space, const struct wpk_candidate *candidate,
                             char *out, size_t size);
wpk_err wpk_candidate_decode(const struct wpk_space *space, const char *text,
                             struct wpk_candidate *out, struct wpk_diag *diag);

#endif
