/* SPDX-License-Identifier: Apache-2.0 */
/* Pages: a page asks handlers of the API for their answers, on its own thread, and shows them.
 *
 *      request ──▶ page cache ──▶ handlers of the API, sums of the store ──▶ pages/ ──▶ page cache
 *
 * A page whose handler needs the loop is rendered on the loop. */
#include "coordinator/api/api_call.h"
#include "coordinator/api/api_front.h"
#include "coordinator/api/page_cache.h"
#include "coordinator/pages/pages.h"
#include "coordinator/store/history_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HTML "text/html; charset=utf-8"
#define ROWS "50" /* of a list */
#define LOG_LINE_MAX 240
#define WORTH_ASKS_MAX 2000 /* that a page looks at for the worth of genes */

/* ---- answers */

enum wpk_http_entry wpk_api_entry(const char *method, const char *path)
{
    static const char *const open[] = {"/", "/ui", "/ui/sign-in", "/ui/style.css", "/ui/script.js"};
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
        if (strcmp(path, open[i]) == 0) {
            return WPK_HTTP_ENTRY_OPEN;
        }
    }
    bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    return reads && wpk_begins(path, "/ui/") ? WPK_HTTP_ENTRY_COOKIE : WPK_HTTP_ENTRY_TOKEN;
}

static void finish(struct wpk_call *call, int status)
{
    wpk_err err = wpk_buf_status(&call->answer->body);
    call->answer->status = status;
    call->answer->content_type = HTML;
    call->answer->policy = wpk_page_policy;
    if (err != WPK_OK) {
        wpk_api_problem(call->answer, wpk_api_status(err), err, NULL);
    }
}

/* Show what a handler answered instead of data, or text of our own. */
static void show_problem(struct wpk_call *call, int status, const char *text)
{
    wpk_buf_reset(&call->answer->body);
    wpk_page_problem(&call->answer->body, status, text);
    finish(call, status);
}

static void redirect(struct wpk_call *call, const char *location)
{
    snprintf(call->answer->location, sizeof call->answer->location, "%s", location);
    show_problem(call, 303, location);
}

/* The cache: the front's, or on the loop that of the front which queued the request. */
static struct wpk_page_cache *cache_of(const struct wpk_call *call)
{
    return call->api->front != NULL ? wpk_api_front_pages(call->api->front)
                                    : call->request->prepared;
}

/* Leave the page to the loop, with the cache. */
static bool queue(struct wpk_call *call)
{
    struct wpk_page_cache *cache = cache_of(call);
    if (!wpk_call_queue(call)) {
        return false;
    }
    wpk_buf_reset(&call->answer->body);
    call->answer->owner = cache;
    return true;
}

static bool is_cached(struct wpk_call *call)
{
    struct wpk_page_cache *cache = cache_of(call);
    return cache != NULL &&
           wpk_page_cache_get(cache, call->request, call->api->now_ns, call->answer);
}

static void finish_data(struct wpk_call *call)
{
    struct wpk_page_cache *cache = cache_of(call);
    finish(call, 200);
    if (cache != NULL && call->answer->status == 200) {
        wpk_page_cache_put(cache, call->request, call->api->now_ns, call->answer);
    }
}

/* ---- asking handlers */

/* Get an answer of the API; false after the page was answered, or left to the loop. */
static bool ask(struct wpk_call *call, void (*serve)(struct wpk_call *), const char *name,
                const struct wpk_http_parameter *query, uint32_t query_count,
                struct wpk_api_answer *answer)
{
    struct wpk_http_request request = *call->request;
    struct wpk_call inner = {.api = call->api, .request = &request, .answer = answer, .verb = ""};
    struct wpk_diag diag = {0};
    memset(answer, 0, sizeof *answer);
    request.if_none_match = "";
    request.query_count = query_count;
    for (uint32_t i = 0; i < query_count; i++) {
        request.query[i] = query[i];
    }
    snprintf(inner.name, sizeof inner.name, "%s", name);
    serve(&inner);
    if (answer->how == WPK_API_QUEUE) {
        wpk_api_answer_fini(answer);
        queue(call);
        return false;
    }
    wpk_err err = wpk_api_check(answer->status, &answer->body, &diag);
    if (answer->status == 410) {
        wpk_page_gone_job(&call->answer->body, &answer->body);
        finish(call, 410);
    } else if (err != WPK_OK) {
        show_problem(call, answer->status, diag.text);
    }
    if (err != WPK_OK) {
        wpk_api_answer_fini(answer);
    }
    return err == WPK_OK;
}

