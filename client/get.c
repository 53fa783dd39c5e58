/* SPDX-License-Identifier: Apache-2.0 */
/* wpkctl get: fetch a kernel's shared object or its schedule, by the operator's fingerprint or its
 * name in a job. */
#include "client/choice_file.h"
#include "client/command.h"
#include "client/find.h"
#include "client/schedule_file.h"
#include "common/crypto.h"
#include "common/fs.h"
#include "common/json.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/trust.h"
#include "runtime/link.h"
#include "schema/choice.h"
#include "target/c/compiler.h"
#include "target/code.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct get {
    const char *what; /* fingerprint or name */
    struct wpk_find_wanted wanted;
    const char *out_path;
    bool own;
    /* instead of the shared object: */
    bool schedule; /* to be edited */
    bool halide;   /* the same as Halide C++, to be read */
    bool cuda;     /* the same as CUDA C */
    bool ptx;      /* the PTX in the shared object */
    bool json;     /* say as JSON what was written */
    bool tvm_ffi;  /* beside it: a library of functions of TVM's ABI */
    bool key;      /* print the service's public key, and nothing else */
};

#define FILES_MAX 7

/* The files that were written, and their paths. */
struct written {
    const char *path;
    char sha256[WPK_SHA256_HEX_SIZE];
    bool object; /* or the schedule, at the path */
    bool plain;  /* the object is the plain kernel */
    bool choice;
    struct wpk_buf file[FILES_MAX]; /* [count] */
    const char *what[FILES_MAX];
    int count;
};

static void note(struct written *written, const char *what, const char *path, const char *suffix)
{
    WPK_ASSERT(written->count < FILES_MAX);
    wpk_buf_printf(&written->file[written->count], "%s%s", path, suffix);
    written->what[written->count++] = what;
}

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

static wpk_err tell_no_code(const struct get *get, const char *code, struct wpk_diag *diag)
{
    if (get->own) {
        wpk_diag_set(diag, "no generated kernel worked; wpkctl trials JOB says why");
    } else {
        wpk_diag_set(diag, "the vendor's implementation has no %s; --own gets the best of our own",
                     code);
    }
    return WPK_ENOENT;
}

static wpk_err write_schedule(const struct get *get, const struct wpk_api_kernel *kernel,
                              struct written *written, struct wpk_diag *diag)
{
    const char *schedule = get->own ? kernel->own_schedule : kernel->schedule;
    struct wpk_buf text = {0};

    if (kernel->is_too_wide) {
        return wpk_find_none(kernel, diag);
    }
    if (schedule[0] == '\0') {
        return tell_no_code(get, "schedule", diag);
    }
    wpk_err err = WPK_OK;
    if (get->halide || get->cuda) {
        err = wpk_code_print(get->halide ? WPK_CODE_HALIDE : WPK_CODE_CUDA, schedule, &text, diag);
    } else {
        wpk_schedule_file_print(kernel->op, kernel->layouts, schedule, &text);
    }
    err = err == WPK_OK ? wpk_buf_status(&text) : err;
    err = err == WPK_OK ? write_bytes(written, &text, 0644, diag) : err;
    wpk_buf_fini(&text);
    return err;
}

/* The PTX in the object that is served; with --own, in the best of our own. */
static wpk_err write_ptx(struct wpk_session *session, const struct get *get,
                         const struct wpk_api_kernel *kernel, struct written *written,
                         struct wpk_diag *diag)
{
    const char *sha256 = get->own ? own_artifact(kernel) : kernel->served.artifact;
    struct wpk_buf object = {.size_max = WPK_HTTP_REPLY_MAX};
    struct wpk_buf ptx = {.size_max = WPK_HTTP_REPLY_MAX};

