/* SPDX-License-Identifier: Apache-2.0 */
/* The pages that show data: each function appends a whole page, and borrows its arguments. They are
 * made of answers of the API and of sums that the store keeps; api/api_pages.c collects these.
 *
 *      struct of an answer ──▶ page_NAME.c ──▶ page (common/page.h) ──▶ page cache ──▶ viewers */
#ifndef WPK_COORDINATOR_PAGES_PAGES_H
#define WPK_COORDINATOR_PAGES_PAGES_H

#include "common/page.h"
#include "coordinator/store/history_curve.h"
#include "schema/answer.h"
#include "search/worth.h"

extern const unsigned char wpk_page_script[]; /* the text of script.js */
extern const size_t wpk_page_script_size;

/* The list of jobs, with the first of `next`, the token of the next page; "": the last page. */
void wpk_page_jobs(struct wpk_buf *out, const struct wpk_api_job *jobs, int count,
                   const char *state, const char *next);

/* The kernel of a job's operator; NULL: none yet. */
const struct wpk_api_kernel *wpk_page_find_kernel(const struct wpk_api_job *job, const char *name);
/* The mean of the operators' speedups over their vendors, geometric; 0: none has both times. */
double wpk_page_speedup(const struct wpk_api_job *job);

#define WPK_PAGE_OUTCOMES_MAX 16

/* The sums of an operator's search. */
struct wpk_page_curve {
    struct wpk_arena arena;                               /* has the texts */
    struct wpk_curve_point points[WPK_CURVE_BUCKETS_MAX]; /* [point_count], with a time */
    int point_count;
    /* [rival_count]: the improvements of other strategies' last searches of the same problem */
    struct wpk_curve_point rivals[WPK_CURVE_BUCKETS_MAX];
    int rival_count;
    struct wpk_curve_outcome outcomes[WPK_PAGE_OUTCOMES_MAX]; /* [outcome_count]; a log's first
                                                               * line */
    int outcome_count;
    uint64_t ask_count;     /* of the search */
    struct wpk_worth worth; /* of some of them, evenly spaced, and of the points */
};

struct wpk_page_job_view {
    const struct wpk_api_job *job;
    int op;                             /* the operator that is shown in full */
    const struct wpk_page_curve *curve; /* of that */
    const char *outcome;                /* of the trials that are listed; "": all */
    const char *by;                     /* what the chart's marks tell: "algorithm", "source",
                                         * "strategy" */
    bool by_seconds;                    /* the chart's axis; else by asks */
    const struct wpk_api_trial *trials; /* [trial_count] of them; NULL: none are shown */
    int trial_count;
    const char *next; /* the token of the next page of trials; "": the last */
    bool is_report;
};

void wpk_page_job(struct wpk_buf *out, const struct wpk_page_job_view *view);
/* A job that was pruned.   shape  problem: the answer 410 of GET /v1/jobs/{id} */
void wpk_page_gone_job(struct wpk_buf *out, const struct wpk_buf *problem);
/* The parts of a job's page that are about one operator. */
void wpk_page_curve(struct wpk_buf *out, const struct wpk_page_job_view *view);
void wpk_page_worth(struct wpk_buf *out, const struct wpk_page_curve *curve);
void wpk_page_trials(struct wpk_buf *out, const struct wpk_page_job_view *view);
/* Append the URL of the page with this operator. */
void wpk_page_op_link(struct wpk_buf *out, const struct wpk_page_job_view *view);

/* Two trials of an operator side by side: their genes, schedules and code.
 *   shape   kernel: of the operator, which says what it computes and where; NULL: none yet */
void wpk_page_trial_pair(struct wpk_buf *out, const char *job, const char *op,
                         const struct wpk_api_kernel *kernel, const struct wpk_api_trial *left,
                         const struct wpk_api_trial *right);
/* A table of genes: of the first candidate, then those that the second one has alone. */
void wpk_page_gene_pair(struct wpk_buf *out, const char *id, const char *left, const char *right);

void wpk_page_kernels(struct wpk_buf *out, const struct wpk_api_kernel *kernels, int count,
                      const char *next);
/* A kernel, and those of the same operator before it.
 *   shape   kernels [count]; match: what a lookup finds now of what it computes */
void wpk_page_kernel(struct wpk_buf *out, const struct wpk_api_kernel *kernels, int count,
                     const char *match);
/* The part of a page that is about one kernel; `number`: which one of the page. */
void wpk_page_kernel_terms(struct wpk_buf *out, const struct wpk_api_kernel *kernel, int number);
/* A schedule and its code, each to be unfolded; nothing for "".
 *   shape   id: unique in the page; what: a name for the titles */
void wpk_page_code(struct wpk_buf *out, const char *id, const char *what, const char *schedule);

/* Operators that were looked up in vain: the answer of GET /v1/misses.
 *   errors  those of reading the answer */
wpk_err wpk_page_misses(struct wpk_buf *out, const struct wpk_buf *misses, const char *next);

/* Two jobs side by side, by the names of their operators. */
void wpk_page_compare(struct wpk_buf *out, const struct wpk_api_job *left,
                      const struct wpk_api_job *right);

struct wpk_coordinator;
/* The fleet, the queue, shares and health.   thread  the loop's */
void wpk_page_fleet(struct wpk_buf *out, const struct wpk_coordinator *coordinator,
                    uint64_t now_ns);

#endif
