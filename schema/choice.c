/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/choice.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 1024

static const char *const kind_names[] = {WPK_CHOICE_KIND_LIST(WPK_LIST_TEXT)};

WPK_LIST_NAME(wpk_choice_kind_name, enum wpk_choice_kind, kind_names)

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

/* ---- tables */

static const char *const conditions_names[] = {WPK_CONDITIONS_LIST(WPK_LIST_TEXT)};
static const char *const domain_names[] = {WPK_DRAW_DOMAIN_LIST(WPK_LIST_TEXT)};
/* As an operator's text can call a tensor. */
static bool is_name(const char *text)
{
    bool ok = isalpha((unsigned char)text[0]) != 0 || text[0] == '_';

    for (const char *at = text; ok && *at != '\0'; at++) {
        ok = isalnum((unsigned char)*at) != 0 || *at == '_';
    }
    return ok;
}

static void put_pair(struct wpk_json_writer *w, const char *key, const void *member)
{
    const struct wpk_choice_tensor *tensor = member;
    wpk_json_begin_array(w, key);
    wpk_json_put_text(w, NULL, tensor->name);
    wpk_json_put_text(w, NULL, tensor->canonical);
    wpk_json_end(w);
}

static void get_pair(struct wpk_json_reader *r, const char *key, void *member)
{
    struct wpk_choice_tensor *out = member;
    char *const parts[] = {out->name, out->canonical};
    size_t count = 0;

    wpk_json_enter_array(r, key);
    while (wpk_json_next(r)) {
        if (count < 2) {
            wpk_json_get_label(r, NULL, parts[count], WPK_NAME_MAX);
        }
        count++;
    }
    wpk_json_leave(r);
    if (count != 2 || !is_name(out->name)) {
        wpk_json_fail(r, key, WPK_EINVAL,
                      "give a pair: what the asker calls the tensor, and what the kernel does");
    }
}

/* True if another tensor of the choice has one of the names. */
static bool is_twice(const struct wpk_choice_list *list, const struct wpk_choice_tensor *tensor)
{
    for (int i = 0; i < list->count; i++) {
        const struct wpk_choice_tensor *other = &list->tensor[i];
        if (other != tensor && (strcmp(other->name, tensor->name) == 0 ||
                                strcmp(other->canonical, tensor->canonical) == 0)) {
            return true;
        }
    }
    return false;
}

/* Leave tensors without a canonical name out; the others have names of their own. */
static void check_binding(struct wpk_json_reader *r, void *object)
{
    struct wpk_choice *choice = object;
    struct wpk_choice_list *const lists[] = {&choice->inputs, &choice->constants, &choice->outputs};
    for (int l = 0; l < 3; l++) {
        int count = 0;
        for (int i = 0; i < lists[l]->count; i++) {
            lists[l]->tensor[count] = lists[l]->tensor[i];
            count += lists[l]->tensor[i].canonical[0] != '\0';
        }
        lists[l]->count = count;
    }
    for (int l = 0; l < 3; l++) {
        for (int i = 0; i < lists[l]->count; i++) {
            const struct wpk_choice_tensor *tensor = &lists[l]->tensor[i];
            if (is_twice(lists[0], tensor) || is_twice(lists[1], tensor) ||
                is_twice(lists[2], tensor)) {
                wpk_json_fail(r, NULL, WPK_EINVAL, "'%s' or '%s' stands here twice", tensor->name,
                              tensor->canonical);
            }
        }
    }
    if (choice->outputs.count == 0) {
        wpk_json_fail(r, "outputs", WPK_EINVAL, "there must be an output");
    }
}

static const struct wpk_field binding_fields[] = {
    {WPK_FIELD_ARRAY("inputs", choice, inputs.tensor, inputs.count,
                     WPK_ITEM_CUSTOM(.put = put_pair, .get = get_pair))},
    {WPK_FIELD_ARRAY("constants", choice, constants.tensor, constants.count,
                     WPK_ITEM_CUSTOM(.put = put_pair, .get = get_pair))},
    {WPK_FIELD_ARRAY("outputs", choice, outputs.tensor, outputs.count,
                     WPK_ITEM_CUSTOM(.put = put_pair, .get = get_pair))},
    {WPK_FIELD_CHECK(check_binding)},
    {WPK_FIELD_END},
};

static const struct wpk_field expected_fields[] = {
    {WPK_FIELD_ARRAY("points", choice_expected, point, count,
                     WPK_ITEM(INT, int64_t, 0, WPK_ELEMENTS_MAX - 1))},
    {WPK_FIELD_ARRAY("values", choice_expected, value, count, WPK_ITEM(REAL, double, -1e300, 1e300),
                     .is_counted = true)},
    {WPK_FIELD_REAL("tolerance", choice_expected, tolerance, 0, 1e300)},
    {WPK_FIELD_END},
};

static const struct wpk_field test_fields[] = {
    {WPK_FIELD(U64, "seed", choice, test.seed)},
    {WPK_FIELD_CHOICE("domain", choice, test.domain, domain_names)},
    {WPK_FIELD_ARRAY("outputs", choice, test.output, outputs.count, expected_fields,
                     .is_counted = true)},
    {WPK_FIELD_END},
};

/* A name that stays in the directory of the choice. */
static void check_file(struct wpk_json_reader *r, void *object)
{
    const struct wpk_choice_entry *entry = object;
    if (entry->file[0] == '\0' || strchr(entry->file, '/') != NULL ||
        strcmp(entry->file, ".") == 0 || strcmp(entry->file, "..") == 0) {
        wpk_json_fail(r, "file", WPK_EINVAL, "'%s' is not the name of a file beside the choice",
                      entry->file);
    }
}