    if (kernel->is_too_wide) {
        return wpk_find_none(kernel, diag);
    }
    if (sha256 == NULL || sha256[0] == '\0') {
        return tell_no_code(get, "PTX", diag);
    }
    wpk_err err = wpk_choice_file_download(session, sha256, &object, diag);
    err = err == WPK_OK ? wpk_kernel_ptx(&object, &ptx, diag) : err;
    err = err == WPK_OK ? write_bytes(written, &ptx, 0644, diag) : err;
    wpk_buf_fini(&object);
    wpk_buf_fini(&ptx);
    return err;
}

/* Say which implementation is fastest, if it is not the object. */
static void tell_fastest(const struct written *written, const struct wpk_api_kernel *kernel)
{
    if (!written->choice || kernel->served.artifact[0] != '\0') {
        return;
    }
    fprintf(stderr, "the fastest is %s's%s\n", kernel->served.provider,
            !written->object ? ", and no generated kernel worked: the choice runs that alone"
            : written->plain ? ", which is no file: the object is the plain kernel"
                             : ", which is no file: the object is the best of our own");
}

static void tell_written(const struct written *written, const struct wpk_api_kernel *kernel)
{
    if (written->object) {
        fprintf(stderr, "%s: %s%s on %s, kernel %s\n", written->path,
                written->plain ? "the plain kernel of " : "", kernel->fingerprint, kernel->device,
                kernel->id);
    }
    for (int i = written->object; i < written->count; i++) {
        fprintf(stderr, "%s: %s\n", wpk_buf_text(&written->file[i]), written->what[i]);
    }
    tell_fastest(written, kernel);
}

static wpk_err print_written(const struct get *get, const struct written *written,
                             const struct wpk_api_kernel *kernel)
{
    tell_written(written, kernel);
    if (!get->json) {
        return WPK_OK;
    }
    struct wpk_json_writer *writer = wpk_json_writer_new_object();
    wpk_json_put_text(writer, "path", written->path);
    wpk_json_begin_array(writer, "files");
    for (int i = 0; i < written->count; i++) {
        wpk_json_put_text(writer, NULL, wpk_buf_text(&written->file[i]));
    }
    wpk_json_end(writer);
    wpk_json_put_text(writer, "fingerprint", kernel->fingerprint);
    wpk_json_put_text(writer, "sha256", written->sha256);
    wpk_json_put_text(writer, "device", kernel->device);
    wpk_json_put_text(writer, "kernel", kernel->id);
    return wpk_json_puts(writer, false);
}

/* The object with what was signed of it. */
static wpk_err write_object(struct wpk_session *session, const struct wpk_api_kernel *kernel,
                            const char *sha256, struct written *written, struct wpk_diag *diag)
{
    struct wpk_buf bytes = {.size_max = WPK_HTTP_REPLY_MAX};
    struct wpk_api_kernel nothing = {.manifest = ""};
    const char *own = own_artifact(kernel);

    wpk_err err = wpk_choice_file_download(session, sha256, &bytes, diag);
    err = err == WPK_OK ? write_bytes(written, &bytes, 0755, diag) : err;
    wpk_buf_fini(&bytes);
    written->object = true;
    note(written, "", written->path, "");
    if (err != WPK_OK || wpk_output_path_is_stream(written->path)) {
        return err;
    }
    const struct wpk_api_kernel *of =
        own != NULL && strcmp(own, sha256) == 0 ? kernel : &nothing; /* the manifest is of that */
    err = wpk_manifest_file_write(session, of, written->path, sha256, diag);
    if (of->manifest[0] != '\0') {
        note(written, "what the service recorded of it", written->path, WPK_TRUST_MANIFEST);
        note(written, "its signature", written->path, WPK_TRUST_SIGNATURE);
    }
    return err;
}

