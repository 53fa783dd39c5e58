/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel's choice (schema/choice.h), signed: the implementations of its operator, best first,
 * with the client's names. */
#include "coordinator/api/api_call.h"

#include "coordinator/api/api_front.h"
#include "coordinator/index/served.h"
#include "coordinator/store/artifact.h"
#include "coordinator/store/history.h"
#include "coordinator/store/history_admin.h"
#include "coordinator/store/sign.h"
#include "ir/canonical/canonical.h"
#include "ir/notation/notation.h"
#include "ir/reference/reference.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything that one answer needs: too large for a stack. */
struct choosing {
    struct wpk_choice choice;
    struct wpk_program program; /* canonical */
    struct wpk_buf document;    /* the kernel's, of the store */
    struct wpk_history_choice facts;
    char file[WPK_CHOICE_FILE_MAX];
    uint64_t problem_id;
    char artifact[WPK_CHOICE_HASH_MAX]; /* the best of our own; "": none */
    char provider[WPK_CHOICE_TEXT_MAX]; /* of it */
    char candidate[WPK_CANDIDATE_TEXT_MAX];
    char vendor[WPK_CHOICE_TEXT_MAX]; /* whose is timed beside it; "": nobody's */
    bool vendor_wins;
    bool classed; /* choice.accuracy was asked for */
    bool revoked;
    bool plain_lost; /* its file is gone or damaged */
};

/* ---- what is asked for */

static bool is_file(const char *name)
{
    return (isalnum((unsigned char)name[0]) != 0 || name[0] == '_') &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                        " _.,+=@~-") == strlen(name);
}

static void get_request(struct wpk_json_reader *r, void *out)
{
    struct choosing *c = out;
    WPK_JSON_ALLOW(r, "file", "binding", "accuracy");
    wpk_json_get_copy(r, "file", c->file, sizeof c->file);
    if (wpk_json_status(r) == WPK_OK && !is_file(c->file)) {
        wpk_json_fail(r, "file", WPK_EINVAL,
                      "a file's name has letters, digits and _.,+=@~- or spaces, and begins "
                      "with a letter, a digit or _");
    }
    if (wpk_json_has(r, "binding")) {
        wpk_choice_get_binding(r, &c->choice);
    }
    c->classed = wpk_json_has(r, "accuracy");
    wpk_accuracy_get(r, "accuracy", &c->choice.accuracy);
}

/* ---- the kernel */

static void keep_row(void *user, const struct wpk_kernel_row *row)
{
    struct choosing *c = user;
    c->revoked = row->revoked_at != 0;
    c->problem_id = row->problem_id;
    wpk_buf_append_text(&c->document, row->document);
}

static bool given(const struct wpk_json_reader *r, const char *key)
{
    enum wpk_json_kind kind = wpk_json_kind_of(r, key);
    return kind != WPK_JSON_ABSENT && kind != WPK_JSON_NULL;
}

/* A contender that has an artifact, the first alone. */
static void get_own(struct wpk_json_reader *r, struct choosing *c)
{
    if (c->artifact[0] == '\0' && given(r, "artifact")) {
        wpk_json_get_copy(r, "artifact", c->artifact, sizeof c->artifact);
        wpk_json_get_copy(r, "provider", c->provider, sizeof c->provider);
        wpk_json_get_copy(r, "candidate", c->candidate, sizeof c->candidate);
    }
}

static wpk_err read_document(struct choosing *c, struct wpk_diag *diag)
{
    struct wpk_choice *choice = &c->choice;
    struct wpk_json_reader *r = NULL;
    wpk_err err = wpk_json_open(wpk_buf_text(&c->document), c->document.size, 0, &r, diag);
    if (err != WPK_OK) {
        return err;
    }
    wpk_json_get_copy(r, "fingerprint", choice->fingerprint, sizeof choice->fingerprint);
    wpk_json_get_copy(r, "layouts", choice->layouts, sizeof choice->layouts);
    choice->threads = (int)wpk_json_get_int(r, "threads", 1, WPK_JSON_INT_MAX);
    const char *op = wpk_json_get_text(r, "op", WPK_CHOICE_OP_MAX);
    err = wpk_json_status(r);
    err = err == WPK_OK ? wpk_program_parse(op, &c->program, diag) : err;
    get_own(r, c);
    c->vendor_wins = c->artifact[0] == '\0';
    if (given(r, "own")) {
        wpk_json_enter(r, "own");
        get_own(r, c);
        wpk_json_leave(r);
    }
    if (given(r, "baseline")) {
        wpk_json_enter(r, "baseline");
        wpk_json_get_copy(r, "provider", c->vendor, sizeof c->vendor);
        wpk_json_leave(r);
    }
    err = err == WPK_OK ? wpk_json_status(r) : err;
    wpk_json_close(r);
    return err;
}

