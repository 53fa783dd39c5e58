/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl learn: make a prior of a history's trials, which searches of other operators begin from.
 * A prior is written only if the operators that were left out say that it is better than none. */
#include "client/command.h"
#include "client/find.h"
#include "client/session.h"
#include "client/trial_list.h"
#include "common/crypto.h"
#include "common/format.h"
#include "common/fs.h"
#include "common/json.h"
#include "search/strategy/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPERATORS_MAX 64 /* the newest */
#define FOLDS 5
#define LEAST 16 /* trials of an operator */

/* The trials of one operator on one device, with one kind of layouts and number of threads. */
struct lesson {
    const char *fingerprint;
    char key[512];
    struct wpk_space space;
    struct wpk_course_trial *trial; /* [WPK_LESSON_TRIALS_MAX] */
    int count;
};

struct learner {
    struct wpk_session *session;
    struct wpk_arena arena;
    struct lesson lesson[OPERATORS_MAX];
    int count;
    double pairs, right, right_without; /* of operators that were left out */
};

/* The lesson of this kernel's operator; NULL: there is no room, or its space cannot be derived. */
static struct lesson *find_lesson(struct learner *learner, const struct wpk_api_kernel *kernel)
{
    char key[sizeof(learner->lesson[0].key)];
    snprintf(key, sizeof(key), "%s %s %s %d", kernel->fingerprint, kernel->device, kernel->layouts,
             kernel->threads);
    for (int i = 0; i < learner->count; i++) {
        if (strcmp(learner->lesson[i].key, key) == 0) {
            return &learner->lesson[i];
        }
    }
    if (learner->count == OPERATORS_MAX) {
        return NULL;
    }
    struct lesson *lesson = &learner->lesson[learner->count];
    lesson->trial = calloc(WPK_LESSON_TRIALS_MAX, sizeof(*lesson->trial));
    if (lesson->trial == NULL ||
        wpk_space_derive_text(kernel->op, kernel->device, kernel->layouts, kernel->threads,
                              &lesson->space, NULL) != WPK_OK) {
        free(lesson->trial);
        return NULL;
    }
    lesson->fingerprint = kernel->fingerprint;
    memcpy(lesson->key, key, sizeof(key));
    learner->count++;
    return lesson;
}

static void add_trial(struct lesson *lesson, const struct wpk_api_trial *listed)
{
    struct wpk_course_trial one = {
        .tell = {.ok = wpk_trial_is_timed(listed), .relative = listed->ratio}};
    bool failed = strcmp(listed->outcome, "ok") != 0 && strcmp(listed->outcome, "pending") != 0 &&
                  strcmp(listed->outcome, "abandoned") != 0;
    if (listed->index < 0 || lesson->count == WPK_LESSON_TRIALS_MAX ||
        !(failed || (one.tell.ok && listed->ratio > 0)) ||
        wpk_candidate_decode(&lesson->space, listed->candidate, &one.candidate, NULL) != WPK_OK) {
        return;
    }
    one.time = one.tell.ok ? wpk_real_log(listed->ratio) : 0;
    for (int i = 0; i < lesson->count; i++) {
        if (wpk_candidate_equal(&lesson->trial[i].candidate, &one.candidate)) {
            return;
        }
    }
    lesson->trial[lesson->count++] = one;
}

/* Operators of which nothing was found, or that cannot be read, teach nothing. */
static wpk_err read_job(struct learner *learner, const struct wpk_api_job *job,
                        struct wpk_diag *diag)
{
    const struct wpk_find_wanted wanted = {.job = job->id};
    wpk_err err = WPK_OK;
    for (int i = 0; i < job->op_count && err == WPK_OK; i++) {
        const struct wpk_api_kernel *kernel = NULL;
        struct wpk_trial_list list = {0};
        struct wpk_diag none = {0};
        if (wpk_find_kernel(learner->session, job->ops[i].name, &wanted, &learner->arena, &kernel,
                            &none) != WPK_OK) {
            continue;
        }
        struct lesson *lesson = find_lesson(learner, kernel);
        if (lesson != NULL) {
            err = wpk_trial_list_fetch(learner->session, job->id, job->ops[i].name, &learner->arena,
                                       &list, diag);
        }
        for (int t = 0; t < list.count; t++) {
            add_trial(lesson, &list.trial[t]);
        }
    }
    return err;
}

static wpk_err read_history(struct learner *learner, struct wpk_diag *diag)
{
    struct wpk_api_list list;

    wpk_err err =
        wpk_list_read(learner->session, "jobs", "", WPK_API_LIST_MAX, &learner->arena, &list, diag);
    for (int i = 0; i < list.count && err == WPK_OK; i++) {
        err = read_job(learner, &list.jobs[i], diag);
    }
    return err;
}

/* The fold of an operator: trials of one operator are never in two. */
static int fold_of(const struct learner *learner, int lesson)
{
    int number = 0;
    for (int i = 0; i < lesson; i++) {
        int first = 0;
        while (strcmp(learner->lesson[first].fingerprint, learner->lesson[i].fingerprint) != 0) {
            first++;
        }
        if (strcmp(learner->lesson[i].fingerprint, learner->lesson[lesson].fingerprint) == 0) {
            return fold_of(learner, i);
        }
        number += first == i;
    }
    return number % FOLDS;
}

