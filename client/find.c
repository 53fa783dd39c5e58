/* SPDX-License-Identifier: Apache-2.0 */
#include "client/find.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "common/suggest.h"
#include "schema/accuracy.h"
#include "schema/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define JOBS_SEARCHED 1000 /* the newest; a fingerprint finds what is older */

/* Fetch the kernels of an operator that history serves, newest first; none is no error. */
static wpk_err fetch_served(struct wpk_session *session, const char *fingerprint,
                            struct wpk_arena *arena, struct wpk_api_list *out,
                            struct wpk_diag *diag)
{
    char query[128];

    snprintf(query, sizeof(query), "fingerprint=%s", fingerprint);
    return wpk_list_read(session, "kernels", query, 100, arena, out, diag);
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
        return wpk_fail(diag, WPK_ENOENT,
                        "no kernel of operator %s is served; wpkctl kernels lists them", given);
    }
    if (distinct > 1) {
        return wpk_fail(diag, WPK_EINVAL, "%d operators begin with %s:%s; give more digits",
                        distinct, given, list);
    }
    return WPK_OK;
}

bool wpk_find_is_fingerprint(const char *text)
{
    size_t size = strlen(text);

    return size >= WPK_FIND_DIGITS_MIN && size <= 2 * WPK_SHA256_SIZE &&
           strspn(text, "0123456789abcdef") == size;
}

wpk_err wpk_find_file(const char *what, bool *is_file, struct wpk_diag *diag)
{
    static const char *const ends[] = {".json", ".so", ".choice"};
    size_t size = strlen(what);
    bool path = strchr(what, '/') != NULL;

    struct stat info;

    *is_file =
        strcmp(what, "-") == 0 || (stat(what, &info) == 0 && (path || !S_ISDIR(info.st_mode)));
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        path =
            path || (size > strlen(ends[i]) && strcmp(what + size - strlen(ends[i]), ends[i]) == 0);
    }
    if (*is_file || !path) {
        return WPK_OK;
    }
    return wpk_fail(diag, WPK_EINVAL, "cannot open '%s': %s%s", what, strerror(errno),
                    wpk_fs_advice(errno));
}

wpk_err wpk_find_by_fingerprint(struct wpk_session *session, const char *fingerprint,
                                struct wpk_arena *arena, struct wpk_api_kernel **out, int *count,
                                struct wpk_diag *diag)
{
    WPK_ASSERT(wpk_find_is_fingerprint(fingerprint));
    struct wpk_api_list list;
    wpk_err err = fetch_served(session, fingerprint, arena, &list, diag);
    *out = list.kernels;
    *count = list.count;
    return err == WPK_OK ? check_one(fingerprint, *out, *count, diag) : err;
}

/* ---- one of several */

/* True if the kernels differ at most in their accuracy class. */
static bool is_sibling(const struct wpk_api_kernel *kernel, const struct wpk_api_kernel *other)
{
    return kernel->threads == other->threads && strcmp(kernel->layouts, other->layouts) == 0 &&
           strcmp(kernel->device, other->device) == 0 &&
           strcmp(kernel->environment, other->environment) == 0 &&
           strcmp(kernel->conditions, other->conditions) == 0;
}

static bool is_wanted(const struct wpk_api_kernel *kernel, const struct wpk_find_wanted *wanted)
{
    return (wanted->threads == 0 || wanted->threads == kernel->threads) &&
           (wanted->layouts == NULL || strcmp(wanted->layouts, kernel->layouts) == 0) &&
           (wanted->conditions == NULL || strcmp(wanted->conditions, kernel->conditions) == 0);
}

static bool fits(const struct wpk_api_kernel *kernel, struct wpk_accuracy class)
{
    struct wpk_accuracy own;

    return wpk_accuracy_parse(kernel->accuracy, &own, NULL) == WPK_OK &&
           wpk_accuracy_serves(class, own, kernel->times_direct);
}

static bool is_pinned(const struct wpk_api_kernel *kernel, struct wpk_accuracy class)
{
    struct wpk_accuracy own;

    return kernel->pinned && wpk_accuracy_parse(kernel->accuracy, &own, NULL) == WPK_OK &&
           own.times_direct == class.times_direct;
}

static wpk_err check_wanted(const struct wpk_find_wanted *wanted, struct wpk_diag *diag)
{
    enum wpk_conditions conditions;

    if (wanted->conditions != NULL &&
        wpk_conditions_parse(wanted->conditions, &conditions) != WPK_OK) {
        return wpk_fail(diag, WPK_EINVAL,
                        "--conditions takes warm, cold-constants or cold, not '%s'",
                        wanted->conditions);
    }
    return WPK_OK;
}

