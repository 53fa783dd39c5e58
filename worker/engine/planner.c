/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/engine/planner.h"

#include "ir/notation/notation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAINS 32 /* candidates of which the plain kernel is chosen */

void wpk_planner_init(struct wpk_planner *planner, const struct wpk_device *device)
{
    *planner = (struct wpk_planner){.device = *device};
}

static void close_entry(struct wpk_planner_entry *entry)
{
    if (entry->has_space) {
        wpk_space_fini(&entry->space);
    }
    wpk_program_fini(&entry->program);
    *entry = (struct wpk_planner_entry){0};
}

void wpk_planner_fini(struct wpk_planner *planner)
{
    for (int i = 0; i < WPK_PLANNER_MAX; i++) {
        close_entry(&planner->entries[i]);
    }
}

void wpk_planned_fini(struct wpk_planned *result)
{
    free(result->schedule);
    free(result->manifest);
    *result = (struct wpk_planned){0};
}

wpk_err wpk_planner_open(struct wpk_planner *planner, const struct wpk_planner_request *request,
                         struct wpk_planner_entry **out, struct wpk_diag *diag)
{
    char key[WPK_SHA256_HEX_SIZE];
    const struct wpk_device *device = request->device != NULL ? request->device : &planner->device;
    struct wpk_crypto_hash hash;
    wpk_crypto_hash_init(&hash);
    wpk_crypto_hash_add(&hash, request->op, strlen(request->op) + 1);
    wpk_crypto_hash_add(&hash, request->layouts, strlen(request->layouts) + 1);
    wpk_crypto_hash_add(&hash, &request->threads, sizeof(request->threads));
    bool plain = request->plain > 0;
    wpk_crypto_hash_add(&hash, &plain, sizeof(plain));
    /* A space depends on the device's numbers too, not only on its class. */
    char class[2 * WPK_DEVICE_TEXT_MAX];
    int64_t numbers[] = {device->core_count,       device->cpu.l1_bytes,
                         device->cpu.l2_bytes,     device->cpu.l3_bytes,
                         device->cpu.vector_bytes, device->cpu.vector_registers};
    wpk_device_class(device, class, sizeof(class));
    wpk_crypto_hash_add(&hash, class, strlen(class) + 1);
    wpk_crypto_hash_add(&hash, numbers, sizeof(numbers));
    wpk_crypto_hash_finish_hex(&hash, key);
    struct wpk_planner_entry *oldest = &planner->entries[0];
    for (int i = 0; i < WPK_PLANNER_MAX; i++) {
        struct wpk_planner_entry *entry = &planner->entries[i];
        if (strcmp(entry->key, key) == 0) {
            entry->used = ++planner->used;
            *out = entry;
            return WPK_OK;
        }
        oldest = entry->used < oldest->used ? entry : oldest;
    }
    close_entry(oldest);
    wpk_err err = wpk_program_parse(request->op, &oldest->program, diag);
    err = err == WPK_OK ? wpk_fingerprint(&oldest->program, &oldest->fingerprint) : err;
    if (err != WPK_OK) {
        close_entry(oldest);
        return err;
    }
    oldest->exact = wpk_verify_is_exact(&oldest->program);
    oldest->device = *device;
    oldest->used = ++planner->used;
    memcpy(oldest->key, key, sizeof(key));
    *out = oldest;
    return WPK_OK;
}

static bool ends_with(const struct wpk_gene *gene, const char *end)
{
    size_t size = strlen(gene->name);
    return size > strlen(end) && strcmp(gene->name + size - strlen(end), end) == 0;
}

/* Pin the genes of the plain kernel: direct, sums in the order in which they are written, which is
 * a gene's first choice, and without panels. Without fused multiply-adds and with strict arithmetic
 * it computes the same as direct evaluation, bit for bit, unless a sum is vectorized. */
static wpk_err pin_plain(struct wpk_space *space, struct wpk_diag *diag)
{
    wpk_err err = wpk_space_pin(space, "algorithm", "direct", diag);
    for (int v = 0; v < space->variant_count; v++) {
        const struct wpk_variant *variant = wpk_space_variant(space, v);
        for (int g = 0; variant != NULL && g < variant->gene_count && err == WPK_OK; g++) {
            const struct wpk_gene *gene = &variant->genes[g];
            bool panel = ends_with(gene, ".panel");
            if (!panel && !ends_with(gene, ".red")) {
                continue;
            }
            int choice = panel ? gene->choice_count - 1 : 0;
            err = wpk_space_pin(space, gene->name, gene->choice[choice].text, diag);
        }
    }
    return err;
}

