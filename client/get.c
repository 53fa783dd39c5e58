/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl get: a kernel's shared object or its schedule, by the operator's fingerprint or its name
 * in a job. */
#include "client/choice_file.h"
#include "client/command.h"
#include "client/find.h"
#include "client/manifest_file.h"
#include "client/schedule_file.h"
#include "codegen/schedule.h"
#include "common/crypto.h"
#include "common/fs.h"
#include "common/json.h"
#include "runtime/trust.h"
#include "schema/choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct get {
    const char *what; /* fingerprint or name */
    struct wpk_find_wanted wanted;
    const char *out_path;
    bool own;
    /* instead of the shared object: */
    bool schedule; /* the directives, to be edited */
    bool halide;   /* the same as Halide C++, to be read */
    bool json;     /* say as JSON what was written */
    bool key;      /* print the service's public key, and nothing else */
};

/* What was written, and where. */
struct written {
    const char *path;
    char sha256[WPK_SHA256_HEX_SIZE];
    bool object;   /* or the schedule, at the path */
    bool manifest; /* and its signature, beside it */
    bool choice;   /* likewise */
};

/* The best of our own; NULL: there is none. */
static const char *own_artifact(const struct wpk_api_kernel *kernel)
{
    const struct wpk_api_contender *const contenders[] = {&kernel->served, &kernel->own};

    for (int i = 0; i < 2; i++) {
        if (contenders[i]->provider != NULL &&
            wpk_crypto_hex_valid(contenders[i]->artifact, WPK_SHA256_SIZE)) {
            return contenders[i]->artifact;
        }
    }
    return NULL;
}

static wpk_err write_bytes(struct written *written, const struct wpk_buf *bytes, unsigned mode,
                           struct wpk_diag *diag)
{
    wpk_crypto_sha256_hex(wpk_buf_text(bytes), bytes->size, written->sha256);
    if (strcmp(written->path, "-") != 0) {
        wpk_err err = wpk_fs_write(written->path, wpk_buf_text(bytes), bytes->size, mode, diag);
        return err == WPK_ENOENT ? WPK_EINVAL : err; /* not found means the kernel, to scripts */
    }
    fwrite(wpk_buf_text(bytes), 1, bytes->size, stdout);
    return fflush(stdout) == 0 ? WPK_OK : WPK_EIO;
}

static wpk_err download(struct wpk_session *session, const char *sha256, struct written *written,
                        struct wpk_diag *diag)
{
    struct wpk_http_reply reply = {0};
    char request[128];
    char got[WPK_SHA256_HEX_SIZE];

    snprintf(request, sizeof(request), "/v1/artifacts/%s", sha256);
    wpk_err err = wpk_session_ask(session, request, NULL, &reply, diag);
    if (err == WPK_OK) {
        wpk_crypto_sha256_hex(wpk_buf_text(&reply.body), reply.body.size, got);
        if (strcmp(got, sha256) != 0) {
            wpk_diag_set(diag, "the bytes that came are not those of %s", sha256);
            err = WPK_ECORRUPT;
        }
    }
    if (err == WPK_OK) {
        err = write_bytes(written, &reply.body, 0755, diag);
    }
    wpk_http_reply_fini(&reply);
    return err;
}

