/* SPDX-License-Identifier: Apache-2.0 */
#include "client/tune_merge.h"

#include "client/follow.h"
#include "client/format.h"
#include "client/job_space.h"
#include "common/caches.h"
#include "schema/message.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CACHE 1 /* its level: what stays there is read for nothing */
#define SITES_MAX 64  /* that are looked at */
#define SHARE_MIN 0.03
#define KEPT_MAX 0.95 /* of the time apart: times of separate runs differ by some percent */
#define CANDIDATES_MAX 3
#define NOTE_SIZE 240

struct merging {
    struct wpk_tune_model *model;
    const struct wpk_tune_rounds_options *options;
    const struct wpk_job_overrides *overrides;
    struct wpk_session *session;
    struct wpk_tune_rounds *rounds;
    struct wpk_tune_merges *out;
};

void wpk_tune_merges_fini(struct wpk_tune_merges *merges)
{
    for (int i = 0; i < merges->count; i++) {
        wpk_http_reply_fini(&merges->list[i].round.reply);
        wpk_arena_fini(&merges->list[i].round.arena);
    }
    merges->count = 0;
}

static struct wpk_graph *graph_of(const struct merging *m)
{
    return &m->model->shapes[0].graph;
}

static struct wpk_graph_regions *regions_of(const struct merging *m)
{
    return &m->model->shapes[0].regions;
}

/* ---- which sites */

/* Time of the best kernel that the plan may have. */
static double time_of(const struct wpk_api_kernel *kernel)
{
    const struct wpk_api_contender *ours =
        kernel->own.provider != NULL ? &kernel->own : &kernel->served;

    return (double)ours->time.median_ns;
}

/* In a model of one shape a region has the kernel of its number. */
static double region_ns(const struct merging *m, int region)
{
    return time_of(&m->rounds->kernels[region]);
}

/* Bytes that a value between steps needs to be worth it: a share of the model's time, at the rate
 * of the device's memory. INFINITY: the rate is unknown. */
static double bytes_min(const struct merging *m)
{
    double model_ns = 0;
    double bytes_per_s = 0;

    for (int r = 0; r < regions_of(m)->count; r++) {
        model_ns += (double)regions_of(m)->list[r].count * region_ns(m, r);
        bytes_per_s = m->rounds->kernels[r].peak_bytes_per_s;
    }
    return bytes_per_s > 0 ? SHARE_MIN * model_ns * 1e-9 * bytes_per_s : INFINITY;
}

/* A group can become part of one other. */
static bool is_apart(const struct wpk_tune_merges *merges, const struct wpk_graph_site *site)
{
    for (int i = 0; i < merges->count; i++) {
        const struct wpk_graph_site *other = &merges->list[i].site;
        if (other->second == site->first || other->first == site->second) {
            return false;
        }
    }
    return true;
}

static wpk_err choose(struct merging *m)
{
    struct wpk_graph_site sites[SITES_MAX];
    double least = bytes_min(m);
    double cache = 2.0 * (double)wpk_caches_size(0, FIRST_CACHE);
    int count = 0;

    wpk_err err = wpk_graph_sites_find(graph_of(m), regions_of(m), SITES_MAX, sites, &count);
    for (int i = 0; i < count && m->out->count < WPK_TUNE_MERGES_MAX; i++) {
        bool is_large = sites[i].bytes >= least && sites[i].bytes > cache * (double)sites[i].count;
        if (is_large && is_apart(m->out, &sites[i])) {
            m->out->list[m->out->count++] = (struct wpk_tune_merge){
                .site = sites[i],
                .apart_ns = region_ns(m, sites[i].first) + region_ns(m, sites[i].second)};
        }
    }
    return err;
}

/* ---- one site */

/* Take the kernel of the merged steps, and judge it. */
static void judge(struct wpk_tune_merge *merge)
{
    const struct wpk_api_job *job = &merge->round.job;

    for (int i = 0; job->state != NULL && i < job->kernel_count; i++) {
        const struct wpk_api_kernel *kernel = &job->kernels[i];
        if (kernel->own.provider != NULL && strcmp(kernel->own.provider, WPK_PLAIN_PROVIDER) != 0) {
            merge->merged_ns = time_of(kernel);
        }
    }
    if (merge->merged_ns == 0 && merge->why.text[0] == '\0') {
        wpk_diag_set(&merge->why, "no candidate works");
    }
    merge->is_kept = merge->merged_ns > 0 && merge->merged_ns < KEPT_MAX * merge->apart_ns;
}

static wpk_err follow(struct merging *m, struct wpk_tune_merge *merge, struct wpk_job *job,
                      struct wpk_diag *diag)
{
    const struct wpk_follow_options options = {.cancel = true, .quiet = m->options->quiet};