/* Say so if a device of another class finds nothing to run. */
static void tell_plain(const struct wpk_choice_answer *answer)
{
    struct wpk_choice *choice = calloc(1, sizeof(*choice)); /* large */

    if (choice == NULL || wpk_choice_decode(wpk_buf_text(&answer->choice), answer->choice.size,
                                            choice, NULL) != WPK_OK) {
        free(choice);
        return;
    }
    if (choice->plain_missing[0] != '\0') {
        fprintf(stderr,
                "the choice has no plain kernel: it runs on devices of this class alone; %s\n",
                choice->plain_missing);
    }
    wpk_choice_fini(choice);
    free(choice);
}

/* The choice, with the objects that it names beside the first. */
static wpk_err write_choice(struct wpk_session *session, const struct wpk_choice_answer *answer,
                            struct written *written, struct wpk_diag *diag)
{
    const char *name = wpk_choice_file_name(written->path);
    struct wpk_buf path = {0};

    for (int i = 0; i < answer->object_count; i++) {
        if (strcmp(answer->object[i].file, name) != 0) {
            wpk_buf_printf(&path, "%.*s%s", (int)(name - written->path), written->path,
                           answer->object[i].file);
            note(written, "the plain kernel, which runs on every device", wpk_buf_text(&path), "");
        }
    }
    wpk_buf_fini(&path);
    note(written, "what there is to run, best first", written->path, WPK_CHOICE_SUFFIX);
    note(written, "its signature", written->path, WPK_CHOICE_SUFFIX WPK_TRUST_SIGNATURE);
    written->choice = true;
    tell_plain(answer);
    return wpk_choice_file_write(session, answer, written->path, diag);
}

/* Say so if the kernel's object is not in its choice: wpkd found no such file, or a damaged one. */
static void tell_lost(const struct wpk_choice_answer *answer, const struct wpk_api_kernel *kernel)
{
    const char *own = own_artifact(kernel);
    bool there = own == NULL || kernel->is_too_wide;

    for (int i = 0; i < answer->object_count; i++) {
        there = there || strcmp(answer->object[i].sha256, own) == 0;
    }
    if (!there) {
        fprintf(stderr,
                "the object of kernel %s is missing or damaged in the service's artifacts: this "
                "is the next best; wpkctl tune its operator again, or restore a backup\n",
                kernel->id);
    }
}

/* The object, if there is one, and the choice. */
static wpk_err write_kernel(struct wpk_session *session, const struct wpk_api_kernel *kernel,
                            struct written *written, struct wpk_diag *diag)
{
    struct wpk_choice_answer answer = {.signature = ""};
    bool alone = wpk_output_path_is_stream(written->path); /* nothing is written beside it */
    const char *path = alone ? "kernel.so" : written->path;

    wpk_err err = wpk_choice_file_ask(session, kernel, path, &answer, diag);
    bool chosen = err == WPK_OK;
    if (err == WPK_ENOENT && !kernel->is_too_wide && own_artifact(kernel) != NULL) {
        err = WPK_OK; /* a wpkd that signs nothing */
        *diag = (struct wpk_diag){0};
    }
    if (err == WPK_OK && chosen) {
        tell_lost(&answer, kernel);
    }
    /* the best of our own, else the plain kernel; NULL: the vendor's alone is there */
    const char *sha256 = !chosen                   ? own_artifact(kernel)
                         : answer.object_count > 0 ? answer.object[0].sha256
                                                   : NULL;
    if (err == WPK_OK && sha256 == NULL && alone) {
        err =
            wpk_fail(diag, WPK_ENOENT,
                     "no generated kernel worked: there is no object; wpkctl trials JOB says why");
    }
    if (err == WPK_OK && sha256 != NULL) {
        written->plain = chosen && strcmp(answer.object[0].file, wpk_choice_file_name(path)) != 0;
        err = write_object(session, kernel, sha256, written, diag);
    }
    if (err == WPK_OK && chosen && !alone) {
        err = write_choice(session, &answer, written, diag);
    }
    wpk_choice_answer_fini(&answer);
    return err;
}

