/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a kind of device that a space depends on, and the rules by them. One file a kind.
 *
 * The numbers follow from the device class alone (schema/device.h), never from a measurement: wpkd
 * and every worker derive the same space. No other file of search/ has a number of a machine. */
#ifndef WPK_SEARCH_RULES_H
#define WPK_SEARCH_RULES_H

#include "schema/device.h"

#define WPK_CACHES 3 /* of a core or shared, the smallest first */

struct wpk_features;

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

/* A register tile of a group, counted. */
struct wpk_tile {
    bool reuses; /* a contraction whose operands are used again: register tiles pay */
    bool copies; /* nothing is used again: unrolling hides latencies only */
    int lanes;
    double covered;       /* share of the work that is no filling of tiles, in (0, 1] */
    int64_t statements;   /* vectors of the tile, unrolled */
    int64_t least;        /* statements of the smallest tile, which always has to be legal */
    int64_t accumulators; /* vectors of the contraction */
    int64_t vectors;      /* of its vector axis */
    int64_t points;       /* of the other axes */
    int64_t loads;        /* of one step of its reduction */
    int64_t unaligned;    /* of these, vectors that begin anywhere in a cache line */
    int64_t live;         /* vectors that one step loads along the vector axis */
    int64_t held;         /* vectors that several of its results read, and registers hold */
    int64_t unrolled;     /* multiply-adds in the body of the innermost reduction loop */
    double arithmetic;    /* instructions that compute */
    double moves;         /* loads and stores of vectors */
    double gathered;      /* elements of vectors that are loaded one by one */
    double scattered;     /* that are stored one by one */
    int definitions;      /* of its stages */
};

struct wpk_space_kind;

/* = {0} has no rules. A kind with a space of its own has none of the slots between `describe` and
 * `space`; else each is required. */
struct wpk_target_rules {
    const char *kind; /* of devices */
    void (*describe)(const struct wpk_device *device, struct wpk_machine *out);
    /* True if a tile may be built. Else *why, unless it is NULL, is set to the broken rule, a
     * static text. Monotone: a tile that is larger in no respect than a legal one is legal. */
    bool (*legal)(const struct wpk_machine *machine, const struct wpk_tile *tile, const char **why);
    /* How good a register tile looks; larger is better. */
    double (*construct)(const struct wpk_machine *machine, const struct wpk_tile *tile);
    /* Seconds of one call with warm caches. It ranks candidates that were not built; it is no lower
     * bound of a time. */
    double (*bound)(const struct wpk_machine *machine, const struct wpk_features *features,
                    int threads);
    /* The neutral rests of a mask (search/mask.h), best first: tiles are as small as they can be,
     * but multiples of this many elements along the axes in which stages without the vector axis
     * get lanes. Such a tile is larger and may need fewer registers. Returns the multiple that is
     * tried after `multiple`, which is 0 before the first; 0: there are no more. */
    int (*mask)(const struct wpk_machine *machine, int multiple);
    const struct wpk_space_kind *space; /* search/space_kind.h; NULL: groups and their genes */
};

struct wpk_target {
    const struct wpk_target_rules *rules;
    struct wpk_machine machine;
};

/* The rules of a kind of device, and of a device's, or NULL. */
const struct wpk_target_rules *wpk_target_rules_of(const char *kind);
const struct wpk_target_rules *wpk_target_rules_find(const struct wpk_device *device);

extern const struct wpk_target_rules wpk_target_cpu;
extern const struct wpk_target_rules wpk_target_cuda;

/* False, with the reason in *why; `why` may be NULL. */
bool wpk_illegal(const char **why, const char *reason);

#endif
