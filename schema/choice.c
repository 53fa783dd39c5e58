/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/choice.h"

#include "common/crypto.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 1024

static const char *const kind_names[] = {WPK_CHOICE_KIND_LIST(WPK_LIST_TEXT)};

const char *wpk_choice_kind_name(enum wpk_choice_kind kind)
{
    WPK_ASSERT(kind < WPK_CHOICE_KIND_COUNT);
    return kind_names[kind];
}

void wpk_choice_entry_fini(struct wpk_choice_entry *entry)
{
    if (entry != NULL) {
        free(entry->recipe);
        *entry = (struct wpk_choice_entry){0};
    }
}

void wpk_choice_fini(struct wpk_choice *choice)
{
    if (choice == NULL) {
        return;
    }
    for (int i = 0; i < choice->chain_count; i++) {
        wpk_choice_entry_fini(&choice->chain[i]);
    }
    free(choice->op);
    *choice = (struct wpk_choice){0};
}

bool wpk_choice_has_test(const struct wpk_choice *choice)
{
    bool has = choice->outputs.count > 0;

    for (int i = 0; i < choice->outputs.count; i++) {
        has = has && choice->test.output[i].count > 0;
    }
    return has;
}

/* ---- out */

static void put_list(struct wpk_json_writer *w, const char *key, const struct wpk_choice_list *list)
{
    wpk_json_begin_array(w, key);
    for (int i = 0; i < list->count; i++) {
        wpk_json_begin_array(w, NULL);
        wpk_json_put_text(w, NULL, list->tensor[i].name);
        wpk_json_put_text(w, NULL, list->tensor[i].canonical);
        wpk_json_end(w);
    }
    wpk_json_end(w);
}

static void put_expected(struct wpk_json_writer *w, const struct wpk_choice_expected *expected)
{
    wpk_json_begin_object(w, NULL);
    wpk_json_put_ints(w, "points", expected->point, (size_t)expected->count);
    wpk_json_begin_array(w, "values");
    for (int i = 0; i < expected->count; i++) {
        wpk_json_put_real(w, NULL, expected->value[i]);
    }
    wpk_json_end(w);
    wpk_json_put_real(w, "tolerance", expected->tolerance);
    wpk_json_end(w);
}

static void put_test(struct wpk_json_writer *w, const struct wpk_choice *choice)
{
    wpk_json_begin_object(w, "self_test");
    wpk_json_put_u64(w, "seed", choice->test.seed);
    wpk_json_put_text(w, "domain", wpk_draw_domain_name(choice->test.domain));
    wpk_json_begin_array(w, "outputs");
    for (int i = 0; i < choice->outputs.count; i++) {
        put_expected(w, &choice->test.output[i]);
    }
    wpk_json_end(w);
    wpk_json_end(w);
}

static wpk_err put_entry(struct wpk_json_writer *w, const struct wpk_choice_entry *entry)
{
    wpk_err err = WPK_OK;

    wpk_json_put_text(w, "kind", kind_names[entry->kind]);
    if (entry->kind == WPK_CHOICE_VENDOR) {
        WPK_ASSERT(entry->recipe != NULL);
        wpk_json_put_text(w, "provider", entry->provider);
        wpk_json_put_text(w, "version", entry->version);
        err = wpk_recipe_put(w, "recipe", entry->recipe);
    } else {
        wpk_json_put_text(w, "file", entry->file);
        wpk_json_put_text(w, "sha256", entry->sha256);
    }
    return err;
}

wpk_err wpk_choice_entry_encode(const struct wpk_choice_entry *entry, struct wpk_buf *out)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();

    wpk_err err = put_entry(w, entry);
    if (err == WPK_OK) {
        err = wpk_json_print(w, false, out);
    }
    wpk_json_writer_free(w);
    return err;
}