/* Link the functions of TVM's ABI, which open the kernel beside them. */
static wpk_err write_tvm_ffi(const char *name, const char *path, struct wpk_diag *diag)
{
    struct wpk_buf object = {0}, symbol = {0}, run = {0}, prepare = {0}, libraries = {0}, us = {0};

    /* libwpk where it is built or installed, seen from here, and where the file is taken to */
    wpk_err err = wpk_fs_program_dir(&us, diag);
    wpk_buf_printf(&libraries, "-rpath=$ORIGIN:%s/../lib:%s/../runtime", wpk_buf_text(&us),
                   wpk_buf_text(&us));
    for (const char *c = name; *c != '\0'; c++) {
        wpk_buf_printf(&symbol, "%c", isalnum((unsigned char)*c) != 0 ? *c : '_');
    }
    wpk_buf_printf(&object, "%s.o", path);
    wpk_buf_printf(&run, "--defsym=__tvm_ffi_%s=wpk_tvm_ffi_run", wpk_buf_text(&symbol));
    wpk_buf_printf(&prepare, "--defsym=__tvm_ffi_%s_prepare=wpk_tvm_ffi_prepare",
                   wpk_buf_text(&symbol));
    const char *const command[] = {"ld",
                                   "-shared",
                                   "-z",
                                   "noexecstack",
                                   "--hash-style=gnu",
                                   "--build-id=none",
                                   "-o",
                                   path,
                                   wpk_buf_text(&object),
                                   wpk_buf_text(&run),
                                   wpk_buf_text(&prepare),
                                   wpk_buf_text(&libraries),
                                   "-l:libc.so.6",
                                   NULL};
    err = err == WPK_OK ? wpk_link_write_tvm_ffi(wpk_buf_text(&object), diag) : err;
    if (err == WPK_OK) {
        err = wpk_c_compiler_run(command, NULL, NULL, 0);
        unlink(wpk_buf_text(&object));
        if (err != WPK_OK) {
            wpk_diag_set(diag, err == WPK_ENOENT ? "there is no linker: ld is not in PATH"
                                                 : "the linker failed");
        }
    }
    wpk_buf_fini(&object);
    wpk_buf_fini(&symbol);
    wpk_buf_fini(&run);
    wpk_buf_fini(&prepare);
    wpk_buf_fini(&libraries);
    wpk_buf_fini(&us);
    return err;
}

