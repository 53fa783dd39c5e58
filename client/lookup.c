/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl lookup: what is known of operators, and how well it fits. */
#include "client/command.h"
#include "client/format.h"
#include "client/job_file.h"
#include "client/session.h"
#include "common/crypto.h"
#include "common/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct lookup {
    struct wpk_session_options session;
    const char *device;
    const char *environment;
    const char *layouts;
    int64_t threads; /* 0: as the file says, or 1 */
    bool tune;
    bool json;
};

/* ---- asking */

static wpk_err make_body(const struct lookup *lookup, const char *fingerprint,
                         struct wpk_json_reader *op, const char *layouts, int64_t threads,
                         struct wpk_buf *out)
{
    static const char *const copied[] = {"op", "tensors", "constants"};
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    struct wpk_buf raw = {0};

    if (fingerprint != NULL) {
        wpk_json_put_text(w, "fingerprint", fingerprint);
    }
    for (size_t i = 0; op != NULL && i < sizeof(copied) / sizeof(copied[0]); i++) {
        if (wpk_json_has(op, copied[i])) {
            wpk_buf_reset(&raw);
            wpk_json_get_raw(op, copied[i], &raw);
            wpk_json_put_raw(w, copied[i], wpk_buf_text(&raw));
        }
    }
    wpk_json_put_text(w, "layouts", layouts);
    wpk_json_put_int(w, "threads", threads);
    if (lookup->device != NULL) {
        wpk_json_put_text(w, "device", lookup->device);
    }
    if (lookup->environment != NULL) {
        wpk_json_put_text(w, "environment", lookup->environment);
    }
    wpk_err err = wpk_json_print(w, false, out);
    wpk_json_writer_free(w);
    wpk_buf_fini(&raw);
    return err;
}

static double get_real(struct wpk_json_reader *r, const char *key)
{
    return wpk_json_kind_of(r, key) == WPK_JSON_NUMBER ? wpk_json_get_real(r, key, -1e300, 1e300)
                                                       : 0;
}

static const char *get_text(struct wpk_json_reader *r, const char *key)
{
    return wpk_json_kind_of(r, key) == WPK_JSON_STRING ? wpk_json_get_text(r, key, 4096) : "";
}

static void print_time(struct wpk_json_reader *r, const char *key, const char *label)
{
    char median[WPK_FORMAT_SIZE];
    char noise[WPK_FORMAT_SIZE];

    if (wpk_json_kind_of(r, key) != WPK_JSON_OBJECT) {
        return;
    }
    wpk_json_enter(r, key);
    wpk_format_ns((uint64_t)get_real(r, "median"), median);
    wpk_format_ns((uint64_t)get_real(r, "mad"), noise);
    wpk_json_leave(r);
    printf("  %-12s %s +- %s\n", label, median, noise);
}

static void print_differs(struct wpk_json_reader *r)
{
    if (wpk_json_kind_of(r, "differs") != WPK_JSON_ARRAY) {
        return;
    }
    wpk_json_enter_array(r, "differs");
    while (wpk_json_next(r)) {
        printf("  %-12s %s is %s, wanted %s\n", "differs", get_text(r, "field"), get_text(r, "has"),
               get_text(r, "wants"));
    }
    wpk_json_leave(r);
}

static void print_known(struct wpk_json_reader *r)
{
    printf("  %-12s %s, %s\n", "kernel", get_text(r, "kernel_id"), get_text(r, "fingerprint"));
    printf("  %-12s %s %s\n", "by", get_text(r, "provider"), get_text(r, "algorithm"));
    printf("  %-12s %s, %s\n", "on", get_text(r, "device"), get_text(r, "environment"));
    print_time(r, "expected_ns", "expected");
    if (wpk_json_kind_of(r, "baseline") == WPK_JSON_OBJECT) {
        wpk_json_enter(r, "baseline");
        print_time(r, "time_ns", get_text(r, "provider"));
        wpk_json_leave(r);
    }
    if (get_real(r, "speedup") > 0) {
        printf("  %-12s %.2fx\n", "speedup", get_real(r, "speedup"));
    }
    const char *artifact = get_text(r, "artifact");
    printf("  %-12s %s\n", "artifact", artifact[0] != '\0' ? artifact : "none");
    if (wpk_json_kind_of(r, "provenance") == WPK_JSON_OBJECT) {
        wpk_json_enter(r, "provenance");
        printf("  %-12s %s of %s in %s, by %s at %s\n", "measured", get_text(r, "trial"),
               get_text(r, "search"), get_text(r, "job"), get_text(r, "worker"),
               get_text(r, "measured"));
        wpk_json_leave(r);
    }
}

/* *known: it is something other than none. */
static wpk_err print_match(const char *name, const struct wpk_buf *body, bool *known,
                           struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_json_open(wpk_buf_text(body), body->size, WPK_HTTP_REPLY_MAX, &r, diag);

    if (err != WPK_OK) {
        return err;
    }
    const char *match = wpk_json_get_text(r, "match", 64);
    *known = strcmp(match, "none") != 0;
    printf("%s: %s", name, match);
    if (get_real(r, "distance") > 0) {
        printf(", %.2f away", get_real(r, "distance"));
    }
    putchar('\n');
    if (*known) {
        print_known(r);
        print_differs(r);
    }
    if (get_text(r, "job_id")[0] != '\0') {
        printf("  %-12s %s\n", "job", get_text(r, "job_id"));
    }
    err = wpk_json_status(r);
    wpk_json_close(r);
    return err;
}