/* After a failure to read our own answer. */
static bool check(struct wpk_call *call, wpk_err err)
{
    if (err != WPK_OK) {
        show_problem(call, 500, wpk_err_text(err));
    }
    return err == WPK_OK;
}

static bool ask_job(struct wpk_call *call, const char *id, struct wpk_arena *arena,
                    struct wpk_api_job *out)
{
    struct wpk_api_answer answer;
    if (id[0] == '\0' || strlen(id) >= WPK_JOB_ID_SIZE) {
        show_problem(call, 404, "there is no such job; the list of jobs has their ids");
        return false;
    }
    if (!ask(call, wpk_api_get_job, id, NULL, 0, &answer)) {
        return false;
    }
    bool ok = check(call, wpk_api_decode_job(&answer.body, arena, out, NULL));
    wpk_api_answer_fini(&answer);
    return ok;
}

/* The member next_page_token of a list.   shape  out [size] */
static void read_token(const struct wpk_buf *body, char *out, size_t size)
{
    struct wpk_json_reader *r = NULL;
    out[0] = '\0';
    if (wpk_json_open(wpk_buf_text(body), body->size, WPK_BUF_SIZE_MAX_DEFAULT, &r, NULL) ==
        WPK_OK) {
        wpk_json_get_copy(r, "next_page_token", out, size);
    }
    wpk_json_close(r);
}

/* ---- jobs */

void wpk_api_page_jobs(struct wpk_call *call)
{
    struct wpk_api_answer answer;
    struct wpk_arena arena = {0};
    struct wpk_api_list list;
    char next[32];
    const char *state = wpk_call_get(call, "state");
    const struct wpk_http_parameter query[] = {
        {"page_size", ROWS}, {"page_token", wpk_call_get(call, "page_token")}, {"state", state}};
    if (is_cached(call) ||
        !ask(call, wpk_api_list_jobs, "", query, state[0] != '\0' ? 3 : 2, &answer)) {
        return;
    }
    if (check(call, wpk_api_decode_list(&answer.body, &arena, &list, NULL))) {
        read_token(&answer.body, next, sizeof next);
        wpk_page_jobs(&call->answer->body, list.jobs, list.count, state, next);
        finish_data(call);
    }
    wpk_api_answer_fini(&answer);
    wpk_arena_fini(&arena);
}

/* ---- one job */

static const char *copy_text(struct wpk_arena *arena, const char *text, size_t size)
{
    const char *copy = wpk_arena_copy_bytes(arena, text, size);
    return copy != NULL ? copy : "";
}

static void take_point(void *user, const struct wpk_curve_point *point)
{
    struct wpk_page_curve *curve = user;
    if (point->best_ns > 0 && curve->point_count < WPK_CURVE_BUCKETS_MAX) {
        struct wpk_curve_point *copy = &curve->points[curve->point_count++];
        *copy = *point;
        copy->candidate = copy_text(&curve->arena, point->candidate, strlen(point->candidate));
        copy->source = copy_text(&curve->arena, point->source, strlen(point->source));
        copy->strategy = copy_text(&curve->arena, point->strategy, strlen(point->strategy));
        wpk_worth_add(&curve->worth, point->candidate, (double)point->best_ns, false);
    }
}

/* Points come search by search: the last one kept is the best of its search so far. */
static void take_rival(void *user, const struct wpk_curve_point *point)
{
    struct wpk_page_curve *curve = user;
    struct wpk_curve_point *next = &curve->rivals[curve->rival_count];
    bool follows = curve->rival_count > 0 && strcmp(next[-1].strategy, point->strategy) == 0;
    if (point->best_ns > 0 && curve->rival_count < WPK_CURVE_BUCKETS_MAX &&
        (!follows || point->best_ns < next[-1].best_ns)) {
        *next = *point;
        next->candidate = next->source = ""; /* nobody reads those of rivals */
        next->strategy = copy_text(&curve->arena, point->strategy, strlen(point->strategy));
        curve->rival_count++;
    }
}

static void take_time(void *user, const char *candidate, uint64_t median_ns)
{
    struct wpk_page_curve *curve = user;
    wpk_worth_add(&curve->worth, candidate, (double)median_ns, true);
}

static void take_outcome(void *user, const struct wpk_curve_outcome *outcome)
{
    struct wpk_page_curve *curve = user;
    if (curve->outcome_count < WPK_PAGE_OUTCOMES_MAX) {
        size_t size = strcspn(outcome->log, "\n");
        size = size < LOG_LINE_MAX ? size : LOG_LINE_MAX;
        curve->outcomes[curve->outcome_count++] = (struct wpk_curve_outcome){
            copy_text(&curve->arena, outcome->outcome, strlen(outcome->outcome)), outcome->count,
            copy_text(&curve->arena, outcome->log, size)};
    }
}