/* ---- names */

/* NULL: the asker does not see such tensors. */
static struct wpk_choice_list *list_of(struct wpk_choice *choice, enum wpk_role role)
{
    switch (role) {
    case WPK_ROLE_INPUT:
        return &choice->inputs;
    case WPK_ROLE_CONSTANT:
        return &choice->constants;
    case WPK_ROLE_OUTPUT:
        return &choice->outputs;
    default:
        return NULL;
    }
}

static int bound_count(const struct wpk_choice *choice)
{
    return choice->inputs.count + choice->constants.count + choice->outputs.count;
}

/* Without a binding the asker's names are the kernel's. */
static void bind_as_named(struct choosing *c)
{
    for (int i = 0; i < c->program.tensor_count; i++) {
        const struct wpk_tensor *tensor = &c->program.tensors[i];
        struct wpk_choice_list *list = list_of(&c->choice, tensor->role);
        if (list != NULL && list->count < WPK_CHOICE_TENSORS_MAX) {
            struct wpk_choice_tensor *entry = &list->tensor[list->count++];
            memcpy(entry->name, tensor->name, sizeof entry->name);
            memcpy(entry->canonical, tensor->name, sizeof entry->canonical);
        }
    }
}

static bool is_asked(const struct wpk_choice_list *list, const char *name)
{
    return WPK_FIND(struct wpk_choice_tensor, name, list->tensor, list->count, name) >= 0;
}

/* A tensor that the asker does not see, where he calls one of his so. */
static void move_away(const struct wpk_choice *choice, struct wpk_tensor *tensor)
{
    size_t size = strlen(tensor->name);
    while (size + 1 < sizeof tensor->name &&
           (is_asked(&choice->inputs, tensor->name) || is_asked(&choice->constants, tensor->name) ||
            is_asked(&choice->outputs, tensor->name))) {
        memmove(tensor->name + 1, tensor->name, ++size);
        tensor->name[0] = '_';
    }
}

/* The canonical program under the asker's names. False where the binding lacks a tensor or has one
 * too many. */
static bool rename_tensors(struct wpk_choice *choice, struct wpk_program *program)
{
    int bound = 0;
    for (int i = 0; i < program->tensor_count; i++) {
        struct wpk_tensor *tensor = &program->tensors[i];
        const struct wpk_choice_list *list = list_of(choice, tensor->role);
        int place = 0;
        if (list == NULL) {
            move_away(choice, tensor);
            continue;
        }
        while (place < list->count && strcmp(list->tensor[place].canonical, tensor->name) != 0) {
            place++;
        }
        if (place == list->count) {
            return false;
        }
        memcpy(tensor->name, list->tensor[place].name, sizeof tensor->name);
        bound++;
    }
    return bound == bound_count(choice);
}

/* Check that the operator to be signed has the fingerprint of the kernel. */
static wpk_err check_operator(const struct wpk_choice *choice, struct wpk_diag *diag)
{
    struct wpk_program program = {.tensor_count = 0};
    struct wpk_fingerprint fingerprint;
    wpk_err err = wpk_program_parse(choice->op, &program, diag);
    if (err == WPK_OK) {
        err = wpk_fingerprint(&program, &fingerprint);
        wpk_program_fini(&program);
    }
    if (err == WPK_OK && strcmp(fingerprint.exact, choice->fingerprint) != 0) {
        err = wpk_fail(diag, WPK_EINVAL, "with these names it is another operator");
    }
    return err;
}

static wpk_err write_operator(struct choosing *c, struct wpk_diag *diag)
{
    struct wpk_program *program = calloc(1, sizeof *program);
    struct wpk_buf text = {0};
    wpk_err err = program != NULL ? wpk_program_copy(&c->program, program) : WPK_ENOMEM;
    if (err == WPK_OK && !rename_tensors(&c->choice, program)) {
        err = wpk_fail(diag, WPK_EINVAL, "name each tensor of the kernel's operator once");
    }
    err = err == WPK_OK ? wpk_program_print(program, &text) : err;
    err = err == WPK_OK ? wpk_buf_take(&text, &c->choice.op, NULL) : err;
    err = err == WPK_OK ? check_operator(&c->choice, diag) : err;
    wpk_buf_fini(&text);
    wpk_program_fini(program);
    free(program);
    return err;
}

/* ---- the chain */

/* All are in the class that the kernel was searched in. */
static bool is_accurate(const struct choosing *c, double times_direct)
{
    return wpk_accuracy_serves(c->choice.accuracy, c->facts.accuracy, times_direct);
}