wpk_err wpk_find_none(const struct wpk_api_kernel *kernel, struct wpk_diag *diag)
{
    return wpk_fail(diag, WPK_ENOENT,
                    "operator %.12s is served, but not as asked; wpkctl kernels --fingerprint "
                    "%.12s lists how, wpkctl tune makes another",
                    kernel->fingerprint, kernel->fingerprint);
}

/* The newest kernel that is as wanted but for its error; NULL: none. */
static struct wpk_api_kernel *find_wider(struct wpk_api_kernel *kernels, int count,
                                         const struct wpk_find_wanted *wanted,
                                         struct wpk_accuracy class)
{
    for (int i = 0; i < count; i++) {
        struct wpk_accuracy own;
        if (is_wanted(&kernels[i], wanted) &&
            wpk_accuracy_parse(kernels[i].accuracy, &own, NULL) == WPK_OK &&
            own.times_direct > class.times_direct) {
            kernels[i].is_too_wide = true;
            return &kernels[i];
        }
    }
    return NULL;
}

wpk_err wpk_find_best(struct wpk_api_kernel *kernels, int count,
                      const struct wpk_find_wanted *wanted, const struct wpk_api_kernel **out,
                      struct wpk_diag *diag)
{
    struct wpk_api_kernel *best = NULL;
    struct wpk_accuracy class = {0};
    bool classed = wanted->accuracy != NULL;

    WPK_ASSERT(count > 0);
    wpk_err err = check_wanted(wanted, diag);
    if (err == WPK_OK && classed) {
        err = wpk_accuracy_parse(wanted->accuracy, &class, diag);
    }
    for (int i = 0; err == WPK_OK && i < count; i++) {
        struct wpk_api_kernel *kernel = &kernels[i];
        if (best == NULL && is_wanted(kernel, wanted) && (!classed || fits(kernel, class))) {
            best = kernel;
            if (!classed) {
                err = wpk_accuracy_parse(kernel->accuracy, &class, diag);
            }
        } else if (best != NULL && is_sibling(kernel, best) && fits(kernel, class) &&
                   !is_pinned(best, class) &&
                   (is_pinned(kernel, class) ||
                    kernel->served.time.median_ns < best->served.time.median_ns)) {
            best = kernel;
        }
    }
    if (err == WPK_OK && best == NULL && classed) {
        best = find_wider(kernels, count, wanted, class);
    }
    if (err == WPK_OK && best == NULL) {
        err = wpk_find_none(&kernels[0], diag);
    } else if (err == WPK_OK) {
        wpk_accuracy_name(class, best->found_for);
        *out = best;
    }
    return err;
}

/* ---- by a name */

static wpk_err tell_revoked(const struct wpk_api_kernel *kernel, struct wpk_diag *diag)
{
    return wpk_fail(diag, WPK_ENOENT,
                    "what was found of operator %.12s was revoked; wpkctl tune it again",
                    kernel->fingerprint);
}

/* A job's answer is the best that it found; another one's, searched with other genes or another
 * seed, may be better and is what history serves. Of one that was revoked since, without an id,
 * only what is served counts. */
static wpk_err prefer_served(struct wpk_session *session, const struct wpk_find_wanted *wanted,
                             struct wpk_arena *arena, const struct wpk_api_kernel **kernel,
                             struct wpk_diag *diag)
{
    const struct wpk_api_kernel *own = *kernel;
    bool other = wanted->accuracy != NULL || wanted->conditions != NULL;
    const struct wpk_find_wanted like = {
        .layouts = own->layouts[0] != '\0' ? own->layouts : NULL,
        .threads = own->threads,
        .accuracy = wanted->accuracy != NULL ? wanted->accuracy : own->accuracy,
        .conditions = wanted->conditions != NULL ? wanted->conditions : own->conditions,
    };
    const struct wpk_api_kernel *served = NULL;
    struct wpk_api_list list;

