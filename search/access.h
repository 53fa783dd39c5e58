/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and operations of a program's stages, in the form in which features are computed: found
 * once for each program, because a search judges many nests of it. */
#ifndef WPK_SEARCH_ACCESS_H
#define WPK_SEARCH_ACCESS_H

#include "ir/program.h"

#define WPK_ACCESS_TERMS_MAX 4

/* An index as terms of axes. */
struct wpk_access_dim {
    int node;       /* the index, where it is no sum of terms; -1: it is */
    int term_count; /* 0: always the same element */
    int axis[WPK_ACCESS_TERMS_MAX];
    int64_t factor[WPK_ACCESS_TERMS_MAX];
    int64_t constant;
    uint32_t axes; /* that the index reads, a bit each */
    bool flat;     /* this dimension and the next are read by one collapsed axis
                    * (wpk_load_flat_dim) */
};

/* A load of a stage. */
struct wpk_access {
    int tensor;
    int next;      /* the stage's next load of the same tensor, or -1 */
    bool first;    /* it has none before */
    uint32_t axes; /* that the load's indices read, a bit each */
    struct wpk_access_dim dim[WPK_RANK_MAX];
};

struct wpk_stage_access {
    int first, count;    /* loads in wpk_accesses.access; those of literals are left out */
    double flops;        /* ir/cost.h counts them */
    double operations;   /* of them, of one evaluation */
    double instructions; /* of one evaluation: functions are as many as their expansions have, and
                               a product that is added is one */
    bool multiply_add;   /* a sum of products */
    double density; /* share of the terms that no literal and no border makes 0: those fold away */
};

/* = {0} is empty. */
struct wpk_accesses {
    struct wpk_access *access; /* owned */
    int access_count;
    struct wpk_stage_access stage[WPK_STAGES_MAX];
};

/*   owns    caller calls wpk_accesses_fini
 *   errors  WPK_ENOMEM */
wpk_err wpk_accesses_init(const struct wpk_program *program, struct wpk_accesses *out);
void wpk_accesses_fini(struct wpk_accesses *accesses);

/* The smallest and largest index of a dimension where each axis runs over [0, width).
 *   shape   width [axes] */
void wpk_access_range(const struct wpk_program *program, const struct wpk_access_dim *dim,
                      const int64_t *width, int64_t *low, int64_t *high);

/* The register tile of a definition, as its loads see it. */
struct wpk_access_tile {
    int lane_axis; /* -1: none */
    int64_t lanes;
    int64_t vectors[WPK_AXES_MAX]; /* along each axis; 1 where it has no part in the tile */
};

/* The vectors that a load reads in a tile, or single elements where the lanes are no neighbours in
 * memory: then *single is set. Equal ones are loaded once.
 *   shape   contiguous: dimension of the tensor whose elements lie side by side */
double wpk_access_count(const struct wpk_program *program, const struct wpk_access *access,
                        const struct wpk_access_tile *tile, int contiguous, bool *single);

#endif