static void read_curve(const struct wpk_call *call, const char *id, int op, const char *by,
                       struct wpk_page_curve *out)
{
    struct wpk_store *store = call->api->store;
    struct wpk_buf document = {0};
    uint64_t number = 0;
    bool stored = wpk_history_job_document(store, id, &document, &number);
    uint64_t search = stored ? wpk_history_search_of(store, number, (uint32_t)op) : 0;
    if (search != 0) {
        wpk_history_read_curve(store, search, false, take_point, out);
        if (strcmp(by, "strategy") == 0) {
            wpk_history_read_curve(store, search, true, take_rival, out);
        }
        wpk_history_read_outcomes(store, search, take_outcome, out);
        out->ask_count = wpk_history_sample_times(store, search, WORTH_ASKS_MAX, take_time, out);
        wpk_worth_finish(&out->worth);
    }
    wpk_buf_fini(&document);
}

/* The index of the operator of this name; 0 for "", -1 for none. */
static int find_op(const struct wpk_api_job *job, const char *name)
{
    for (int i = 0; i < job->op_count; i++) {
        if (name[0] == '\0' || strcmp(job->ops[i].name, name) == 0) {
            return i;
        }
    }
    return name[0] == '\0' ? 0 : -1;
}

static void show_job(struct wpk_call *call, bool is_report)
{
    struct wpk_api_answer answer = {0};
    struct wpk_arena arena = {0};
    struct wpk_api_job job = {0};
    struct wpk_api_list trials = {0};
    char next[48] = "";
    const char *id = wpk_call_get(call, "id");
    const char *token = wpk_call_get(call, "page_token"), *outcome = wpk_call_get(call, "outcome");
    const char *by = wpk_call_get(call, "by");
    struct wpk_page_curve *curve = WPK_DEMAND(calloc(1, sizeof *curve));
    by = strcmp(by, "source") == 0 || strcmp(by, "strategy") == 0 ? by : "algorithm";
    bool ok = ask_job(call, id, &arena, &job);
    int op = ok ? find_op(&job, wpk_call_get(call, "op")) : 0;
    if (ok && op < 0) {
        show_problem(call, 404, "the job has no operator of this name");
        ok = false;
    }
    if (ok && op < job.op_count) {
        const struct wpk_http_parameter query[] = {{"page_size", ROWS},
                                                   {"op", job.ops[op].name},
                                                   {"outcome", outcome},
                                                   {"page_token", token}};
        if (!is_report) {
            ok = ask(call, wpk_api_list_trials, id, query, token[0] != '\0' ? 4 : 3, &answer) &&
                 check(call, wpk_api_decode_list(&answer.body, &arena, &trials, NULL));
            read_token(&answer.body, next, sizeof next);
        }
        read_curve(call, id, op, by, curve);
    }
    if (ok) {
        const struct wpk_page_job_view view = {
            .job = &job,
            .op = op,
            .curve = curve,
            .outcome = outcome,
            .by = by,
            .by_seconds = strcmp(wpk_call_get(call, "axis"), "seconds") == 0,
            .trials = trials.trials,
            .trial_count = trials.count,
            .next = next,
            .is_report = is_report};
        wpk_page_job(&call->answer->body, &view);
        finish_data(call);
    }
    wpk_api_answer_fini(&answer);
    wpk_arena_fini(&arena);
    wpk_worth_fini(&curve->worth);
    wpk_arena_fini(&curve->arena);
    free(curve);
}

void wpk_api_page_job(struct wpk_call *call)
{
    if (!is_cached(call)) {
        show_job(call, false);
    }
}

void wpk_api_page_report(struct wpk_call *call)
{
    if (!is_cached(call)) {
        show_job(call, true);
        if (call->answer->status == 200) {
            call->answer->policy = WPK_PAGE_REPORT_POLICY;
        }
    }
}

void wpk_api_page_compare(struct wpk_call *call)
{
    struct wpk_arena arena = {0};
    struct wpk_api_job left = {0}, right = {0};
    if (!is_cached(call) && ask_job(call, wpk_call_get(call, "a"), &arena, &left) &&
        ask_job(call, wpk_call_get(call, "b"), &arena, &right)) {
        wpk_page_compare(&call->answer->body, &left, &right);
        finish_data(call);
    }
    wpk_arena_fini(&arena);
}

