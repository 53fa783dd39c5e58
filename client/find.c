/* SPDX-License-Identifier: Apache-2.0 */
#include "client/find.h"

#include "client/list.h"
#include "common/crypto.h"
#include "common/suggest.h"

#include <stdio.h>
#include <string.h>

#define JOBS_SEARCHED 1000 /* the newest; a fingerprint finds what is older */

/* What history serves of an operator, newest first; none is no error. */
static wpk_err fetch_served(struct wpk_session *session, const char *fingerprint,
                            struct wpk_arena *arena, struct wpk_api_kernel **kernels, int *count,
                            struct wpk_diag *diag)
{
    struct wpk_buf body = {.size_max = WPK_HTTP_REPLY_MAX};
    char query[128];

    snprintf(query, sizeof(query), "fingerprint=%s", fingerprint);
    wpk_err err = wpk_list_fetch(session, "/v1/kernels", query, "kernels", 100, &body, diag);
    if (err == WPK_OK) {
        err = wpk_api_decode_kernels(&body, arena, kernels, count, diag);
    }
    wpk_buf_fini(&body);
    return err;
}

/* The one fingerprint that the kernels have; others that begin alike make it ambiguous. */
static wpk_err check_one(const char *given, const struct wpk_api_kernel *kernels, int count,
                         struct wpk_diag *diag)
{
    char list[WPK_DIAG_TEXT_MAX / 2] = "";
    int distinct = 0;

    for (int i = 0; i < count; i++) {
        bool seen = false;
        for (int k = 0; k < i && !seen; k++) {
            seen = strcmp(kernels[k].fingerprint, kernels[i].fingerprint) == 0;
        }
        if (!seen) {
            size_t used = strlen(list);
            snprintf(list + used, sizeof(list) - used, " %.20s", kernels[i].fingerprint);
            distinct++;
        }
    }
    if (distinct == 0) {
        wpk_diag_set(diag, "no kernel of operator %s is served; wpkctl kernels lists them", given);
        return WPK_ENOENT;
    }
    if (distinct > 1) {
        wpk_diag_set(diag, "%d operators begin with %s:%s; give more digits", distinct, given,
                     list);
        return WPK_EINVAL;
    }
    return WPK_OK;
}

bool wpk_find_is_fingerprint(const char *text)
{
    size_t size = strlen(text);

    return size >= WPK_FIND_DIGITS_MIN && size <= 2 * WPK_SHA256_SIZE &&
           strspn(text, "0123456789abcdef") == size;
}

wpk_err wpk_find_by_fingerprint(struct wpk_session *session, const char *fingerprint,
                                struct wpk_arena *arena, struct wpk_api_kernel **out, int *count,
                                struct wpk_diag *diag)
{
    WPK_ASSERT(wpk_find_is_fingerprint(fingerprint));
    wpk_err err = fetch_served(session, fingerprint, arena, out, count, diag);
    return err == WPK_OK ? check_one(fingerprint, *out, *count, diag) : err;
}

/* A job's answer is the best that it found; another one's, searched with other genes or another
 * seed, may be better and is what history serves. */
static wpk_err prefer_served(struct wpk_session *session, struct wpk_arena *arena,
                             const struct wpk_api_kernel **kernel, struct wpk_diag *diag)
{
    const struct wpk_api_kernel *own = *kernel;
    struct wpk_api_kernel *kernels;
    int count = 0;

    wpk_err err = fetch_served(session, own->fingerprint, arena, &kernels, &count, diag);
    for (int i = 0; err == WPK_OK && i < count; i++) {
        if (kernels[i].threads == own->threads && strcmp(kernels[i].layouts, own->layouts) == 0 &&
            strcmp(kernels[i].device, own->device) == 0 &&
            strcmp(kernels[i].accuracy, own->accuracy) == 0) {
            kernels[i].binding = own->binding; /* the same operator, by the job's names */
            kernels[i].binding_json = own->binding_json;
            kernels[i].binding_count = own->binding_count;
            *kernel = &kernels[i];
            break;
        }
    }
    return err;
}

/* Names of operators that the jobs have, for one that none of them has. */
static void offer_ops(const struct wpk_api_job *jobs, int count, struct wpk_suggest *suggest)
{
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < jobs[i].op_count; k++) {
            wpk_suggest_offer(suggest, jobs[i].ops[k].name);
        }
    }
}

static const struct wpk_api_op *find_op(const struct wpk_api_job *job, const char *name)
{
    for (int i = 0; i < job->op_count; i++) {
        if (strcmp(job->ops[i].name, name) == 0) {
            return &job->ops[i];
        }
    }
    return NULL;
}

