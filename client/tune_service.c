/* SPDX-License-Identifier: Apache-2.0 */
#include "client/tune_service.h"

#include "client/choice_file.h"
#include "client/follow.h"
#include "client/session.h"
#include "common/json.h"
#include "common/machine.h"
#include "schema/device.h"

#include <stdio.h>
#include <string.h>

#define LAST_CACHE 3 /* its level */
#define NS_MAX 9e15

/* Rates of a core that nobody measured: some server's. They order operators, no more. */
static const struct wpk_roofline assumed = {100e9, 12.5e9};

static wpk_err submit(struct wpk_tune_service *service, const struct wpk_job *job,
                      uint64_t until_ns, struct wpk_arena *arena, struct wpk_api_job *out,
                      struct wpk_diag *diag)
{
    struct wpk_http_reply reply = {0};
    const struct wpk_follow_options follow = {.cancel = true,
                                              .until_ns = until_ns,
                                              .quiet = service->quiet,
                                              .own_worker =
                                                  service->own_worker && service->submitted == 0};

    service->submitted++;
    wpk_err err = wpk_follow_submit(service->session, job, &follow, arena, &reply, out, diag);
    wpk_http_reply_fini(&reply);
    return err;
}

/* The operators of the lock file have their kernels; the others are searched. The kernels live in
 * the lock's arena, since following a job empties the other one. */
static wpk_err run(void *user, const struct wpk_job *job, uint64_t until_ns,
                   struct wpk_arena *arena, struct wpk_api_job *out, struct wpk_diag *diag)
{
    struct wpk_tune_service *service = user;
    struct wpk_lock *lock = service->lock;
    struct wpk_job rest = *job;
    size_t count = (size_t)job->op_count;
    char device[WPK_JOB_DEVICE_MAX];
    int locked = 0;

    if (lock == NULL) {
        return submit(service, job, until_ns, arena, out, diag);
    }
    struct wpk_api_kernel *kernels =
        WPK_DEMAND(WPK_ARENA_NEW(&lock->arena, struct wpk_api_kernel, 2 * count));
    rest.ops = WPK_DEMAND(WPK_ARENA_NEW(&lock->arena, struct wpk_job_op, count));
    memcpy(rest.ops, job->ops, count * sizeof(*rest.ops));
    *out = (struct wpk_api_job){.state = "done", .id = "", .name = "", .reason = ""};
    wpk_tune_service_device(service->session, job, device);
    wpk_err err = wpk_lock_apply(lock, service->session, device, &rest, service->quiet, kernels,
                                 &locked, diag);
    if (err == WPK_OK && rest.op_count > 0) {
        err = submit(service, &rest, until_ns, arena, out, diag);
    }
    for (int i = 0; err == WPK_OK && i < out->kernel_count; i++) {
        kernels[locked++] = out->kernels[i];
    }
    out->kernels = kernels;
    out->kernel_count = locked;
    return err;
}

static wpk_err fetch(void *user, const struct wpk_api_kernel *kernel, struct wpk_buf *object,
                     struct wpk_diag *diag)
{
    struct wpk_tune_service *service = user;
    struct wpk_choice_answer answer = {.signature = ""};

    wpk_err err = wpk_choice_file_ask(service->session, kernel, "kernel.so", &answer, diag);
    if (err == WPK_OK && answer.object_count == 0) {
        err = WPK_ENOENT;
    }
    if (err == WPK_OK) {
        err = wpk_choice_file_download(service->session, answer.object[0].sha256, object, diag);
    }
    wpk_choice_answer_fini(&answer);
    return err;
}

/* ---- expected times */

static wpk_err print_request(const struct wpk_job *job, const char *device, struct wpk_buf *out)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();

    wpk_json_begin_array(w, "lookups");
    for (int i = 0; i < job->op_count; i++) {
        wpk_json_begin_object(w, NULL);
        wpk_job_op_put(&job->ops[i], w);
        wpk_json_put_int(w, "threads", job->threads);
        if (device[0] != '\0') {
            wpk_json_put_text(w, "device", device);
        }
        if (job->ops[i].missed_calls > 0) {
            wpk_json_put_int(w, "calls", job->ops[i].missed_calls);
            wpk_json_put_int(w, "time_ns", job->ops[i].missed_ns);
        }
        wpk_json_end(w);
    }
    wpk_json_end(w);
    return wpk_json_finish(w, false, out);
}