/* Get the trial of an operator with this number of its ask; false after the page was answered. */
static bool ask_trial(struct wpk_call *call, const char *id, const struct wpk_api_job *job, int op,
                      const char *parameter, struct wpk_arena *arena, struct wpk_api_list *out)
{
    struct wpk_api_answer answer;
    char token[48];
    uint64_t number;
    if (!wpk_call_number(call, parameter, 0, 0, INT64_MAX, &number)) {
        return false;
    }
    snprintf(token, sizeof token, "%d.%lld", op, (long long)number); /* where its page begins */
    const struct wpk_http_parameter query[] = {
        {"page_size", "1"}, {"op", job->ops[op].name}, {"page_token", token}};
    if (!ask(call, wpk_api_list_trials, id, query, 3, &answer)) {
        return false;
    }
    bool ok = check(call, wpk_api_decode_list(&answer.body, arena, out, NULL));
    wpk_api_answer_fini(&answer);
    if (ok && out->count == 0) {
        show_problem(call, 404, "the operator has no such trial");
    }
    return ok && out->count > 0;
}

void wpk_api_page_trials(struct wpk_call *call)
{
    struct wpk_arena arena = {0};
    struct wpk_api_job job = {0};
    struct wpk_api_list left, right;
    const char *id = wpk_call_get(call, "id");
    bool ok = !is_cached(call) && ask_job(call, id, &arena, &job);
    int op = ok ? find_op(&job, wpk_call_get(call, "op")) : -1;
    if (ok && (op < 0 || op >= job.op_count)) {
        show_problem(call, 404, "the job has no operator of this name");
    } else if (ok && ask_trial(call, id, &job, op, "a", &arena, &left) &&
               ask_trial(call, id, &job, op, "b", &arena, &right)) {
        wpk_page_trial_pair(&call->answer->body, id, job.ops[op].name,
                            wpk_page_find_kernel(&job, job.ops[op].name), left.trials,
                            right.trials);
        finish_data(call);
    }
    wpk_arena_fini(&arena);
}

/* ---- kernels and the fleet */

static wpk_err show_kernels(struct wpk_call *call, const struct wpk_buf *body, const char *next)
{
    struct wpk_arena arena = {0};
    struct wpk_api_list list;
    wpk_err err = wpk_api_decode_list(body, &arena, &list, NULL);
    if (err == WPK_OK) {
        wpk_page_kernels(&call->answer->body, list.kernels, list.count, next);
    }
    wpk_arena_fini(&arena);
    return err;
}

/* Get what a lookup finds of what the kernel computes, where it was timed: "exact, kernel k7".
 * False after the page was answered, or left to the loop.   shape  out [size] */
static bool ask_match(struct wpk_call *call, const struct wpk_api_kernel *kernel, char *out,
                      size_t size)
{
    struct wpk_api_answer answer;
    struct wpk_json_reader *r = NULL;
    char threads[12], level[32] = "", id[24] = "";
    snprintf(threads, sizeof threads, "%d", kernel->threads);
    const struct wpk_http_parameter query[] = {{"page_size", "1"},
                                               {"fingerprint", kernel->fingerprint},
                                               {"device", kernel->device},
                                               {"layouts", kernel->layouts},
                                               {"threads", threads},
                                               {"conditions", kernel->conditions},
                                               {"accuracy", kernel->accuracy}};
    if (!ask(call, wpk_api_list_kernels, "", query, sizeof query / sizeof query[0], &answer)) {
        return false;
    }
    if (wpk_json_open(wpk_buf_text(&answer.body), answer.body.size, 0, &r, NULL) == WPK_OK) {
        wpk_json_enter(r, "match");
        wpk_json_get_copy(r, "match", level, sizeof level);
        wpk_json_get_copy(r, "kernel_id", id, sizeof id);
        wpk_json_leave(r);
    }
    wpk_json_close(r);
    snprintf(out, size, "%s%s%s", level, id[0] != '\0' ? ", kernel " : "", id);
    wpk_api_answer_fini(&answer);
    return true;
}

