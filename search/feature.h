/* SPDX-License-Identifier: Apache-2.0 */
/* Features of a nest: what can be counted of a candidate without lowering or building it. Bounds,
 * limits and learning searches read them.
 *
 * A body is what one iteration of the innermost loop of a definition computes: all that is unrolled
 * and in lanes. Traffic is counted where loops are: the outermost loop of which one iteration's
 * data fits a cache reads all of its data once each time it runs.
 *
 *   source  traffic by the footprints of loops: Ferrante, Sarkar & Thrash, On estimating and
 *           enhancing cache effectiveness, LCPC 1991 */
#ifndef WPK_SEARCH_FEATURE_H
#define WPK_SEARCH_FEATURE_H

#include "nest/nest.h"
#include "search/access.h"
#include "search/rules.h"

/* A definition of an entry: its pure one or its update. */
struct wpk_body {
    int entry;
    bool update;
    double runs;         /* iterations of all loops around it, in one call */
    double values;       /* vectors that one run computes */
    double lanes;        /* elements of a vector */
    double arithmetic;   /* instructions that compute, of one run */
    double loads;        /* load instructions of one run */
    double stores;       /* store instructions of one run */
    double singles;      /* loads and stores of single elements, because lanes are no neighbours */
    double accumulators; /* vectors that an update adds to; 0: no update */
    double terms;        /* that one run adds to an accumulator, one after the other */
    double copies;       /* of its code: tails get their own */
    bool multiply_add;   /* a contraction's update */
    double parallel;     /* iterations of the loops around it that run in parallel; 1: none */
    double traffic_bytes[WPK_CACHES]; /* of all runs: what a cache gets from the next one and
                                           beyond, and what it gives back */
};

/* Of one call. */
struct wpk_features {
    double flops;        /* ir/cost.h counts them; what is computed twice counts twice */
    double flops_needed; /* of the same stages, each element once */
    double recomputed;   /* flops / flops_needed: 1 where each element is computed once */
    double arithmetic, loads, stores; /* instructions */
    double loads_per_multiply_add; /* of the body with the most multiply-adds; 0: there is none */
    double accumulators;           /* of that body, in vectors */
    double footprint_bytes[WPK_CACHES]; /* of what is used again while it is in this cache: the
                                             largest iteration that fits it */
    double traffic_bytes[WPK_CACHES];   /* as in wpk_body, of all bodies */
    double bytes;                       /* of all tensors that the nest touches */
    double tails;      /* share of arithmetic that is in loops' last, partial iterations */
    double parallel;   /* share of the arithmetic that is in loops that run in parallel */
    double balance;    /* mean share of a thread's time that it works, in (0, 1] */
    double statements; /* vectors of all bodies */
    int body_count;
    struct wpk_body body[2 * WPK_NEST_ENTRIES_MAX];
};

/* Fill `out` with the features of a nest.
 *   shape   accesses: of nest->program; nest: as wpk_decisions_nest() fills it */
void wpk_features(const struct wpk_accesses *accesses, const struct wpk_nest *nest,
                  const struct wpk_machine *machine, int threads, struct wpk_features *out);

#endif
