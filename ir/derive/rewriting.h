/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of rewritings: other ways to compute one stage of a program. A site is a stage that
 * has several. Which rewritings apply, and with which parameters, is read off the stage's loads; no
 * operator is named. docs/hacking.md walks through adding one. */
#ifndef WPK_IR_DERIVE_REWRITING_H
#define WPK_IR_DERIVE_REWRITING_H

#include "ir/derive/derive.h"

#define WPK_SITES_MAX 8
#define WPK_SITE_CHOICES_MAX 24
#define WPK_SITE_TEXT_MAX 48
#define WPK_BORDER_EXTENT_MAX 16 /* longer axes are not unrolled to save their border */

struct wpk_rewriting;

/* One way to compute a site's stage. */
struct wpk_site_choice {
    const struct wpk_rewriting *rewriting; /* NULL: the stage stays as it is */
    int64_t parameter[WPK_WINOGRAD_PAIRS_MAX];
    char text[WPK_SITE_TEXT_MAX]; /* "direct", "winograd(4,2)", ... */
    bool late;                    /* it is applied last, when borders and copies are there */
    bool written;                 /* it is worth a trial with the axes as they are written */
    bool bare;                    /* what the stage reads gets no border along the first dimension
                                       that its loads leave */
    int tensors;                  /* that it adds, at most */
    double operations;            /* expected; 1: as many as direct evaluation */
    double error_sums;            /* expected error of sums whose terms are added one after the
                                       other; 1: the error of direct evaluation */
    double error_rest;            /* expected error of all else, in the same unit */
    double error_least;           /* with the most accurate sums, a lower bound of both together */
};

/* A reduction is split when there are too few outputs for threads × tile. */
struct wpk_parallelism {
    int threads;
    int64_t tile;    /* results of a product that one thread computes together, in registers */
    double work_min; /* multiply-adds of a part that are worth a thread's start */
};

struct wpk_site {
    char name[WPK_NAME_MAX]; /* of the tensor that the stage writes */
    double work;             /* multiply-adds of direct evaluation */
    struct wpk_parallelism parallelism;
    struct wpk_site_choice choice[WPK_SITE_CHOICES_MAX]; /* [choice_count], >= 2; 0 is "direct" */
    int choice_count;
};

struct wpk_sites {
    struct wpk_site site[WPK_SITES_MAX]; /* [count] in the order of the stages */
    int count;
};

/* Find the sites of a program, those with the most work if there are more than WPK_SITES_MAX. A
 * choice may still not apply where others were applied before, or outgrow a limit.
 *   errors  WPK_ENOMEM */
wpk_err wpk_sites_find(const struct wpk_program *program, const struct wpk_parallelism *parallelism,
                       struct wpk_sites *out);

/* Rewrite the site's stage, which is found by its name: other sites may have been rewritten, and
 * axes permuted, since the sites were found.
 *   errors  those of derive.h */
wpk_err wpk_site_apply(struct wpk_program *program, const struct wpk_site *site, int choice);

/* The first dimension in which a load of the stage leaves the input `tensor`, or -1. */
int wpk_site_bare_dim(const struct wpk_program *program, int stage, int tensor);

#endif