wpk_err wpk_choice_encode(const struct wpk_choice *choice, struct wpk_buf *out)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_err err = WPK_OK;

    WPK_ASSERT(choice->op != NULL);
    WPK_ASSERT(choice->threads >= 1);
    wpk_json_put_int(w, "version", WPK_CHOICE_VERSION);
    wpk_json_put_text(w, "operator", choice->op);
    wpk_json_put_text(w, "fingerprint", choice->fingerprint);
    wpk_accuracy_put(w, "accuracy", choice->accuracy);
    wpk_json_put_text(w, "conditions", wpk_conditions_name(choice->conditions));
    wpk_json_put_text(w, "layouts", choice->layouts);
    wpk_json_put_int(w, "threads", choice->threads);
    wpk_json_begin_object(w, "binding");
    put_list(w, "inputs", &choice->inputs);
    put_list(w, "constants", &choice->constants);
    put_list(w, "outputs", &choice->outputs);
    wpk_json_end(w);
    put_test(w, choice);
    wpk_json_put_text(w, "plain_missing", choice->plain_missing);
    wpk_json_begin_array(w, "chain");
    for (int i = 0; i < choice->chain_count && err == WPK_OK; i++) {
        wpk_json_begin_object(w, NULL);
        err = put_entry(w, &choice->chain[i]);
        wpk_json_end(w);
    }
    wpk_json_end(w);
    if (err == WPK_OK) {
        err = wpk_json_print(w, false, out);
    }
    wpk_json_writer_free(w);
    return err;
}

/* ---- in */

static bool list_holds(const struct wpk_choice_list *list, const struct wpk_choice_tensor *tensor)
{
    for (int i = 0; i < list->count; i++) {
        if (strcmp(list->tensor[i].name, tensor->name) == 0 ||
            strcmp(list->tensor[i].canonical, tensor->canonical) == 0) {
            return true;
        }
    }
    return false;
}

/* As an operator's text can call a tensor. */
static bool is_name(const char *text)
{
    bool ok = isalpha((unsigned char)text[0]) != 0 || text[0] == '_';

    for (const char *at = text; ok && *at != '\0'; at++) {
        ok = isalnum((unsigned char)*at) != 0 || *at == '_';
    }
    return ok;
}

static void get_pair(struct wpk_json_reader *r, struct wpk_choice_tensor *out)
{
    char *const parts[] = {out->name, out->canonical};
    size_t count = 0;

    wpk_json_enter_array(r, NULL);
    while (wpk_json_next(r)) {
        if (count < 2) {
            wpk_json_get_label(r, NULL, parts[count], WPK_NAME_MAX);
        }
        count++;
    }
    wpk_json_leave(r);
    if (count != 2 || !is_name(out->name)) {
        wpk_json_fail(r, NULL, WPK_EINVAL,
                      "give a pair: what the asker calls the tensor, and what the kernel does");
    }
}

static void get_list(struct wpk_json_reader *r, const char *key, const struct wpk_choice *choice,
                     struct wpk_choice_list *list)
{
    wpk_json_enter_array(r, key);
    while (wpk_json_next(r)) {
        struct wpk_choice_tensor tensor = {0};
        get_pair(r, &tensor);
        if (wpk_json_status(r) == WPK_OK && tensor.canonical[0] == '\0') {
            continue;
        }
        if (list->count == WPK_CHOICE_TENSORS_MAX) {
            wpk_json_fail(r, NULL, WPK_ERANGE, "more than %d tensors", WPK_CHOICE_TENSORS_MAX);
        } else if (list_holds(&choice->inputs, &tensor) ||
                   list_holds(&choice->constants, &tensor) ||
                   list_holds(&choice->outputs, &tensor)) {
            wpk_json_fail(r, NULL, WPK_EINVAL, "'%s' or '%s' stands here twice", tensor.name,
                          tensor.canonical);
        } else {
            list->tensor[list->count++] = tensor;
        }
    }
    wpk_json_leave(r);
}

void wpk_choice_get_binding(struct wpk_json_reader *r, struct wpk_choice *choice)
{
    wpk_json_enter(r, "binding");
    WPK_JSON_ALLOW(r, "inputs", "constants", "outputs");
    get_list(r, "inputs", choice, &choice->inputs);
    get_list(r, "constants", choice, &choice->constants);
    get_list(r, "outputs", choice, &choice->outputs);
    if (choice->outputs.count == 0) {
        wpk_json_fail(r, "outputs", WPK_EINVAL, "there must be an output");
    }
    wpk_json_leave(r);
}