/* A source that this program does not know is none. */
static void read_match(struct wpk_json_reader *r, struct wpk_tune_expected *out)
{
    static const char *const names[WPK_TUNE_FROM_COUNT] = {WPK_TUNE_FROM_LIST(WPK_LIST_TEXT)};

    if (wpk_json_kind_of(r, "expected_ns") != WPK_JSON_OBJECT ||
        wpk_json_kind_of(r, "expected_from") != WPK_JSON_STRING) {
        return;
    }
    const char *from = wpk_json_get_text(r, "expected_from", 64);
    int found = wpk_list_find(names, WPK_TUNE_FROM_ROOFLINE, from);
    if (found >= 0) {
        out->from = (enum wpk_tune_from)found;
        wpk_json_enter(r, "expected_ns");
        out->ns = wpk_json_get_real(r, "median", 0, NS_MAX);
        wpk_json_leave(r);
    }
}

void wpk_tune_service_device(const struct wpk_session *session, const struct wpk_job *job,
                             char *out)
{
    struct wpk_device device;

    snprintf(out, WPK_JOB_DEVICE_MAX, "%s", job->device);
    if (session->private_service != NULL &&
        wpk_device_probe(WPK_CPU_FLAGS_ALL, &device) == WPK_OK) {
        wpk_device_class(&device, out, WPK_JOB_DEVICE_MAX);
    }
}

wpk_err wpk_tune_service_lookup(struct wpk_session *session, const struct wpk_job *job,
                                struct wpk_http_reply *reply, struct wpk_diag *diag)
{
    char class[WPK_JOB_DEVICE_MAX];
    struct wpk_buf body = {0};

    wpk_tune_service_device(session, job, class);
    wpk_err err = print_request(job, class, &body);
    if (err == WPK_OK) {
        err = wpk_session_ask(session, "/v1/kernels:lookup", wpk_buf_text(&body), reply, diag);
    }
    wpk_buf_fini(&body);
    return err;
}

static wpk_err expect(void *user, const struct wpk_job *job, struct wpk_tune_expected *out,
                      struct wpk_diag *diag)
{
    struct wpk_tune_service *service = user;
    struct wpk_http_reply reply = {0};
    struct wpk_json_reader *r = NULL;

    wpk_err err = wpk_tune_service_lookup(service->session, job, &reply, diag);
    if (err == WPK_OK) {
        err =
            wpk_json_open(wpk_buf_text(&reply.body), reply.body.size, WPK_HTTP_REPLY_MAX, &r, diag);
    }
    if (err == WPK_OK) {
        wpk_json_enter_array(r, "matches");
        for (int i = 0; i < job->op_count && wpk_json_next(r); i++) {
            read_match(r, &out[i]);
        }
        wpk_json_leave(r);
        err = wpk_json_status(r);
    }
    wpk_json_close(r);
    wpk_http_reply_fini(&reply);
    return err;
}

/* ---- the user */

static bool is_interrupted(void *user WPK_UNUSED)
{
    return wpk_follow_interrupted();
}

static void go_on(void *user WPK_UNUSED)
{
    wpk_follow_go_on();
}

static void notice(void *user, enum wpk_tune_notice kind, const char *text)
{
    const struct wpk_tune_service *service = user;

    if (kind == WPK_TUNE_RESULT || !service->quiet) {
        fprintf(stderr, "%s\n", text);
    }
}

void wpk_tune_service_source(struct wpk_tune_service *service, struct wpk_tune_source *out)
{
    *out = (struct wpk_tune_source){.run = run,
                                    .fetch = fetch,
                                    .expect = expect,
                                    .is_interrupted = is_interrupted,
                                    .go_on = go_on,
                                    .notice = notice,
                                    .user = service};
}

/* ---- the machine */

static wpk_err ask_workers(struct wpk_session *session, const struct wpk_job *job,
                           struct wpk_tune_machine *out, struct wpk_diag *diag)
{
    struct wpk_arena arena = {0};
    struct wpk_api_list list;

    wpk_err err = wpk_list_read(session, "workers", "", WPK_API_LIST_MAX, &arena, &list, diag);
    for (int i = list.count - 1; i >= 0; i--) {
        const struct wpk_api_worker *worker = &list.workers[i];
        if (wpk_list_is_ready(worker, job->kind) && worker->peak_flops_per_s > 0 &&
            worker->peak_bytes_per_s > 0 &&
            (job->device[0] == '\0' || strcmp(worker->device, job->device) == 0)) {
            *out = (struct wpk_tune_machine){
                .roofline = {worker->peak_flops_per_s * job->threads, worker->peak_bytes_per_s},
                .cache_bytes = worker->cache_bytes};
        }
    }
    wpk_arena_fini(&arena);
    return err;
}

wpk_err wpk_tune_service_machine(struct wpk_session *session, const struct wpk_job *job,
                                 struct wpk_tune_machine *out, struct wpk_diag *diag)
{
    *out = (struct wpk_tune_machine){
        .roofline = {assumed.flops_per_s * job->threads, assumed.bytes_per_s},
        .cache_bytes = wpk_caches_size(0, LAST_CACHE)};
    return session->private_service == NULL && session->http != NULL
               ? ask_workers(session, job, out, diag)
               : WPK_OK;
}