    wpk_err err = fetch_served(session, own->fingerprint, arena, &list, diag);
    struct wpk_api_kernel *kernels = list.kernels;
    int here = 0; /* those of the same device */
    for (int i = 0; i < list.count; i++) {
        if (strcmp(kernels[i].device, own->device) == 0) {
            kernels[here] = kernels[i];
            kernels[here++].binding_json = own->binding_json; /* by the job's names */
        }
    }
    if (err == WPK_OK && here > 0) {
        err = wpk_find_best(kernels, here, &like, &served, other ? diag : NULL);
        if (err == WPK_ENOENT && !other) {
            err = WPK_OK;
        }
        served = !other && served != NULL && served->is_too_wide ? NULL : served;
    }
    if (err == WPK_OK && served != NULL) {
        *kernel = served;
    } else if (err == WPK_OK && own->id[0] == '\0') {
        err = tell_revoked(own, diag);
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

/* Find the kernel of the newest job that has an operator of this name. While that job has none, an
 * older job's kernel counts if it is of the very same operator, not only of the same name. */
static wpk_err search_jobs(struct wpk_session *session, const char *name,
                           const struct wpk_api_job *jobs, int count, struct wpk_arena *arena,
                           const struct wpk_api_kernel **out, struct wpk_diag *diag)
{
    const struct wpk_api_job *newest = NULL;
    const struct wpk_api_op *wanted = NULL;
    bool another = false;

    for (int i = 0; i < count; i++) {
        const struct wpk_api_op *op = wpk_api_job_op(&jobs[i], name);
        if (op == NULL) {
            continue;
        }
        if (newest == NULL) {
            newest = &jobs[i];
            wanted = op;
        }
        bool done = strcmp(op->phase, "done") == 0;
        bool ended = done || strcmp(op->phase, "failed") == 0; /* a vendor's may have worked */
        another = another || (done && strcmp(op->fingerprint, wanted->fingerprint) != 0);
        if (!ended || strcmp(op->fingerprint, wanted->fingerprint) != 0) {
            continue;
        }
        wpk_err err = fetch_kernel(session, jobs[i].id, name, arena, out, diag);
        if (err == WPK_OK && *out == NULL && done) {
            *out = op->asked;
        }
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
                     another ? "; older ones are of other operators: get them by fingerprint"
                             : "; wpkctl trials JOB says what it tried");
    }
    return WPK_ENOENT;
}

static wpk_err find_of_job(struct wpk_session *session, const char *name,
                           const struct wpk_find_wanted *wanted, struct wpk_arena *arena,
                           const struct wpk_api_kernel **out, struct wpk_diag *diag)
{
    if (wanted->accuracy != NULL || wanted->conditions != NULL) {
        return wpk_fail(diag, WPK_EINVAL,
                        "--job names one kernel already; leave --accuracy and --conditions out");
    }
    wpk_err err = fetch_kernel(session, wanted->job, name, arena, out, diag);
    if (err == WPK_OK && *out == NULL) {
        err = wpk_fail(diag, WPK_ENOENT,
                       "job %s has no kernel of an operator '%s'; wpkctl status %s has its "
                       "operators",
                       wanted->job, name, wanted->job);
    } else if (err == WPK_OK && (*out)->id[0] == '\0') {
        err = tell_revoked(*out, diag);
    }
    return err;
}

static wpk_err find_by_name(struct wpk_session *session, const char *name,
                            const struct wpk_find_wanted *wanted, struct wpk_arena *arena,
                            const struct wpk_api_kernel **out, struct wpk_diag *diag)
{
    struct wpk_api_list list;

    if (wanted->job != NULL) {
        return find_of_job(session, name, wanted, arena, out, diag);
    }
    wpk_err err = wpk_list_read(session, "jobs", "", JOBS_SEARCHED, arena, &list, diag);
    err = err == WPK_OK ? search_jobs(session, name, list.jobs, list.count, arena, out, diag) : err;
    return err == WPK_OK ? prefer_served(session, wanted, arena, out, diag) : err;
}

wpk_err wpk_find_kernel(struct wpk_session *session, const char *what,
                        const struct wpk_find_wanted *wanted, struct wpk_arena *arena,
                        const struct wpk_api_kernel **out, struct wpk_diag *diag)
{
    struct wpk_api_kernel *kernels;
    struct wpk_diag unknown = {0};
    int count = 0;

    if (wanted->job != NULL || !wpk_find_is_fingerprint(what)) {
        return find_by_name(session, what, wanted, arena, out, diag);
    }
    wpk_err err = wpk_find_by_fingerprint(session, what, arena, &kernels, &count, &unknown);
    if (err == WPK_OK) {
        err = wpk_find_best(kernels, count, wanted, out, diag);
    } else if (err == WPK_ENOENT && strlen(what) < 2 * WPK_SHA256_SIZE &&
               find_by_name(session, what, wanted, arena, out, NULL) == WPK_OK) {
        err = WPK_OK; /* a name of such letters alone */
    } else {
        *diag = unknown;
    }
    return err;
}