static void get_expected(struct wpk_json_reader *r, struct wpk_choice_expected *expected)
{
    int values = 0;

    WPK_JSON_ALLOW(r, "points", "values", "tolerance");
    expected->count = (int)wpk_json_get_ints(r, "points", 0, WPK_ELEMENTS_MAX - 1, expected->point,
                                             WPK_CHOICE_POINTS_MAX);
    wpk_json_enter_array(r, "values");
    while (wpk_json_next(r)) {
        double value = wpk_json_get_real(r, NULL, -1e300, 1e300);
        if (values < expected->count) {
            expected->value[values] = value;
        }
        values++;
    }
    wpk_json_leave(r);
    if (values != expected->count) {
        wpk_json_fail(r, "values", WPK_EINVAL, "%d values for %d points", values, expected->count);
    }
    expected->tolerance = wpk_json_get_real(r, "tolerance", 0, 1e300);
}

static void get_domain(struct wpk_json_reader *r, enum wpk_draw_domain *domain)
{
    char name[16];
    wpk_json_get_label(r, "domain", name, sizeof(name));
    *domain = wpk_draw_domain_find(name);
    if (wpk_json_status(r) == WPK_OK && *domain == WPK_DRAW_DOMAINS) {
        wpk_json_fail(r, "domain", WPK_EINVAL, "no values are drawn from %s", name);
    }
}

static void get_test(struct wpk_json_reader *r, struct wpk_choice *choice)
{
    int outputs = 0;

    wpk_json_enter(r, "self_test");
    WPK_JSON_ALLOW(r, "seed", "domain", "outputs");
    choice->test.seed = wpk_json_get_u64(r, "seed");
    get_domain(r, &choice->test.domain);
    wpk_json_enter_array(r, "outputs");
    while (wpk_json_next(r)) {
        if (outputs < choice->outputs.count) {
            get_expected(r, &choice->test.output[outputs]);
        }
        outputs++;
    }
    wpk_json_leave(r);
    if (outputs != choice->outputs.count) {
        wpk_json_fail(r, "outputs", WPK_EINVAL, "tests of %d outputs, where the binding has %d",
                      outputs, choice->outputs.count);
    }
    wpk_json_leave(r);
}

static void get_hash(struct wpk_json_reader *r, const char *key, char out[WPK_CHOICE_HASH_MAX])
{
    wpk_json_get_copy(r, key, out, WPK_CHOICE_HASH_MAX);
    if (wpk_json_status(r) == WPK_OK && !wpk_crypto_hex_valid(out, WPK_SHA256_SIZE)) {
        wpk_json_fail(r, key, WPK_EINVAL, "not a SHA-256 in hexadecimal");
    }
}

/* A name that stays in the directory of the choice. */
static void get_file(struct wpk_json_reader *r, char out[WPK_CHOICE_FILE_MAX])
{
    wpk_json_get_label(r, "file", out, WPK_CHOICE_FILE_MAX);
    if (out[0] == '\0' || strchr(out, '/') != NULL || strcmp(out, ".") == 0 ||
        strcmp(out, "..") == 0) {
        wpk_json_fail(r, "file", WPK_EINVAL, "'%s' is not the name of a file beside the choice",
                      out);
    }
}

static void get_vendor(struct wpk_json_reader *r, struct wpk_choice_entry *entry)
{
    WPK_JSON_ALLOW(r, "kind", "provider", "version", "recipe");
    wpk_json_get_label(r, "provider", entry->provider, sizeof(entry->provider));
    wpk_json_get_label(r, "version", entry->version, sizeof(entry->version));
    entry->recipe = malloc(sizeof(*entry->recipe));
    if (entry->recipe == NULL) {
        wpk_json_fail(r, "recipe", WPK_ENOMEM, "out of memory");
    } else {
        wpk_recipe_get(r, "recipe", entry->recipe);
    }
}

static void get_entry(struct wpk_json_reader *r, struct wpk_choice_entry *entry)
{
    entry->kind =
        (enum wpk_choice_kind)wpk_json_get_choice(r, "kind", kind_names, WPK_CHOICE_KIND_COUNT);
    if (entry->kind == WPK_CHOICE_VENDOR) {
        get_vendor(r, entry);
    } else {
        WPK_JSON_ALLOW(r, "kind", "file", "sha256");
        get_file(r, entry->file);
        get_hash(r, "sha256", entry->sha256);
    }
}

wpk_err wpk_choice_entry_decode(const char *text, size_t size, struct wpk_choice_entry *out,
                                struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;
    struct wpk_choice_entry entry = {0};

    wpk_err err = wpk_json_open(text, size, WPK_CHOICE_SIZE_MAX, &r, diag);
    if (err != WPK_OK) {
        return err;
    }
    get_entry(r, &entry);
    err = wpk_json_status(r);
    if (err == WPK_OK) {
        *out = entry;
    } else {
        wpk_choice_entry_fini(&entry);
    }
    wpk_json_close(r);
    return err;
}