wpk_err wpk_planner_open_space(struct wpk_planner *planner,
                               const struct wpk_planner_request *request,
                               struct wpk_planner_entry **out, struct wpk_diag *diag)
{
    struct wpk_planner_entry *entry = NULL;
    wpk_err err = wpk_planner_open(planner, request, &entry, diag);
    if (err == WPK_OK && !entry->has_space) {
        bool plain = request->plain > 0;
        const struct wpk_space_options options = {
            .layouts = request->layouts,
            .threads = request->threads,
            .strict = plain,
            /* Of a GPU, Halide: its PTX for the oldest architecture is of version 4.0, which all
             * drivers read; NVRTC's wants a driver as new as itself. 0: the first back end. */
            .back_ends = !plain                               ? WPK_BACK_ENDS_ALL
                         : wpk_device_is_cuda(&entry->device) ? 1U << WPK_BACK_END_halide_cuda
                                                              : 0,
            .device = entry->device};
        err = wpk_space_derive(&entry->program, &options, &entry->space, diag);
        if (err == WPK_OK && plain) {
            err = pin_plain(&entry->space, diag);
            if (err != WPK_OK) {
                wpk_space_fini(&entry->space);
            }
        }
        entry->has_space = err == WPK_OK;
    }
    if (err == WPK_OK) {
        *out = entry;
    }
    return err;
}

static struct wpk_verify_rule find_rule(const struct wpk_planner_entry *entry,
                                        const struct wpk_program *program)
{
    bool transforms = wpk_verify_has_transforms(program);
    return (struct wpk_verify_rule){
        .exact = entry->exact && !transforms, .transforms = transforms, .times = WPK_VERIFY_TIMES};
}

/* Text, hash and manifest of a schedule. Looking for a compiler starts processes, which is not for
 * those that only run what is built elsewhere. */
static wpk_err finish(const struct wpk_planner_entry *entry,
                      const struct wpk_planner_request *request,
                      const struct wpk_schedule *schedule, const char *algorithm,
                      const char *candidate, struct wpk_planned *out, struct wpk_diag *diag)
{
    struct wpk_buf text = {0};
    wpk_err err = wpk_schedule_print(schedule, &text);
    if (err == WPK_OK) {
        wpk_crypto_sha256_hex(text.data, text.size, out->schedule_sha256);
        err = wpk_buf_take(&text, &out->schedule, NULL);
    }
    wpk_buf_fini(&text);
    if (err != WPK_OK) {
        return err;
    }
    char version[WPK_CODEGEN_VERSION_MAX];
    out->by = wpk_codegen_find(schedule->by);
    if (request->built) {
        return WPK_OK;
    }
    err = wpk_codegen_version(out->by, version, diag);
    if (err != WPK_OK) {
        return err;
    }
    const struct wpk_package package = {
        .op = request->op,
        .fingerprint = entry->fingerprint.exact,
        .algorithm = algorithm,
        .candidate = candidate,
        .schedule_text = out->schedule,
        .schedule = schedule,
        .emulated = wpk_device_is_emulated(&entry->device),
        .version_codegen = version,
    };
    return wpk_package_manifest(&package, &out->manifest);
}

static wpk_err plan_by_hand(struct wpk_planner *planner, const struct wpk_planner_request *request,
                            struct wpk_schedule *schedule, struct wpk_planned *out,
                            struct wpk_diag *diag)
{
    struct wpk_planner_entry *entry = NULL;
    wpk_err err = wpk_planner_open(planner, request, &entry, diag);
    err = err == WPK_OK ? wpk_schedule_parse(request->schedule, schedule, diag) : err;
    err = err == WPK_OK ? wpk_codegen_check(schedule, diag) : err;
    if (err == WPK_OK) {
        out->rule = find_rule(entry, &schedule->program);
        err = finish(entry, request, schedule, "by hand", "", out, diag);
    }
    return err;
}