static const struct wpk_field file_fields[] = {
    {WPK_FIELD(LABEL, "file", choice_entry, file)},
    {WPK_FIELD(HASH, "sha256", choice_entry, sha256)},
    {WPK_FIELD_CHECK(check_file)},
    {WPK_FIELD_END},
};

static void put_recipe(struct wpk_json_writer *w, const char *key, const void *member)
{
    wpk_fields_put(w, key, wpk_recipe_fields, *(struct wpk_recipe *const *)member);
}

static void get_recipe(struct wpk_json_reader *r, const char *key, void *member)
{
    struct wpk_recipe **recipe = member;
    const struct wpk_fields_in in = {.r = r};
    *recipe = calloc(1, sizeof(**recipe));
    if (*recipe == NULL) {
        wpk_json_fail(r, key, WPK_ENOMEM, "%s", wpk_err_text(WPK_ENOMEM));
    } else {
        wpk_fields_get(&in, key, wpk_recipe_fields, *recipe);
    }
}

static const struct wpk_field vendor_fields[] = {
    {WPK_FIELD(LABEL, "provider", choice_entry, provider)},
    {WPK_FIELD(LABEL, "version", choice_entry, version)},
    {WPK_FIELD_CUSTOM("recipe", choice_entry, recipe, put_recipe, get_recipe)},
    {WPK_FIELD_END},
};

static const struct wpk_field entry_fields[] = {
    {WPK_FIELD_CHOICE("kind", choice_entry, kind, kind_names)},
    {WPK_FIELD_WHEN(choice_entry, kind, WPK_IS(WPK_CHOICE_VENDOR), vendor_fields)},
    {WPK_FIELD_WHEN(choice_entry, kind, ~WPK_IS(WPK_CHOICE_VENDOR), file_fields)},
    {WPK_FIELD_END},
};

static void check_accuracy(struct wpk_json_reader *r, void *object WPK_UNUSED)
{
    if (!wpk_json_has(r, "accuracy")) {
        wpk_json_fail(r, "accuracy", WPK_EINVAL, "the class is missing");
    }
}

static void check_plain(struct wpk_json_reader *r, void *object)
{
    const struct wpk_choice *choice = object;
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

static const struct wpk_field choice_fields[] = {
    {WPK_FIELD_VERSION(WPK_CHOICE_VERSION, "wpkctl get writes it anew")},
    {WPK_FIELD_OWNED("operator", choice, op, WPK_CHOICE_OP_MAX)},
    {WPK_FIELD(HASH, "fingerprint", choice, fingerprint)},
    {WPK_FIELD_CHECK(check_accuracy)},
    {WPK_FIELD_CUSTOM("accuracy", choice, accuracy, wpk_accuracy_put, wpk_accuracy_get)},
    {WPK_FIELD_CHOICE("conditions", choice, conditions, conditions_names)},
    {WPK_FIELD(LABEL, "layouts", choice, layouts)},
    {WPK_FIELD_INT("threads", choice, threads, 1, THREADS_MAX)},
    {WPK_FIELD_PART("binding", binding_fields)},
    {WPK_FIELD_PART("self_test", test_fields)},
    {WPK_FIELD(COPY, "plain_missing", choice, plain_missing)},
    {WPK_FIELD_ARRAY("chain", choice, chain, chain_count, entry_fields, .min = 1)},
    {WPK_FIELD_CHECK(check_plain)},
    {WPK_FIELD_END},
};

/* ---- documents */

void wpk_choice_get_binding(struct wpk_json_reader *r, struct wpk_choice *choice)
{
    const struct wpk_fields_in in = {.r = r};
    wpk_fields_get(&in, "binding", binding_fields, choice);
}

wpk_err wpk_choice_entry_encode(const struct wpk_choice_entry *entry, struct wpk_buf *out)
{
    return wpk_fields_encode(entry_fields, entry, out);
}

wpk_err wpk_choice_entry_decode(const char *text, size_t size, struct wpk_choice_entry *out,
                                struct wpk_diag *diag)
{
    const struct wpk_fields_text from = {text, size, WPK_CHOICE_SIZE_MAX, NULL, false};
    struct wpk_choice_entry entry = {0};
    wpk_err err = wpk_fields_decode(&from, entry_fields, &entry, diag);
    if (err == WPK_OK) {
        *out = entry;
    } else {
        wpk_choice_entry_fini(&entry);
    }
    return err;
}

wpk_err wpk_choice_encode(const struct wpk_choice *choice, struct wpk_buf *out)
{
    WPK_ASSERT(choice->op != NULL);
    WPK_ASSERT(choice->threads >= 1);
    return wpk_fields_encode(choice_fields, choice, out);
}

wpk_err wpk_choice_decode(const char *text, size_t size, struct wpk_choice *out,
                          struct wpk_diag *diag)
{
    const struct wpk_fields_text from = {text, size, WPK_CHOICE_SIZE_MAX, NULL, false};
    struct wpk_choice *choice = calloc(1, sizeof(*choice));
    if (choice == NULL) {
        return WPK_ENOMEM;
    }
    wpk_err err = wpk_fields_decode(&from, choice_fields, choice, diag);
    if (err == WPK_OK) {
        *out = *choice;
        *choice = (struct wpk_choice){0};
    }
    wpk_choice_fini(choice);
    free(choice);
    return err;
}