    job->candidates = job->candidates < CANDIDATES_MAX ? job->candidates : CANDIDATES_MAX;
    return wpk_follow_submit(m->session, job, &options, &merge->round.arena, &merge->round.reply,
                             &merge->round.job, diag);
}

/* A merged region that the compiler of operators cannot express is no failure. */
static wpk_err try_one(struct merging *m, struct wpk_tune_merge *merge, struct wpk_diag *diag)
{
    struct wpk_job job = {.op_count = 0};

    wpk_err err = wpk_graph_site_region(graph_of(m), regions_of(m), &merge->site, &merge->region,
                                        &merge->why);
    if (err == WPK_OK) {
        err = wpk_tune_model_region_job(m->model, &merge->region, m->overrides, &job, &merge->why);
    }
    if (err == WPK_OK) {
        memcpy(job.kind, m->options->job->kind, sizeof(job.kind));
        err = wpk_job_space_check(&job, &merge->why);
    }
    bool is_refused = err != WPK_OK;
    if (!is_refused) {
        err = follow(m, merge, &job, diag);
    }
    wpk_job_fini(&job);
    judge(merge);
    return is_refused && err != WPK_ENOMEM ? WPK_OK : err;
}

/* ---- what is kept */

static wpk_err keep(struct merging *m, struct wpk_tune_merge *merge, struct wpk_diag *diag)
{
    struct wpk_api_job *found = &m->rounds->found;
    int joined = 0;

    wpk_err err = wpk_graph_site_join(graph_of(m), &merge->site, &merge->region, regions_of(m),
                                      &joined, diag);
    merge->is_kept = joined > 0;
    for (int i = 0; i < merge->round.job.kernel_count && merge->is_kept; i++) {
        found->kernels[found->kernel_count++] = merge->round.job.kernels[i];
    }
    return err;
}

/* The node after which a region is named in a message: the first that has a name. */
static const char *node_name(const struct merging *m, int region)
{
    const struct wpk_graph_region *r = &regions_of(m)->list[region];

    for (int i = 0; i < r->node_count; i++) {
        const char *name = graph_of(m)->nodes[r->nodes[i]].name;
        if (name[0] != '\0') {
            return name;
        }
    }
    return r->name;
}

static void describe(const struct merging *m, const struct wpk_tune_merge *merge, char *out,
                     size_t size)
{
    const char *second = node_name(m, merge->site.second);
    char merged[WPK_FORMAT_SIZE], apart[WPK_FORMAT_SIZE];

    wpk_format_ns((uint64_t)merge->merged_ns, merged);
    wpk_format_ns((uint64_t)merge->apart_ns, apart);
    if (merge->merged_ns > 0) {
        snprintf(out, size, "%s kernel with %.60s: %s, apart %s",
                 merge->is_kept ? "one" : "not one", second, merged, apart);
    } else {
        snprintf(out, size, "not one kernel with %.60s: %.120s", second, merge->why.text);
    }
}

static wpk_err tell(struct merging *m, const struct wpk_tune_merge *merge)
{
    struct wpk_graph *graph = graph_of(m);
    const char *first = node_name(m, merge->site.first);
    char text[NOTE_SIZE];

    describe(m, merge, text, sizeof(text));
    if (!m->options->quiet) {
        fprintf(stderr, "%s: %s\n", first, text);
    }
    char *why = wpk_arena_copy_text(&graph->arena, text);
    return why == NULL ? WPK_ENOMEM : wpk_graph_add_note(graph, first, why);
}

wpk_err wpk_tune_merges_try(struct wpk_tune_model *model,
                            const struct wpk_tune_rounds_options *options,
                            const struct wpk_job_overrides *overrides, struct wpk_session *session,
                            struct wpk_tune_rounds *rounds, struct wpk_tune_merges *out,
                            struct wpk_diag *diag)
{
    struct merging m = {.model = model,
                        .options = options,
                        .overrides = overrides,
                        .session = session,
                        .rounds = rounds,
                        .out = out};
    bool any = false;
    wpk_err err = choose(&m);

    for (int i = 0; err == WPK_OK && i < out->count && !wpk_follow_interrupted(); i++) {
        err = try_one(&m, &out->list[i], diag);
    }
    for (int i = 0; err == WPK_OK && i < out->count && !wpk_follow_interrupted(); i++) {
        if (out->list[i].is_kept) {
            err = keep(&m, &out->list[i], diag);
            any = true;
        }
        err = err == WPK_OK ? tell(&m, &out->list[i]) : err;
    }
    return err == WPK_OK && any ? wpk_tune_model_renumber(model) : err;
}