/* `by`: the back end that builds it, or NULL: the candidate's own. */
static wpk_err lower_candidate(const struct wpk_planner_entry *entry,
                               const struct wpk_planner_request *request,
                               const struct wpk_candidate *candidate, const char *by,
                               struct wpk_schedule *schedule, struct wpk_planned *out,
                               struct wpk_diag *diag)
{
    wpk_err err = wpk_lower(&entry->space, candidate, schedule, diag);
    if (err == WPK_OK && by != NULL) {
        snprintf(schedule->by, sizeof(schedule->by), "%s", by);
    }
    err = err == WPK_OK ? wpk_codegen_check(schedule, diag) : err;
    if (err != WPK_OK) {
        return err;
    }
    const struct wpk_variant *variant = &entry->space.variants[candidate->variant];
    out->rule = find_rule(entry, &variant->program);
    err = wpk_space_bound(&entry->space, candidate, &out->bound_s);
    if (err != WPK_OK) {
        return err;
    }
    return finish(entry, request, schedule, variant->algorithm, request->candidate, out, diag);
}

static wpk_err plan_candidate(struct wpk_planner *planner,
                              const struct wpk_planner_request *request,
                              struct wpk_schedule *schedule, struct wpk_planned *out,
                              struct wpk_diag *diag)
{
    struct wpk_planner_entry *entry = NULL;
    struct wpk_candidate candidate;
    wpk_err err = wpk_planner_open_space(planner, request, &entry, diag);
    err = err == WPK_OK ? wpk_candidate_decode(&entry->space, request->candidate, &candidate, diag)
                        : err;
    return err == WPK_OK ? lower_candidate(entry, request, &candidate, NULL, schedule, out, diag)
                         : err;
}

/* The candidate's genes say what it is; its number only which of the constructed ones, whose order
 * depends on how many there are. A GPU's have two numbers each: Halide builds it first, then
 * NVRTC. */
static wpk_err plan_plain(struct wpk_planner *planner, const struct wpk_planner_request *request,
                          struct wpk_schedule *schedule, struct wpk_planned *out,
                          struct wpk_diag *diag)
{
    struct wpk_device device = request->device != NULL ? *request->device : planner->device;
    struct wpk_planner_request plain = *request;
    struct wpk_planner_entry *entry = NULL;
    char text[WPK_CANDIDATE_TEXT_MAX];
    struct wpk_candidate *made = WPK_DEMAND(calloc(PLAINS, sizeof(*made)));
    wpk_device_make_plain(&device);
    plain.device = &device;
    plain.threads = 1;
    plain.candidate = text;
    wpk_err err = wpk_planner_open_space(planner, &plain, &entry, diag);
    int count = 0;
    bool gpu = wpk_device_is_cuda(&device);
    int at = gpu ? (request->plain - 1) / 2 : request->plain - 1;
    const char *by = gpu && request->plain % 2 == 0 ? wpk_back_end_name(WPK_BACK_END_cuda) : NULL;
    err = err == WPK_OK ? wpk_space_construct(&entry->space, made, PLAINS, &count) : err;
    if (err == WPK_OK && count <= at) {
        err = wpk_fail(diag, WPK_EUNSUPPORTED, "there is no constructed candidate %d", at + 1);
    }
    const struct wpk_candidate *candidate = err == WPK_OK ? &made[at] : NULL;
    err = err == WPK_OK ? wpk_candidate_encode(&entry->space, candidate, text, sizeof(text)) : err;
    err = err == WPK_OK ? lower_candidate(entry, &plain, candidate, by, schedule, out, diag) : err;
    free(made);
    return err;
}

wpk_err wpk_planner_plan(struct wpk_planner *planner, const struct wpk_planner_request *request,
                         struct wpk_planned *out, struct wpk_diag *diag)
{
    struct wpk_schedule *schedule = WPK_DEMAND(calloc(1, sizeof(*schedule))); /* large */
    struct wpk_planned planned = {0};
    wpk_err err = request->schedule != NULL
                      ? plan_by_hand(planner, request, schedule, &planned, diag)
                  : request->plain > 0 ? plan_plain(planner, request, schedule, &planned, diag)
                                       : plan_candidate(planner, request, schedule, &planned, diag);
    wpk_schedule_fini(schedule);
    free(schedule);
    if (err != WPK_OK) {
        wpk_planned_fini(&planned);
        return err;
    }
    *out = planned;
    return WPK_OK;
}