/* An entry is counted before it is read, so that it is freed with the choice if that fails. */
static void get_chain(struct wpk_json_reader *r, struct wpk_choice *choice)
{
    wpk_json_enter_array(r, "chain");
    while (wpk_json_next(r)) {
        if (choice->chain_count == WPK_CHOICE_CHAIN_MAX) {
            wpk_json_fail(r, NULL, WPK_ERANGE, "more than %d entries", WPK_CHOICE_CHAIN_MAX);
        } else {
            get_entry(r, &choice->chain[choice->chain_count++]);
        }
    }
    wpk_json_leave(r);
    if (choice->chain_count == 0) {
        wpk_json_fail(r, "chain", WPK_EINVAL, "there must be something to run");
    }
}

static void check_plain(struct wpk_json_reader *r, const struct wpk_choice *choice)
{
    bool there = false;

    for (int i = 0; i < choice->chain_count; i++) {
        there = there || choice->chain[i].kind == WPK_CHOICE_PLAIN;
    }
    if (there != (choice->plain_missing[0] == '\0')) {
        wpk_json_fail(r, "plain_missing", WPK_EINVAL,
                      there ? "the chain has a plain kernel, which is said to be missing"
                            : "the chain has no plain kernel, and no reason is given");
    }
}

static void get_choice(struct wpk_json_reader *r, struct wpk_choice *choice)
{
    WPK_JSON_ALLOW(r, "version", "operator", "fingerprint", "accuracy", "conditions", "layouts",
                   "threads", "binding", "self_test", "plain_missing", "chain");
    const char *op = wpk_json_get_text(r, "operator", WPK_CHOICE_OP_MAX);
    if (wpk_json_status(r) == WPK_OK) {
        choice->op = strdup(op);
        if (choice->op == NULL) {
            wpk_json_fail(r, "operator", WPK_ENOMEM, "out of memory");
        }
    }
    get_hash(r, "fingerprint", choice->fingerprint);
    if (!wpk_json_has(r, "accuracy")) {
        wpk_json_fail(r, "accuracy", WPK_EINVAL, "the class is missing");
    }
    choice->accuracy = wpk_accuracy_get(r, "accuracy");
    const char *conditions = wpk_json_get_text(r, "conditions", WPK_CHOICE_TEXT_MAX);
    if (wpk_json_status(r) == WPK_OK &&
        wpk_conditions_parse(conditions, &choice->conditions) != WPK_OK) {
        wpk_json_fail(r, "conditions", WPK_EINVAL, "'%s' are no conditions", conditions);
    }
    wpk_json_get_label(r, "layouts", choice->layouts, sizeof(choice->layouts));
    choice->threads = (int)wpk_json_get_int(r, "threads", 1, THREADS_MAX);
    wpk_choice_get_binding(r, choice);
    get_test(r, choice);
    wpk_json_get_copy(r, "plain_missing", choice->plain_missing, sizeof(choice->plain_missing));
    get_chain(r, choice);
    check_plain(r, choice);
}

wpk_err wpk_choice_decode(const char *text, size_t size, struct wpk_choice *out,
                          struct wpk_diag *diag)
{
    struct wpk_json_reader *r = NULL;

    wpk_err err = wpk_json_open(text, size, WPK_CHOICE_SIZE_MAX, &r, diag);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_choice *choice = calloc(1, sizeof(*choice));
    int64_t version = wpk_json_get_int(r, "version", 1, WPK_JSON_INT_MAX);
    if (choice == NULL) {
        wpk_json_fail(r, NULL, WPK_ENOMEM, "out of memory");
    } else if (wpk_json_status(r) == WPK_OK && version != WPK_CHOICE_VERSION) {
        wpk_json_fail(r, "version", WPK_EMISMATCH,
                      "the choice has version %lld, not %d; "
                      "wpkctl get writes it anew",
                      (long long)version, WPK_CHOICE_VERSION);
    }
    if (wpk_json_status(r) == WPK_OK) {
        get_choice(r, choice);
    }
    err = wpk_json_status(r);
    if (err == WPK_OK) {
        *out = *choice;
        *choice = (struct wpk_choice){0};
    }
    wpk_choice_fini(choice);
    free(choice);
    wpk_json_close(r);
    return err;
}