/* One lookup; in JSON they are the items of an array. */
static wpk_err ask(struct wpk_session *session, const struct lookup *lookup, const char *name,
                   const struct wpk_buf *body, int number, bool *all_known, struct wpk_diag *diag)
{
    struct wpk_http_reply reply = {0};
    bool known = true;

    wpk_err err =
        wpk_session_ask(session, lookup->tune ? "/v1/kernels:lookup?tune=1" : "/v1/kernels:lookup",
                        wpk_buf_text(body), &reply, diag);
    if (err == WPK_OK && lookup->json) {
        printf("%s%s", number > 0 ? "," : "{\"matches\":[", wpk_buf_text(&reply.body));
        known = strstr(wpk_buf_text(&reply.body), "\"match\":\"none\"") == NULL;
    } else if (err == WPK_OK) {
        err = print_match(name, &reply.body, &known, diag);
    }
    *all_known = *all_known && known;
    wpk_http_reply_fini(&reply);
    return err;
}

static wpk_err ask_file(struct wpk_session *session, const struct lookup *lookup,
                        const struct wpk_job *job, bool *all_known, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    struct wpk_json_reader *r = NULL;

    wpk_err err = wpk_job_encode(job, &text);
    if (err == WPK_OK) {
        err = wpk_json_open(wpk_buf_text(&text), text.size, 0, &r, diag);
    }
    if (err != WPK_OK) {
        wpk_buf_fini(&text);
        return err;
    }
    wpk_json_enter_array(r, "ops");
    for (int i = 0; err == WPK_OK && i < job->op_count && wpk_json_next(r); i++) {
        struct wpk_buf body = {0};
        err = make_body(lookup, NULL, r,
                        lookup->layouts != NULL ? lookup->layouts
                                                : wpk_layouts_name(job->ops[i].layouts),
                        lookup->threads > 0 ? lookup->threads : job->threads, &body);
        if (err == WPK_OK) {
            err = ask(session, lookup, job->ops[i].name, &body, i, all_known, diag);
        }
        wpk_buf_fini(&body);
    }
    wpk_json_leave(r);
    wpk_json_close(r);
    wpk_buf_fini(&text);
    return err;
}

static wpk_err look_up(const struct wpk_command_context *context, const struct lookup *lookup,
                       const char *what, bool *all_known, struct wpk_diag *diag)
{
    struct wpk_session session = {0};
    struct wpk_job job = {0};
    struct wpk_buf body = {0};
    bool is_hash = wpk_crypto_hex_valid(what, WPK_SHA256_SIZE);

    wpk_err err = is_hash ? WPK_OK : wpk_job_file_read(what, &job, diag);
    if (err == WPK_OK) {
        err = wpk_session_open(context, &lookup->session, &session, diag);
    }
    if (err == WPK_OK && is_hash) {
        err = make_body(lookup, what, NULL, lookup->layouts != NULL ? lookup->layouts : "fixed",
                        lookup->threads > 0 ? lookup->threads : 1, &body);
        if (err == WPK_OK) {
            err = ask(&session, lookup, what, &body, 0, all_known, diag);
        }
    } else if (err == WPK_OK) {
        err = ask_file(&session, lookup, &job, all_known, diag);
    }
    if (err == WPK_OK && lookup->json) {
        puts("]}");
    }
    wpk_buf_fini(&body);
    wpk_job_fini(&job);
    wpk_session_close(&session);
    return err;
}

static enum wpk_exit lookup_main(const struct wpk_command *command,
                                 const struct wpk_command_context *context, int argc, char **argv)
{
    struct lookup lookup = {.session = {.need = WPK_SESSION_HISTORY}};
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(lookup.session),
        {"device", 0, "CLASS", "device class; needed where several are known", WPK_OPTION_TEXT,
         &lookup.device, 0, 0},
        {"environment", 0, "TEXT", "versions that have to be equal, such as halide=21.0.0",
         WPK_OPTION_TEXT, &lookup.environment, 0, 0},
        {"layouts", 0, "NAME", "fixed or any; default: the file's, or fixed", WPK_OPTION_TEXT,
         &lookup.layouts, 0, 0},
        {"threads", 0, "N", "of the kernel; default: the file's, or 1", WPK_OPTION_INT,
         &lookup.threads, 1, 1024},
        {"tune", 0, NULL, "make a job for what is not known exactly", WPK_OPTION_FLAG, &lookup.tune,
         0, 0},
        {"json", 0, NULL, "the matches as JSON", WPK_OPTION_FLAG, &lookup.json, 0, 0},
        {NULL, 0, NULL, NULL, WPK_OPTION_FLAG, NULL, 0, 0},
    };
    struct wpk_args args;
    struct wpk_diag diag = {0};
    enum wpk_exit status = WPK_EXIT_OK;
    bool all_known = true;

    if (!wpk_command_begin(command, options, argc, argv, 1, 1, &args, &status)) {
        return status;
    }
    if (lookup.tune) {
        lookup.session.need = WPK_SESSION_RUNNING; /* a private one would end before its job */
    }
    wpk_err err = look_up(context, &lookup, args.operands[0], &all_known, &diag);
    if (err != WPK_OK) {
        return wpk_command_fail(err, &diag);
    }
    return all_known ? WPK_EXIT_OK : WPK_EXIT_NOT_FOUND;
}

const struct wpk_command wpk_command_lookup = {
    .name = "lookup",
    .operands = "FILE|FINGERPRINT",
    .summary = "what is known of a job file's operators, or of one, and how well it fits",
    .run = lookup_main,
};
