/* SPDX-License-Identifier: Apache-2.0 */
/* One build, in a child of wpk-builder whose working directory is the build's own:
 *
 *     schedule ──▶ main.o ──────┐
 *              └─▶ prepare.o ───┼──ld──▶ kernel.so ──▶ sealed
 *     stub.o, manifest ─────────┘
 *
 * A back end that makes images makes main.image and prepare.image instead of objects; the second
 * one is empty if nothing is prepared.
 *
 * Candidates of one algorithm mostly share their prepare program, whose object is kept by hash. */
#include "worker/builder/builder.h"

#include "common/crypto.h"
#include "common/fs.h"
#include "ir/notation/notation.h"
#include "nest/schedule.h"
#include "runtime/kernel/manifest.h"
#include "runtime/kernel/trust.h"
#include "runtime/link.h"
#include "schema/device.h"
#include "target/c/compiler.h"
#include "target/codegen.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SCHEDULE_SIZE_MAX ((size_t)1 << 20)
#define PATH_SIZE_MAX 4096

/* Translate WPK_ENOSPC of a step that writes no file: the schedule exceeds a limit of ir/ or
 * target/. */
static wpk_err of_schedule(wpk_err err)
{
    return err == WPK_ENOSPC ? WPK_ERANGE : err;
}

/* Each build looks again for what compiles it: the worker offers the version that it found when it
 * started, which the manifest and the trial's record name. */
static wpk_err check_version(const struct wpk_schedule *schedule, struct wpk_diag *diag)
{
    static struct wpk_manifest manifest; /* large */
    struct wpk_buf text = {0};
    char version[WPK_CODEGEN_VERSION_MAX];
    wpk_err err = wpk_fs_read("manifest", WPK_MANIFEST_SIZE_MAX, &text, diag);
    err = err == WPK_OK ? wpk_manifest_decode(text.data, text.size, &manifest, diag) : err;
    wpk_buf_fini(&text);
    if (err != WPK_OK) {
        return err;
    }
    err = wpk_codegen_version(wpk_codegen_find(schedule->by), version, diag);
    if (err == WPK_OK && strcmp(manifest.version_codegen, version) != 0) {
        err = wpk_fail(diag, WPK_ENOENT, "%s was %s when the worker started, and is %s now",
                       schedule->by, manifest.version_codegen, version);
    }
    wpk_manifest_fini(&manifest);
    return err;
}

/* A GPU's kernel is an image of launches (schema/launch_plan.h), not an object with functions. */
static bool makes_image(const struct wpk_schedule *schedule)
{
    return strcmp(wpk_codegen_find(schedule->by)->kind, WPK_DEVICE_CUDA) == 0;
}

static const char *suffix_of(const struct wpk_schedule *schedule)
{
    return makes_image(schedule) ? "image" : "o";
}

/* The cached object's path: a hash of all that decides its bytes. */
static wpk_err name_prepare(const struct wpk_builder_options *options,
                            const struct wpk_schedule *prepare, char path[PATH_SIZE_MAX],
                            struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    char version[WPK_CODEGEN_VERSION_MAX] = "";
    wpk_err err = wpk_codegen_find(prepare->by)->find(version, diag);
    if (err == WPK_ENOENT) {
        return WPK_EUNSUPPORTED;
    }
    wpk_buf_printf(&text, "wpk " WPK_VERSION "\n%s %s %s\n", prepare->by, version, prepare->target);
    err = err == WPK_OK ? wpk_program_print(&prepare->main, &text) : err;
    err = err == WPK_OK ? wpk_buf_status(&text) : err;
    if (err == WPK_OK) {
        char hash[WPK_SHA256_HEX_SIZE];
        wpk_crypto_sha256_hex(text.data, text.size, hash);
        int size =
            snprintf(path, PATH_SIZE_MAX, "%s/%s.%s", options->cache_dir, hash, suffix_of(prepare));
        err = size < PATH_SIZE_MAX ? WPK_OK : WPK_ERANGE;
    }
    wpk_buf_fini(&text);
    return err;
}

