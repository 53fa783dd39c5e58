/* SPDX-License-Identifier: Apache-2.0 */
/* A kind of device: its numbers, and the table of functions that target/ defines for it.
 *
 * The numbers follow from the device class alone (schema/device.h), never from a measurement: wpkd
 * and every worker derive the same space. No other file of search/ has a number of a machine. */
#ifndef WPK_SEARCH_RULES_H
#define WPK_SEARCH_RULES_H

#include "schema/device.h"

#define WPK_CACHES 3 /* of a core or shared, the smallest first */

/* One core of a device class, in elements of 32 bits and cycles. */
struct wpk_machine {
    int lanes_max;        /* elements of the widest vector */
    int lanes_min;        /* fewer are not worth a vector */
    int registers;        /* vectors */
    int row_vectors;      /* of partial results into which the sum over a row is cut */
    int row_max;          /* elements of a row that is summed in lanes */
    int latency;          /* of a multiply-add */
    double multiply_adds; /* vectors in a cycle */
    double loads, stores; /* vectors in a cycle */
    double issued;        /* instructions in a cycle */
    double hertz;
    int64_t l1i_bytes;
    int64_t code_bytes_max;          /* of a group's tile */
    double recomputed_max;           /* a fused producer may be computed this many times over */
    int64_t cache_bytes[WPK_CACHES]; /* that one core may count on; ascending */
    double cache_bytes_per_cycle[WPK_CACHES]; /* from beyond that cache */
    int strip_vectors;       /* vectors of an operand that a tile reads for each term of a sum */
    int64_t strip_bytes_max; /* of them for all terms: longer sums may be cut into panels */
};

struct wpk_candidate;
struct wpk_nest;
struct wpk_program;
struct wpk_rng;
struct wpk_space;
struct wpk_variant;

/* The functions of a kind of device's spaces: one table a kind, each slot required. Texts, pins and
 * strategies of candidates are common.
 *   shape  candidate: each gene < its choice_count; of `features`, `bound`, `nest`: a legal one */
struct wpk_target_rules {
    const char *kind;    /* of devices */
    const char *version; /* of its candidates' texts */
    void (*describe)(const struct wpk_device *device, struct wpk_machine *out);
    /* Whether there can be a space at all.   errors  WPK_EUNSUPPORTED with the reason */
    wpk_err (*check)(const struct wpk_program *program, struct wpk_diag *diag);
    /* List the variants of space->program as wpk_variants_list() does (search/variant.h). */
    wpk_err (*list)(struct wpk_space *space, bool written);
    /* Rewrite the variant's program, whose axes are in the variant's order, and fill its genes and
     * its structure (search/genes.h), which are empty.
     *   errors  WPK_EUNSUPPORTED such a program has no candidates; WPK_ENOSPC, WPK_ENOMEM */
    wpk_err (*derive)(const struct wpk_space *space, struct wpk_variant *variant);
    /* False, with the broken rule, a static text, in *why, unless that is NULL. */
    bool (*legal)(const struct wpk_space *space, const struct wpk_candidate *candidate,
                  const char **why);
    /* These three are wpk_space_repair(), wpk_space_construct() and wpk_space_features() of
     * search/space.h; features are all 0 before. */
    wpk_err (*repair)(const struct wpk_space *space, struct wpk_rng *rng,
                      struct wpk_candidate *candidate);
    wpk_err (*construct)(const struct wpk_space *space, struct wpk_candidate *out, int max,
                         int *filled);
    wpk_err (*features)(const struct wpk_space *space, const struct wpk_candidate *candidate,
                        double *out);
    /* Seconds of one call with warm caches. It ranks candidates that were not built; it is no lower
     * bound of a time. */
    wpk_err (*bound)(const struct wpk_space *space, const struct wpk_candidate *candidate,
                     double *seconds);
    /* Fill `out` with the candidate's nest.   errors  WPK_ENOSPC a limit of nest/nest.h */
    wpk_err (*nest)(const struct wpk_space *space, const struct wpk_candidate *candidate,
                    struct wpk_nest *out);
    /* The gene that a mask decides at a step (search/mask.h). */
    int (*gene_at)(const struct wpk_variant *variant, int step);
    /* Give the genes of later steps their neutral choices, all of them where the step is -1. True
     * if the candidate is legal then, provided that it was before the step's gene was decided. */
    bool (*complete)(const struct wpk_space *space, int step, struct wpk_candidate *candidate);
};

struct wpk_target {
    const struct wpk_target_rules *rules;
    struct wpk_machine machine;
};

extern const struct wpk_target_rules wpk_target_cpu;
extern const struct wpk_target_rules wpk_target_cuda;

/* The rules of a kind of device, or NULL. */
const struct wpk_target_rules *wpk_target_rules_of(const char *kind);

/* False, with the reason in *why; `why` may be NULL. */
bool wpk_illegal(const char **why, const char *reason);

#endif