static wpk_err print_halide(const char *directives, struct wpk_buf *out, struct wpk_diag *diag)
{
    struct wpk_schedule *schedule = calloc(1, sizeof(*schedule)); /* too large for a stack */

    if (schedule == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = wpk_schedule_parse(directives, schedule, diag);
    if (err == WPK_OK) {
        err = wpk_schedule_print_halide(schedule, out);
        wpk_schedule_fini(schedule);
    }
    free(schedule);
    return err;
}

static wpk_err write_schedule(const struct get *get, const struct wpk_api_kernel *kernel,
                              struct written *written, struct wpk_diag *diag)
{
    const char *schedule = get->own ? kernel->own_schedule : kernel->schedule;
    struct wpk_buf text = {0};

    if (schedule[0] == '\0') {
        wpk_diag_set(diag, "%s",
                     get->own ? "no generated kernel worked"
                              : "the vendor's implementation has no schedule; "
                                "--own gets the best of our own");
        return WPK_ENOENT;
    }
    wpk_err err = WPK_OK;
    if (get->halide) {
        err = print_halide(schedule, &text, diag);
    } else {
        wpk_schedule_file_print(kernel->op, kernel->layouts, schedule, &text);
    }
    err = err == WPK_OK ? wpk_buf_status(&text) : err;
    if (err == WPK_OK) {
        err = write_bytes(written, &text, 0644, diag);
    }
    wpk_buf_fini(&text);
    return err;
}

struct part {
    const char *suffix;
    const char *what;
    bool there;
};

static void tell_written(const struct written *written, const struct part *parts, size_t count,
                         const struct wpk_api_kernel *kernel)
{
    if (written->object) {
        fprintf(stderr, "%s: %s on %s, kernel %s\n", written->path, kernel->fingerprint,
                kernel->device, kernel->id);
    }
    for (size_t i = 1; i < count; i++) {
        if (parts[i].there) {
            fprintf(stderr, "%s%s: %s\n", written->path, parts[i].suffix, parts[i].what);
        }
    }
    if (!written->choice || own_artifact(kernel) == kernel->served.artifact) {
        return;
    }
    fprintf(stderr, "the fastest is %s's%s\n", kernel->served.provider,
            written->object ? ", which is no file: the object is the best of our own"
                            : ", and no generated kernel worked: the choice runs that alone");
}

static wpk_err print_written(const struct get *get, const struct written *written,
                             const struct wpk_api_kernel *kernel)
{
    const struct part parts[] = {
        {"", "", written->object},
        {WPK_TRUST_MANIFEST, "what the service recorded of it", written->manifest},
        {WPK_TRUST_SIGNATURE, "its signature", written->manifest},
        {WPK_CHOICE_SUFFIX, "what there is to run, best first", written->choice},
        {WPK_CHOICE_SUFFIX WPK_TRUST_SIGNATURE, "its signature", written->choice},
    };
    const size_t count = sizeof(parts) / sizeof(parts[0]);
    struct wpk_buf text = {0};

    tell_written(written, parts, count, kernel);
    if (!get->json) {
        return WPK_OK;
    }
    struct wpk_json_writer *writer = wpk_json_writer_new_object();
    wpk_json_put_text(writer, "path", written->path);
    wpk_json_begin_array(writer, "files");
    for (size_t i = 0; i < count; i++) {
        wpk_buf_reset(&text);
        wpk_buf_printf(&text, "%s%s", written->path, parts[i].suffix);
        if (parts[i].there) {
            wpk_json_put_text(writer, NULL, wpk_buf_text(&text));
        }
    }
    wpk_json_end(writer);
    wpk_buf_reset(&text);
    wpk_json_put_text(writer, "fingerprint", kernel->fingerprint);
    wpk_json_put_text(writer, "sha256", written->sha256);
    wpk_json_put_text(writer, "device", kernel->device);
    wpk_json_put_text(writer, "kernel", kernel->id);
    wpk_err err = wpk_json_print(writer, false, &text);
    wpk_json_writer_free(writer);
    if (err == WPK_OK) {
        puts(wpk_buf_text(&text));
    }
    wpk_buf_fini(&text);
    return err;
}

/* The object with what was signed of it. */
static wpk_err write_object(struct wpk_session *session, const struct wpk_api_kernel *kernel,
                            struct written *written, struct wpk_diag *diag)
{
    const char *sha256 = own_artifact(kernel);

    wpk_err err = download(session, sha256, written, diag);
    written->object = true;
    if (err == WPK_OK && strcmp(written->path, "-") != 0) {
        err = wpk_manifest_file_write(session, kernel, written->path, sha256, diag);
        written->manifest = kernel->manifest[0] != '\0';
    }
    return err;
}

/* The object, if there is one, and the choice. */
static wpk_err write_choice(struct wpk_session *session, const struct wpk_api_kernel *kernel,
                            struct written *written, struct wpk_diag *diag)
{
    struct wpk_choice_answer answer = {.signature = ""};
    struct wpk_diag none = {0};
    bool has_object = own_artifact(kernel) != NULL;
    wpk_err err = WPK_OK;

    if (strcmp(written->path, "-") != 0) {
        err = wpk_choice_file_ask(session, kernel, written->path, &answer, &none);
        written->choice = err == WPK_OK;
        if (err == WPK_ENOENT && has_object) {
            err = WPK_OK; /* a wpkd that signs nothing */
        } else if (err != WPK_OK) {
            *diag = none;
        }
    } else if (!has_object) {
        wpk_diag_set(diag, "no generated kernel worked: there is no object");
        err = WPK_ENOENT;
    }
    if (err == WPK_OK && has_object) {
        err = write_object(session, kernel, written, diag);
    }
    if (err == WPK_OK && written->choice) {
        err = wpk_choice_file_write(&answer, written->path, diag);
    }
    wpk_choice_answer_fini(&answer);
    return err;
}

static wpk_err get_kernel(struct wpk_session *session, const struct get *get, struct wpk_diag *diag)
{
    struct wpk_arena arena = {0};
    const struct wpk_api_kernel *kernel = NULL;
    char default_path[256];

    snprintf(default_path, sizeof(default_path), "%.200s%s", get->what,
             get->halide     ? ".cc"
             : get->schedule ? ".schedule"
                             : ".so");
    struct written written = {.path = get->out_path != NULL ? get->out_path : default_path};
    wpk_err err = wpk_find_kernel(session, get->what, &get->wanted, &arena, &kernel, diag);
    if (err == WPK_OK && (get->schedule || get->halide)) {
        err = write_schedule(get, kernel, &written, diag);
        written.object = true;
    } else if (err == WPK_OK) {
        err = write_choice(session, kernel, &written, diag);
    }
    if (err == WPK_OK) {
        err = print_written(get, &written, kernel);
    }
    wpk_arena_fini(&arena);
    return err;
}

static wpk_err print_key(struct wpk_session *session, const struct get *get, struct wpk_diag *diag)
{
    char key[WPK_SIGN_PUBLIC_HEX_SIZE];

    wpk_err err = wpk_manifest_file_key(session, key, diag);
    if (err == WPK_OK) {
        printf(get->json ? "{\"public_key\":\"%s\"}\n" : "%s\n", key);
    }
    return err;
}

static wpk_err check_options(const struct get *get, struct wpk_diag *diag)
{
    if (get->key && get->what != NULL) {
        wpk_diag_set(diag, "--public-key takes no kernel: the service has one key");
        return WPK_EINVAL;
    }
    if (get->key) {
        return WPK_OK;
    }
    if (get->what == NULL || strchr(get->what, '/') != NULL || get->what[0] == '\0') {
        wpk_diag_set(diag, "'%s' is neither a fingerprint nor an operator's name",
                     get->what != NULL ? get->what : "");
        return WPK_EINVAL;
    }
    if (get->schedule && get->halide) {
        wpk_diag_set(diag, "--schedule and --halide are two files: get one after the other");
        return WPK_EINVAL;
    }
    if (get->json && get->out_path != NULL && strcmp(get->out_path, "-") == 0) {
        wpk_diag_set(diag, "--json needs standard output for itself: -o FILE");
        return WPK_EINVAL;
    }
    return WPK_OK;
}

static enum wpk_exit get_main(const struct wpk_command *command,
                              const struct wpk_command_context *context, int argc, char **argv)
{
    struct wpk_session_options session_options = {.need = WPK_SESSION_HISTORY};
    struct get get = {0};
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(session_options),
        {"output", 'o', "FILE",
         "where to; - is standard output; default NAME.so, NAME.schedule or NAME.cc",
         WPK_OPTION_TEXT, &get.out_path, 0, 0},
        WPK_FIND_OPTION_ROWS(get.wanted),
        {"own", 0, NULL, "the best generated kernel, even where the vendor's is faster",
         WPK_OPTION_FLAG, &get.own, 0, 0},
        {"schedule", 0, NULL, "its schedule, to be edited and built with wpkctl build",
         WPK_OPTION_FLAG, &get.schedule, 0, 0},
        {"halide", 0, NULL, "its schedule as Halide C++, to be read", WPK_OPTION_FLAG, &get.halide,
         0, 0},
        {"public-key", 0, NULL, "only print the key that the service signs manifests with",
         WPK_OPTION_FLAG, &get.key, 0, 0},
        {"json", 0, NULL, "what was written, as JSON", WPK_OPTION_FLAG, &get.json, 0, 0},
        {NULL, 0, NULL, NULL, WPK_OPTION_FLAG, NULL, 0, 0},
    };
    struct wpk_session session = {0};
    struct wpk_args args;
    struct wpk_diag diag = {0};
    enum wpk_exit status = WPK_EXIT_OK;

    if (!wpk_command_begin(command, options, argc, argv, 0, 1, &args, &status)) {
        return status;
    }
    get.what = args.operand_count > 0 ? args.operands[0] : NULL;
    wpk_err err = check_options(&get, &diag);
    if (err == WPK_OK) {
        err = wpk_session_open(context, &session_options, &session, &diag);
    }
    if (err == WPK_OK) {
        err = get.key ? print_key(&session, &get, &diag) : get_kernel(&session, &get, &diag);
    }
    if (err != WPK_OK) {
        status = wpk_command_fail(err, &diag);
    }
    wpk_session_close(&session);
    return status;
}

const struct wpk_command wpk_command_get = {
    .name = "get",
    .operands = "FINGERPRINT|NAME",
    .summary = "fetch a kernel's shared object or its schedule",
    .run = get_main,
};