/* The job's kernel of the operator; it stays NULL where the job has none. */
static wpk_err fetch_kernel(struct wpk_session *session, const char *job, const char *name,
                            struct wpk_arena *arena, const struct wpk_api_kernel **out,
                            struct wpk_diag *diag)
{
    struct wpk_http_reply reply = {0};
    struct wpk_api_job whole;

    wpk_err err = wpk_session_ask_job(session, job, "", arena, &reply, &whole, diag);
    for (int i = 0; err == WPK_OK && i < whole.kernel_count; i++) {
        if (strcmp(whole.kernels[i].name, name) == 0) {
            *out = &whole.kernels[i];
        }
    }
    wpk_http_reply_fini(&reply);
    return err;
}

/* What the newest job that has an operator of this name found; while it has found nothing, what an
 * older one did of the very same operator, and of no other that is called so. */
static wpk_err search_jobs(struct wpk_session *session, const char *name,
                           const struct wpk_api_job *jobs, int count, struct wpk_arena *arena,
                           const struct wpk_api_kernel **out, struct wpk_diag *diag)
{
    const struct wpk_api_job *newest = NULL;
    const struct wpk_api_op *wanted = NULL;
    bool another = false;

    for (int i = 0; i < count; i++) {
        const struct wpk_api_op *op = find_op(&jobs[i], name);
        if (op == NULL) {
            continue;
        }
        if (newest == NULL) {
            newest = &jobs[i];
            wanted = op;
        }
        bool done = strcmp(op->phase, "done") == 0;
        another = another || (done && strcmp(op->fingerprint, wanted->fingerprint) != 0);
        if (!done || strcmp(op->fingerprint, wanted->fingerprint) != 0) {
            continue;
        }
        wpk_err err = fetch_kernel(session, jobs[i].id, name, arena, out, diag);
        if (err == WPK_OK && *out != NULL && newest != &jobs[i]) {
            fprintf(stderr, "job %s, the newest with %s, is %s: this is of job %s\n", newest->id,
                    name, newest->state, jobs[i].id);
        }
        if (err != WPK_OK || *out != NULL) {
            return err;
        }
    }
    if (newest == NULL) {
        struct wpk_suggest suggest = {.word = name};
        offer_ops(jobs, count, &suggest);
        const char *near = wpk_suggest_text(&suggest);
        wpk_diag_set(diag, "no job has an operator named '%s'%s", name,
                     near[0] != '\0' ? near : "; wpkctl jobs lists the jobs");
    } else {
        wpk_diag_set(diag, "job %s, the newest with '%s', is %s and has no kernel of it%s",
                     newest->id, name, newest->state,
                     another ? "; older ones are of other operators: get them by fingerprint" : "");
    }
    return WPK_ENOENT;
}

static wpk_err find_by_name(struct wpk_session *session, const char *name, struct wpk_arena *arena,
                            const struct wpk_api_kernel **out, struct wpk_diag *diag)
{
    struct wpk_buf body = {.size_max = WPK_HTTP_REPLY_MAX};
    struct wpk_api_job *jobs = NULL;
    int count = 0;

    wpk_err err = wpk_list_fetch(session, "/v1/jobs", "", "jobs", JOBS_SEARCHED, &body, diag);
    if (err == WPK_OK) {
        err = wpk_api_decode_jobs(&body, arena, &jobs, &count, diag);
    }
    if (err == WPK_OK) {
        err = search_jobs(session, name, jobs, count, arena, out, diag);
    }
    wpk_buf_fini(&body);
    return err == WPK_OK ? prefer_served(session, arena, out, diag) : err;
}

wpk_err wpk_find_kernel(struct wpk_session *session, const char *what, struct wpk_arena *arena,
                        const struct wpk_api_kernel **out, struct wpk_diag *diag)
{
    struct wpk_api_kernel *kernels;
    struct wpk_diag unknown = {0};
    int count = 0;

    if (!wpk_find_is_fingerprint(what)) {
        return find_by_name(session, what, arena, out, diag);
    }
    wpk_err err = wpk_find_by_fingerprint(session, what, arena, &kernels, &count, &unknown);
    if (err == WPK_OK) {
        *out = &kernels[0];
    } else if (err == WPK_ENOENT && strlen(what) < 2 * WPK_SHA256_SIZE &&
               find_by_name(session, what, arena, out, NULL) == WPK_OK) {
        err = WPK_OK; /* a name of such letters alone */
    } else {
        *diag = unknown;
    }
    return err;
}