static void add_own(struct choosing *c)
{
    if (c->artifact[0] != '\0' && is_accurate(c, c->facts.own_times_direct)) {
        struct wpk_choice_entry *entry = &c->choice.chain[c->choice.chain_count++];
        entry->kind = WPK_CHOICE_KERNEL;
        memcpy(entry->file, c->file, sizeof entry->file);
        memcpy(entry->sha256, c->artifact, sizeof entry->sha256);
    }
}

/* NULL: there is one. */
static const char *plain_missing(const struct choosing *c)
{
    if (c->plain_lost) {
        return "its file is missing or damaged in the service's artifacts; tune the operator again";
    }
    if (c->facts.plain_sha256[0] == '\0') {
        return "none was built, or it was revoked; wpkctl trials JOB says why";
    }
    return is_accurate(c, c->facts.plain_times_direct)
               ? NULL
               : "its error is outside the accuracy class that was asked for";
}

/* "c6.so": "c6.plain.so". */
static wpk_err add_plain(struct choosing *c, struct wpk_diag *diag)
{
    static const char end[] = ".so";
    size_t size = strlen(c->file);
    const char *missing = plain_missing(c);
    if (missing != NULL) {
        snprintf(c->choice.plain_missing, sizeof c->choice.plain_missing, "%s", missing);
        return WPK_OK;
    }
    if (size > strlen(end) && strcmp(c->file + size - strlen(end), end) == 0) {
        size -= strlen(end);
    }
    struct wpk_choice_entry *entry = &c->choice.chain[c->choice.chain_count];
    int written =
        snprintf(entry->file, sizeof entry->file, "%.*s.plain%s", (int)size, c->file, end);
    if (written >= (int)sizeof entry->file) {
        return wpk_fail(diag, WPK_ERANGE,
                        "file: %zu bytes leave no room for the plain kernel's name", size);
    }
    entry->kind = WPK_CHOICE_PLAIN;
    memcpy(entry->sha256, c->facts.plain_sha256, sizeof entry->sha256);
    c->choice.chain_count++;
    return WPK_OK;
}

/* A recipe that this wpkd does not understand is none. */
static void add_vendor(struct choosing *c)
{
    struct wpk_choice_entry *entry = &c->choice.chain[c->choice.chain_count];
    const struct wpk_buf *recipe = &c->facts.recipe;
    if (recipe->size == 0 || !is_accurate(c, c->facts.vendor_times_direct) ||
        wpk_choice_entry_decode(recipe->data, recipe->size, entry, NULL) != WPK_OK) {
        return;
    }
    if (entry->kind == WPK_CHOICE_VENDOR) {
        c->choice.chain_count++;
    } else {
        wpk_choice_entry_fini(entry);
    }
}

static wpk_err make_chain(struct choosing *c, struct wpk_diag *diag)
{
    void (*const first)(struct choosing * c) = c->vendor_wins ? add_vendor : add_own;
    void (*const second)(struct choosing * c) = c->vendor_wins ? add_own : add_vendor;
    first(c);
    second(c);
    wpk_err err = add_plain(c, diag);
    bool narrow = c->choice.accuracy.times_direct < c->facts.accuracy.times_direct;
    if (err == WPK_OK && c->choice.chain_count == 0 && narrow) {
        return wpk_fail(diag, WPK_EMISMATCH,
                        "accuracy: no implementation of this kernel's operator is known to be "
                        "in the class; tune it for that class");
    }
    if (err == WPK_OK && c->choice.chain_count == 0) {
        return wpk_fail(diag, WPK_ENOENT,
                        "there is nothing to run: no generated kernel was kept, the vendor's "
                        "recipe is not on record, and there is no plain kernel; tune it again");
    }
    return err;
}

/* ---- answering */

/* Forget a file that is gone or damaged: what is next best is served. */
static void keep_whole(const struct wpk_call *call, char sha256[WPK_CHOICE_HASH_MAX])
{
    struct wpk_buf bytes = {0};
    if (sha256[0] != '\0' &&
        wpk_artifact_look(call->api->data_dir, sha256, &bytes, NULL) != WPK_OK) {
        sha256[0] = '\0';
    }
    wpk_buf_fini(&bytes);
}