void wpk_api_page_kernel(struct wpk_call *call)
{
    struct wpk_api_answer answer;
    char match[64];
    struct wpk_arena arena = {0};
    struct wpk_api_list list;
    const char *id = wpk_call_get(call, "id");
    char before[24]; /* the list begins with the kernel itself */
    snprintf(before, sizeof before, "%llu", strtoull(id[0] == 'k' ? id + 1 : "", NULL, 10) + 1);
    const struct wpk_http_parameter query[] = {{"page_size", "10"}, {"page_token", before}};
    if (is_cached(call) || !ask(call, wpk_api_list_kernel_history, id, query, 2, &answer)) {
        return;
    }
    if (check(call, wpk_api_decode_list(&answer.body, &arena, &list, NULL))) {
        if (list.count == 0) {
            show_problem(call, 404, "there is no such kernel; the list of kernels has their ids");
        } else if (ask_match(call, &list.kernels[0], match, sizeof match)) {
            wpk_page_kernel(&call->answer->body, list.kernels, list.count, match);
            finish_data(call);
        }
    }
    wpk_api_answer_fini(&answer);
    wpk_arena_fini(&arena);
}

static wpk_err show_misses(struct wpk_call *call, const struct wpk_buf *body, const char *next)
{
    return wpk_page_misses(&call->answer->body, body, next);
}

/* A page of a list, in pages. */
static void show_list(struct wpk_call *call, void (*serve)(struct wpk_call *),
                      wpk_err (*show)(struct wpk_call *, const struct wpk_buf *, const char *))
{
    struct wpk_api_answer answer;
    char next[32];
    const char *token = wpk_call_get(call, "page_token");
    const struct wpk_http_parameter query[] = {{"page_size", ROWS}, {"page_token", token}};
    if (is_cached(call) || !ask(call, serve, "", query, token[0] != '\0' ? 2 : 1, &answer)) {
        return;
    }
    read_token(&answer.body, next, sizeof next);
    if (check(call, show(call, &answer.body, next))) {
        finish_data(call);
    }
    wpk_api_answer_fini(&answer);
}

void wpk_api_page_kernels(struct wpk_call *call)
{
    show_list(call, wpk_api_list_kernels, show_kernels);
}

void wpk_api_page_misses(struct wpk_call *call)
{
    show_list(call, wpk_api_list_misses, show_misses);
}

void wpk_api_page_fleet(struct wpk_call *call)
{
    if (!is_cached(call) && !queue(call)) {
        wpk_page_fleet(&call->answer->body, call->api->coordinator, call->api->now_ns);
        finish_data(call);
    }
}

/* ---- files and sign-in */

static void show_file(struct wpk_call *call, const char *type, const unsigned char *data,
                      size_t size)
{
    const struct wpk_http_request *request = call->request;
    wpk_buf_append(&call->answer->body, data, size);
    finish(call, 200);
    call->answer->content_type = type;
    call->answer->policy = NULL;
    if (cache_of(call) != NULL && call->answer->status == 200) {
        wpk_page_cache_put(cache_of(call), request, call->api->now_ns, call->answer);
    }
}

void wpk_api_page_style(struct wpk_call *call)
{
    show_file(call, "text/css; charset=utf-8", wpk_page_style, wpk_page_style_size);
}

void wpk_api_page_script(struct wpk_call *call)
{
    show_file(call, "text/javascript; charset=utf-8", wpk_page_script, wpk_page_script_size);
}

void wpk_api_page_home(struct wpk_call *call)
{
    redirect(call, "ui/");
}

void wpk_api_page_sign_in(struct wpk_call *call)
{
    bool came = wpk_call_get(call, "signed")[0] != '\0';
    if (call->request->identity.roles != 0) {
        redirect(call, "./");
        return;
    }
    wpk_page_sign_in(&call->answer->body,
                     came ? "This browser keeps no cookie for this page: allow it." : "");
    finish(call, 200);
}

/* The value of the form's field `token`: it is of the characters of a URI.   shape  out [size] */
static void read_form(const char *body, char *out, size_t size)
{
    static const char field[] = "token=";
    const char *at = strncmp(body, field, sizeof field - 1) == 0 ? body + sizeof field - 1 : "";
    snprintf(out, size, "%.*s", (int)strcspn(at, "&"), at);
}

void wpk_api_sign_in(struct wpk_call *call)
{
    char secret[WPK_AUTH_SECRET_MAX + 1];
    struct wpk_diag diag = {0};
    if (queue(call)) {
        return;
    }
    wpk_err err = WPK_EACCES;
    read_form(call->request->body, secret, sizeof secret);
    if (call->api->auth != NULL) {
        err = wpk_auth_sign_in(call->api->auth, secret, wpk_store_wall_ns(call->api->store),
                               call->answer->cookie, &diag);
    }
    wpk_crypto_wipe(secret, sizeof secret);
    if (err == WPK_OK) {
        redirect(call, "sign-in?signed=1");
        return;
    }
    wpk_page_sign_in(&call->answer->body, diag.text[0] != '\0' ? diag.text : "not a token");
    finish(call, 403);
}
