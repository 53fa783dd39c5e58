/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and checks a choice, and tries its entries from the best one on. Each entry that cannot be
 * used here adds a line with the reason.
 *
 * The self-test prepares a kernel with constants of its own, so it runs on a kernel that is opened
 * for the test alone. */
#include "common/fs.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct walk {
    const char *path;
    const struct wpk_open_options *options;
    const struct wpk_device *device;
    const struct wpk_choice *choice;
    struct wpk_buf reasons;
};

static wpk_err load_file(const struct walk *walk, const struct wpk_choice_entry *entry,
                         struct wpk_kernel **out, struct wpk_diag *diag)
{
    const struct wpk_kernel_origin origin = {.sha256 = entry->sha256,
                                             .fingerprint = walk->choice->fingerprint,
                                             .plain = entry->kind == WPK_CHOICE_PLAIN};
    const char *slash = strrchr(walk->path, '/');
    const struct wpk_kernel_request request = {
        .options = walk->options, .device = walk->device, .origin = &origin};
    int directory = slash != NULL ? (int)(slash - walk->path) + 1 : 0;
    struct wpk_buf path = {0};

    wpk_buf_printf(&path, "%.*s%s", directory, walk->path, entry->file);
    wpk_err err = wpk_buf_status(&path);
    err = err == WPK_OK ? wpk_kernel_load(path.data, &request, out, diag) : err;
    wpk_buf_fini(&path);
    return err;
}

static wpk_err load_entry(const struct walk *walk, const struct wpk_choice_entry *entry,
                          struct wpk_kernel **out, struct wpk_diag *diag)
{
    const struct wpk_vendor_options options = {.provider = entry->provider,
                                               .version = entry->version,
                                               .library_dir = walk->options->library_dir,
                                               .threads = walk->choice->threads};
    struct wpk_kernel *kernel = NULL;

    wpk_err err = entry->kind == WPK_CHOICE_VENDOR
                      ? wpk_kernel_of_recipe(entry->recipe, &options, &kernel, diag)
                      : load_file(walk, entry, &kernel, diag);
    err = err == WPK_OK ? wpk_kernel_bind(kernel, walk->choice, diag) : err;
    if (err != WPK_OK) {
        wpk_kernel_close(kernel);
        return err;
    }
    *out = kernel;
    return WPK_OK;
}

static wpk_err try_entry(const struct walk *walk, const struct wpk_choice_entry *entry,
                         struct wpk_kernel **out, struct wpk_diag *diag)
{
    struct wpk_kernel *kernel = NULL;

    wpk_err err = load_entry(walk, entry, &kernel, diag);
    if (err != WPK_OK) {
        return err;
    }
    if (!walk->options->self_test && !wpk_kernel_is_by_driver(kernel)) {
        *out = kernel;
        return WPK_OK;
    }
    err = wpk_choice_has_test(walk->choice)
              ? wpk_self_test_run(kernel, walk->choice, diag)
              : wpk_fail(diag, WPK_EUNSUPPORTED,
                         "the driver compiles this kernel from PTX, and the choice has no "
                         "self-test for it");
    wpk_kernel_close(kernel);
    return err == WPK_OK ? load_entry(walk, entry, out, diag) : err;
}

/* Open the first entry of the chain that can be opened. A lack of memory ends the walk: there would
 * be none for the next entry either. */
static wpk_err walk_chain(struct walk *walk, struct wpk_kernel **out, struct wpk_diag *diag)
{
    for (int i = 0; i < walk->choice->chain_count; i++) {
        struct wpk_kernel *kernel = NULL;
        struct wpk_diag own = {0};
        const struct wpk_choice_entry *entry = &walk->choice->chain[i];
        const char *kind = wpk_choice_kind_name(entry->kind);
        wpk_err err = try_entry(walk, entry, &kernel, &own);
        if (err == WPK_ENOMEM) {
            return err;
        }
        if (err != WPK_OK) {
            wpk_buf_printf(&walk->reasons, "%s%d (%s): %s", walk->reasons.size > 0 ? "\n" : "", i,
                           kind, own.text[0] != '\0' ? own.text : wpk_err_text(err));
            continue;
        }
        err = wpk_buf_status(&walk->reasons);
        if (err == WPK_OK && walk->reasons.size > 0) {
            err = wpk_buf_take(&walk->reasons, &kernel->reason, NULL);
        }
        if (err != WPK_OK) {
            wpk_kernel_close(kernel);
            return err;
        }
        kernel->taken = (struct wpk_choice_taken){
            .index = i, .kind = kind, .reason = kernel->reason != NULL ? kernel->reason : ""};
        *out = kernel;
        return WPK_OK;
    }
    const char *missing = walk->choice->plain_missing;
    return wpk_fail(diag, WPK_EEXHAUSTED, "nothing that %s names can be run here%s%s:\n%s",
                    walk->path, missing[0] != '\0' ? ", and it has no plain kernel, because " : "",
                    missing, wpk_buf_text(&walk->reasons));
}

static wpk_err read_choice(const char *path, const char *public_key, struct wpk_choice *out,
                           struct wpk_diag *diag)
{
    struct wpk_buf text = {0};

    wpk_buf_init(&text, WPK_CHOICE_SIZE_MAX);
    wpk_err err = wpk_fs_read(path, WPK_CHOICE_SIZE_MAX, &text, diag);
    if (err == WPK_OK && public_key != NULL) {
        err = wpk_trust_signed(path, "", public_key, &text, diag);
    }
    if (err == WPK_OK) {
        err = wpk_choice_decode(wpk_buf_text(&text), text.size, out, diag);
        bool ours = err == WPK_OK || err == WPK_ENOMEM || err == WPK_EMISMATCH;
        err = ours ? err : WPK_ECORRUPT;
        if (err != WPK_OK && diag != NULL) {
            snprintf(diag->file, sizeof(diag->file), "%s", path);
        }
    }
    wpk_buf_fini(&text);
    return err == WPK_ERANGE ? WPK_ECORRUPT : err;
}

wpk_err wpk_open(const char *path, const struct wpk_open_options *options, struct wpk_kernel **out,
                 struct wpk_diag *diag)
{
    static const struct wpk_open_options none = {0};
    struct wpk_device device;

    options = options == NULL ? &none : options;
    wpk_err err = wpk_kernel_device(options, &device, diag);
    if (err != WPK_OK) {
        return err;
    }
    struct wpk_choice *choice = calloc(1, sizeof(*choice));
    if (choice == NULL) {
        return WPK_ENOMEM;
    }
    err = read_choice(path, options->public_key, choice, diag);
    if (err == WPK_OK && options->self_test && !wpk_choice_has_test(choice)) {
        err = wpk_fail(diag, WPK_EUNSUPPORTED, "%s has no self-test", path);
    }
    if (err == WPK_OK) {
        struct walk walk = {.path = path, .options = options, .device = &device, .choice = choice};
        err = walk_chain(&walk, out, diag);
        wpk_buf_fini(&walk.reasons);
    }
    wpk_choice_fini(choice);
    free(choice);
    return err;
}