/* False after answering with a problem. */
static bool read_kernel(struct wpk_call *call, struct choosing *c, uint64_t id)
{
    struct wpk_diag diag = {0};
    struct wpk_store *store = call->api->store;
    if (!wpk_history_read_kernel(store, id, keep_row, c)) {
        return wpk_call_problem(call, 404, WPK_ENOENT, "",
                                "no such kernel; the list of kernels has their ids");
    }
    if (c->revoked) {
        return wpk_call_problem(call, 410, WPK_ENOENT, "",
                                "the kernel was revoked; look its operator up again for another");
    }
    wpk_err err = wpk_buf_status(&c->document);
    err = err == WPK_OK ? read_document(c, &diag) : err;
    const struct wpk_history_chain chain = {.artifact = c->artifact,
                                            .provider = c->provider,
                                            .candidate = c->candidate,
                                            .vendor = c->vendor};
    if (err == WPK_OK && !wpk_history_read_choice(store, id, &chain, &c->facts)) {
        err = WPK_ENOENT;
    }
    /* The served kernel's row names what was best when it was made. */
    if (err == WPK_OK && (strcmp(c->artifact, c->facts.plain_sha256) == 0 ||
                          wpk_history_is_revoked(store, c->problem_id, "", c->artifact))) {
        c->artifact[0] = '\0';
    }
    keep_whole(call, c->artifact);
    c->plain_lost = c->facts.plain_sha256[0] != '\0';
    keep_whole(call, c->facts.plain_sha256);
    c->plain_lost = c->plain_lost && c->facts.plain_sha256[0] == '\0';
    if (err != WPK_OK) {
        return wpk_api_problem(call->answer, 500, err, &diag);
    }
    c->choice.accuracy = c->classed ? c->choice.accuracy : c->facts.accuracy;
    c->choice.conditions = c->facts.conditions;
    return true;
}

/* Values take some tenths of a second, which a few may take at a time. False after answering that
 * others do. */
static bool make_test(struct wpk_call *call, struct choosing *c)
{
    struct wpk_api_front *front = call->api->front;
    if (front != NULL && !wpk_api_front_begin_large(call)) {
        return false;
    }
    uint64_t seed = wpk_served_key(c->choice.fingerprint);
    if (wpk_selftest_make(&c->program, seed, &c->choice.outputs, &c->choice.test, NULL) != WPK_OK) {
        c->choice.test = (struct wpk_choice_test){.seed = seed}; /* no points: no test */
    }
    if (front != NULL) {
        wpk_api_front_end_large(front, true);
    }
    return true;
}

static void answer(struct wpk_call *call, const struct choosing *c, const char *text, size_t size)
{
    char signature[WPK_SIGNATURE_HEX_SIZE];
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_sign_text(call->api->sign, text, size, signature);
    wpk_json_put_bytes(w, "choice", text, size);
    wpk_json_put_text(w, "signature", signature);
    wpk_json_begin_array(w, "files");
    for (int i = 0; i < c->choice.chain_count; i++) {
        const struct wpk_choice_entry *entry = &c->choice.chain[i];
        if (entry->kind != WPK_CHOICE_VENDOR) {
            wpk_json_begin_object(w, NULL);
            wpk_json_put_text(w, "file", entry->file);
            wpk_json_put_text(w, "sha256", entry->sha256);
            wpk_json_end(w);
        }
    }
    wpk_json_end(w);
    wpk_call_json(call, w);
}

static void choose(struct wpk_call *call, struct choosing *c)
{
    struct wpk_diag diag = {0};
    struct wpk_buf text = {0};
    if (bound_count(&c->choice) == 0) {
        bind_as_named(c);
    }
    wpk_err err = write_operator(c, &diag);
    err = err == WPK_OK ? make_chain(c, &diag) : err;
    if (err == WPK_OK && !make_test(call, c)) {
        return;
    }
    err = err == WPK_OK ? wpk_choice_encode(&c->choice, &text) : err;
    if (err == WPK_OK) {
        answer(call, c, text.data, text.size);
    } else {
        bool asked = err == WPK_EPARSE || err == WPK_EMISMATCH;
        wpk_api_problem(call->answer, asked ? 422 : wpk_api_status(err), err, &diag);
    }
    wpk_buf_fini(&text);
}

void wpk_api_choose_kernel(struct wpk_call *call)
{
    uint64_t id;
    if (!wpk_call_kernel_id(call, &id)) {
        return;
    }
    if (call->api->sign == NULL) {
        wpk_call_problem(call, 404, WPK_ENOENT, "", "this wpkd signs nothing");
        return;
    }
    struct choosing *c = WPK_DEMAND(calloc(1, sizeof *c));
    if (wpk_call_read(call, get_request, c) && read_kernel(call, c, id)) {
        choose(call, c);
    }
    wpk_choice_fini(&c->choice);
    wpk_program_fini(&c->program);
    wpk_buf_fini(&c->document);
    wpk_buf_fini(&c->facts.recipe);
    free(c);
}