/* Leave `prepare.o` or `prepare.image` in the directory if there is something to prepare, from the
 * cache if it is there. */
static wpk_err build_prepare(const struct wpk_builder_options *options,
                             const struct wpk_schedule *schedule, struct wpk_diag *diag)
{
    static struct wpk_schedule prepare; /* large */
    char path[PATH_SIZE_MAX];
    char name[32];
    snprintf(name, sizeof(name), "prepare.%s", suffix_of(schedule));
    if (schedule->prepare.stage_count == 0) {
        return makes_image(schedule) ? wpk_fs_write(name, "", 0, 0644, diag) : WPK_OK;
    }
    wpk_err err = of_schedule(wpk_prepare_schedule(schedule, &prepare));
    if (err != WPK_OK) {
        return err;
    }
    err = name_prepare(options, &prepare, path, diag);
    /* A build that is tried again finds the cache's own file here, not to be written over. */
    unlink(name);
    if (err == WPK_OK && link(path, name) != 0) {
        err = wpk_emit(&prepare, "wpk_prepare", name, diag);
        if (err == WPK_OK) {
            /* Whole from the first moment; whoever made the same one first wins. A cache that
             * cannot be written costs time, nothing else. */
            (void)!link(name, path);
        }
    }
    wpk_schedule_fini(&prepare);
    return err;
}

static wpk_err link_kernel(const struct wpk_builder_options *options, enum wpk_link_kind kind,
                           struct wpk_diag *diag)
{
    for (const char *const *part = wpk_link_parts(kind); *part != NULL; part++) {
        char path[PATH_SIZE_MAX];
        snprintf(path, sizeof(path), "%s/%s", options->cache_dir, *part);
        if (link(path, *part) != 0 && errno != EEXIST) {
            return wpk_fs_fail(path, diag);
        }
    }
    wpk_err err = wpk_c_compiler_run(wpk_link_command(kind), NULL, NULL, 0);
    if (err != WPK_OK) {
        wpk_diag_set(diag, err == WPK_ENOENT   ? "there is no linker: ld is not in PATH"
                           : err == WPK_ENOSPC ? "the linker finds the disk full"
                                               : "the linker failed");
    }
    return err == WPK_OK ? wpk_seal_write("kernel.so", diag) : err;
}

static wpk_err build(const struct wpk_builder_options *options, struct wpk_diag *diag)
{
    static struct wpk_schedule schedule; /* large */
    struct wpk_buf text = {0};
    wpk_err err = wpk_fs_read("schedule", SCHEDULE_SIZE_MAX, &text, diag);
    err =
        err == WPK_OK ? of_schedule(wpk_schedule_parse(wpk_buf_text(&text), &schedule, diag)) : err;
    wpk_buf_fini(&text);
    if (err != WPK_OK) {
        return err;
    }
    err = of_schedule(wpk_codegen_check(&schedule, diag));
    if (err != WPK_OK) {
        wpk_schedule_fini(&schedule);
        return err;
    }
    err = check_version(&schedule, diag);
    err = err == WPK_OK ? build_prepare(options, &schedule, diag) : err;
    if (err == WPK_OK) {
        char name[32];
        snprintf(name, sizeof(name), "main.%s", suffix_of(&schedule));
        err = wpk_emit(&schedule, "wpk_main", name, diag);
    }
    enum wpk_link_kind kind = makes_image(&schedule)             ? WPK_LINK_IMAGES
                              : schedule.prepare.stage_count > 0 ? WPK_LINK_WITH_PREPARE
                                                                 : WPK_LINK_MAIN;
    err = err == WPK_OK ? link_kernel(options, kind, diag) : err;
    wpk_schedule_fini(&schedule);
    return err;
}

wpk_err wpk_builder_build(const struct wpk_builder_options *options)
{
    struct wpk_diag diag = {0};
    wpk_err err = build(options, &diag);
    if (err != WPK_OK) {
        char text[WPK_DIAG_TEXT_MAX + 256];
        wpk_diag_format(&diag, text, sizeof(text));
        fprintf(stderr, "%s: %s\n", wpk_err_text(err), text);
        fflush(stderr);
    }
    return err;
}