/* List the lessons of which enough is known; of fold `fold` none, or only these.
 *   shape   out [OPERATORS_MAX]; fold -1: all */
static int list_lessons(const struct learner *learner, int fold, bool only, struct wpk_lesson *out)
{
    int count = 0;
    for (int i = 0; i < learner->count; i++) {
        const struct lesson *one = &learner->lesson[i];
        if (one->count >= LEAST && (fold < 0 || (fold_of(learner, i) == fold) == only)) {
            out[count++] = (struct wpk_lesson){&one->space, one->trial, one->count};
        }
    }
    return count;
}

/* Judge trees by operators that they were not fitted to, each left out once. */
static wpk_err judge(struct learner *learner)
{
    struct wpk_lesson known[OPERATORS_MAX], left_out[OPERATORS_MAX];
    static struct wpk_trees trees;
    wpk_err err = WPK_OK;
    for (int fold = 0; fold < FOLDS && err == WPK_OK; fold++) {
        int count = list_lessons(learner, fold, false, known);
        int judged = list_lessons(learner, fold, true, left_out);
        double same = 0;
        if (count > 0 && judged > 0) {
            err = wpk_cost_model_teach(known, count, &trees);
        }
        for (int i = 0; i < judged && count > 0 && err == WPK_OK; i++) {
            wpk_prior_judge(&trees, &left_out[i], &learner->pairs, &learner->right);
            wpk_prior_judge(NULL, &left_out[i], &same, &learner->right_without);
        }
    }
    return err;
}

static wpk_err report(const struct learner *learner, const char *path, const char *sha256,
                      int operators, int trials, bool json)
{
    double share = learner->right / learner->pairs;
    double without = learner->right_without / learner->pairs;
    if (!json) {
        printf(
            "%s: of %d trials of %d operators. Of the pairs of trials of operators that were left "
            "out it\nranks %.1f %% right, without a trial of theirs; the device's rules alone "
            "%.1f %%.\n",
            path, trials, operators, 100 * share, 100 * without);
        return WPK_OK;
    }
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "file", path);
    wpk_json_put_text(w, "sha256", sha256);
    wpk_json_put_int(w, "operators", operators);
    wpk_json_put_int(w, "trials", trials);
    wpk_json_put_real(w, "ranked_right", share);
    wpk_json_put_real(w, "ranked_right_without", without);
    return wpk_json_puts(w, false);
}

/* Refuse a prior that would be of no use. */
static wpk_err check(const struct learner *learner, bool force, struct wpk_diag *diag)
{
    if (!(learner->pairs > 0)) {
        return wpk_fail(diag, WPK_ENOENT,
                        "a prior needs two operators with %d trials each that differ in time; "
                        "the history has fewer",
                        LEAST);
    }
    if (learner->right <= learner->right_without && !force) {
        return wpk_fail(
            diag, WPK_EMISMATCH,
            "no better than none: of operators that were left out it ranks %.1f %% of "
            "the pairs right, the device's rules alone %.1f %%; tune more operators, or "
            "write it with --force",
            100 * learner->right / learner->pairs, 100 * learner->right_without / learner->pairs);
    }
    return WPK_OK;
}

static wpk_err learn(struct learner *learner, const char *path, bool force, bool json,
                     struct wpk_diag *diag)
{
    static struct wpk_prior prior;
    struct wpk_lesson lessons[OPERATORS_MAX];
    struct wpk_buf text = {0};
    char sha256[WPK_SHA256_HEX_SIZE];
    int trials = 0, count = list_lessons(learner, -1, true, lessons);
    wpk_err err = judge(learner);
    err = err == WPK_OK ? check(learner, force, diag) : err;
    err = err == WPK_OK ? wpk_prior_teach(lessons, count, &prior) : err;
    err = err == WPK_OK ? wpk_prior_encode(&prior, &text) : err;
    err = err == WPK_OK ? wpk_fs_write(path, text.data, text.size, 0666, diag) : err;
    if (err == WPK_OK) {
        for (int i = 0; i < count; i++) {
            trials += lessons[i].count;
        }
        wpk_crypto_sha256_hex(text.data, text.size, sha256);
        err = report(learner, path, sha256, count, trials, json);
    }
    wpk_buf_fini(&text);
    return err;
}

enum wpk_exit wpk_command_learn(struct wpk_invocation *call)
{
    struct wpk_session_options given = {.need = WPK_SESSION_HISTORY};
    static struct learner learner;
    const char *path = "prior";
    bool json = false, force = false;
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(given),
        WPK_ARGS_OUTPUT("where the prior goes; default prior", &path),
        WPK_ARGS_FLAG("force", "although it is no better than none", &force),
        WPK_ARGS_FLAG("json", "for programs", &json),
        WPK_ARGS_END,
    };
    struct wpk_session session = {0};

    if (!wpk_command_begin(call, options, 0, 0)) {
        return call->status;
    }
    wpk_err err = wpk_session_open(call->context, &given, &session, &call->diag);
    learner.session = &session;
    err = err == WPK_OK ? read_history(&learner, &call->diag) : err;
    err = err == WPK_OK ? learn(&learner, path, force, json, &call->diag) : err;
    for (int i = 0; i < learner.count; i++) {
        wpk_space_fini(&learner.lesson[i].space);
        free(learner.lesson[i].trial);
    }
    wpk_arena_fini(&learner.arena);
    wpk_session_close(&session);
    return wpk_command_end(call, err);
}