static wpk_err get_kernel(struct wpk_session *session, const struct get *get, struct wpk_diag *diag)
{
    struct wpk_arena arena = {0};
    const struct wpk_api_kernel *kernel = NULL;
    char default_path[256];
    struct wpk_buf beside = {0};

    snprintf(default_path, sizeof(default_path), "%.200s%s", get->what,
             get->tvm_ffi    ? "_ffi.so"
             : get->halide   ? ".cc"
             : get->cuda     ? ".cu"
             : get->ptx      ? ".ptx"
             : get->schedule ? ".schedule"
                             : ".so");
    struct written written = {.path = get->out_path != NULL ? get->out_path : default_path};
    wpk_err err = wpk_find_kernel(session, get->what, &get->wanted, &arena, &kernel, diag);
    if (err == WPK_OK && (get->schedule || get->ptx || get->halide || get->cuda)) {
        err = get->ptx ? write_ptx(session, get, kernel, &written, diag)
                       : write_schedule(get, kernel, &written, diag);
        written.object = true;
        note(&written, "", written.path, "");
    } else if (err == WPK_OK) {
        const char *path = written.path;
        if (get->tvm_ffi &&
            (wpk_output_path_is_stream(path) || !wpk_begins(kernel->device, "cpu/"))) {
            err = wpk_fail(diag, WPK_EUNSUPPORTED,
                           "--tvm-ffi writes files, of a kernel of CPUs; '%s' is of %s", get->what,
                           kernel->device);
        } else if (get->tvm_ffi) {
            size_t length = strlen(path);
            bool ends = length > 3 && strcmp(path + length - 3, ".so") == 0;
            wpk_buf_printf(&beside, "%.*s.kernel.so", (int)(ends ? length - 3 : length), path);
            written.path = wpk_buf_text(&beside);
        }
        err = err == WPK_OK ? wpk_buf_status(&beside) : err;
        err = err == WPK_OK ? write_kernel(session, kernel, &written, diag) : err;
        if (err == WPK_OK && get->tvm_ffi) {
            err = write_tvm_ffi(get->what, path, diag);
            note(&written, "its functions of TVM's ABI", path, "");
        }
    }
    err = err == WPK_OK ? print_written(get, &written, kernel) : err;
    for (int i = 0; i < written.count; i++) {
        wpk_buf_fini(&written.file[i]);
    }
    wpk_buf_fini(&beside);
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
        return wpk_fail(
            diag, WPK_EINVAL,
            "--public-key takes no kernel: the service has one key; leave the name out");
    }
    if (get->key) {
        return WPK_OK;
    }
    if (get->what == NULL || strchr(get->what, '/') != NULL || get->what[0] == '\0') {
        return wpk_fail(
            diag, WPK_EINVAL,
            "'%s' is neither a fingerprint nor an operator's name; wpkctl kernels lists them",
            get->what != NULL ? get->what : "");
    }
    if (get->schedule + get->halide + get->cuda + get->ptx + get->tvm_ffi > 1) {
        return wpk_fail(diag, WPK_EINVAL,
                        "--schedule, --halide, --cuda, --ptx and --tvm-ffi are files of their own: "
                        "get one after the other");
    }
    if (get->json && get->out_path != NULL && strcmp(get->out_path, "-") == 0) {
        return wpk_fail(diag, WPK_EINVAL, "--json needs standard output for itself: -o FILE");
    }
    return WPK_OK;
}

enum wpk_exit wpk_command_get(struct wpk_invocation *call)
{
    struct wpk_session_options session_options = {.need = WPK_SESSION_HISTORY};
    struct get get = {0};
    const struct wpk_option options[] = {
        WPK_SESSION_OPTION_ROWS(session_options),
        WPK_ARGS_OUTPUT(
            "where to; - is standard output; default NAME.so, .schedule, .cc, .cu or .ptx",
            &get.out_path),
        WPK_FIND_OPTION_ROWS(get.wanted),
        WPK_ARGS_FLAG("own", "the best generated kernel, even where the vendor's is faster",
                      &get.own),
        WPK_ARGS_FLAG("schedule", "its schedule, to be edited and built with wpkctl build",
                      &get.schedule),
        WPK_ARGS_FLAG("halide", "its schedule as Halide C++, to be read", &get.halide),
        WPK_ARGS_FLAG("cuda", "a GPU's kernel as CUDA C, to be read", &get.cuda),
        WPK_ARGS_FLAG("ptx", "the PTX that a GPU's kernel has", &get.ptx),
        WPK_ARGS_FLAG("tvm-ffi", "a library of functions of TVM's ABI, with the kernel beside it",
                      &get.tvm_ffi),
        WPK_ARGS_FLAG("public-key", "only print the key that the service signs manifests with",
                      &get.key),
        WPK_ARGS_FLAG("json", "what was written, as JSON", &get.json),
        WPK_ARGS_END,
    };
    struct wpk_session session = {0};

    if (!wpk_command_begin(call, options, 0, 1)) {
        return call->status;
    }
    get.what = call->args.operand_count > 0 ? call->args.operands[0] : NULL;
    wpk_err err = check_options(&get, &call->diag);
    err = err == WPK_OK ? wpk_session_open(call->context, &session_options, &session, &call->diag)
                        : err;
    if (err == WPK_OK) {
        err = get.key ? print_key(&session, &get, &call->diag)
                      : get_kernel(&session, &get, &call->diag);
    }
    wpk_session_close(&session);
    return wpk_command_end(call, err);
}
