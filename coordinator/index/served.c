/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/index/served.h"

#include "common/crypto.h"
#include "common/json.h"
#include "coordinator/store/document.h"
#include "coordinator/store/history_admin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Members of a kernel's document that stand in a match too, under the same name. */
#define SHARED_LIST(X)                                                                             \
    X(provider)                                                                                    \
    X(algorithm)                                                                                   \
    X(detail) X(candidate) X(time_ns) X(speedup) X(baseline) X(accuracy) X(conditions) X(verified)

/* Members that the entry itself has. */
#define PEAK_LIST(X) X(device_peak_flops_per_s) X(device_peak_bytes_per_s)

#define MEMBER_ENUM(name) MEMBER_##name,
enum member {
    SHARED_LIST(MEMBER_ENUM) PEAK_LIST(MEMBER_ENUM) MEMBER_COUNT,
    SHARED_COUNT = MEMBER_device_peak_flops_per_s
};

static const char *const member_names[MEMBER_COUNT] = {
#define MEMBER_NAME(name) #name,
    SHARED_LIST(MEMBER_NAME) PEAK_LIST(MEMBER_NAME)
#undef MEMBER_NAME
};

uint64_t wpk_served_key(const char *hash)
{
    uint64_t key = 0;
    for (int i = 0; i < 16 && hash[i] != '\0'; i++) {
        char digit = hash[i];
        unsigned value = digit >= 'a' ? (unsigned)(digit - 'a' + 10) : (unsigned)(digit - '0');
        key = key << 4 | (value & 15);
    }
    return key;
}

uint64_t wpk_served_device_key(const char *device)
{
    char hash[WPK_SHA256_HEX_SIZE];
    wpk_crypto_sha256_hex(device, strlen(device), hash);
    return wpk_served_key(hash);
}

uint32_t wpk_served_extents(const char *text, float out[WPK_EXTENTS_MAX])
{
    uint32_t count = 0;
    while (*text != '\0') {
        char *end = NULL;
        long extent = strtol(text, &end, 10);
        if (end == text || extent < 1 || count == WPK_EXTENTS_MAX ||
            (*end != '\0' && (*end != ',' || end[1] == '\0'))) {
            return 0;
        }
        out[count++] = log2f((float)extent);
        text = *end == ',' ? end + 1 : end;
    }
    return count;
}

double wpk_served_distance(const struct wpk_served *served, const float *extents)
{
    double distance = 0;
    for (uint32_t i = 0; i < served->extent_count; i++) {
        distance += fabs((double)served->log2_extents[i] - (double)extents[i]);
    }
    return round(distance * 1e4) / 1e4; /* logarithms are kept as floats */
}

/* ---- a document's members, found without parsing it: it is compact JSON of our own making */

/* The first byte after the value that begins at `at`. */
static const char *skip_value(const char *at)
{
    int depth = 0;
    for (; *at != '\0'; at++) {
        if (*at == '"') {
            for (at++; *at != '"' && *at != '\0'; at++) {
                at += *at == '\\' && at[1] != '\0';
            }
            if (*at == '\0') {
                break;
            }
        } else if (*at == '{' || *at == '[') {
            depth++;
        } else if (depth > 0 && (*at == '}' || *at == ']')) {
            depth--;
        } else if (depth == 0 && (*at == ',' || *at == '}' || *at == ']')) {
            break;
        }
    }
    return at;
}

static void find_members(const char *document, struct wpk_text_span out[MEMBER_COUNT])
{
    const char *at = document;
    while (*at == '{' || *at == ',') {
        const char *name = at + 2;
        size_t size = strcspn(name, "\"");
        at = name + size;
        if (at[0] != '"' || at[1] != ':') {
            return;
        }
        const char *value = at + 2;
        at = skip_value(value);
        for (int i = 0; i < MEMBER_COUNT; i++) {
            if (strncmp(member_names[i], name, size) == 0 && member_names[i][size] == '\0') {
                out[i] = (struct wpk_text_span){value, (size_t)(at - value)};
            }
        }
    }
}

/* ---- the answer */

/* One kernel of the store, while its entry is made: the columns of the query in wpk_served_read. */
struct source {
    int64_t id, search_id;
    bool pinned;
    double times_direct, flops, bytes;
    const char *provider, *artifact, *accuracy, *document;
    const char *fingerprint, *layouts, *device, *environment, *policy, *family, *extents;
    const char *strategy, *seed, *space_version, *job, *owner;
    const char *verified_by, *manifest, *signature;
    struct wpk_text_span members[MEMBER_COUNT]; /* of the document */
    struct wpk_history_origin origin;
};

static void put_id(struct wpk_json_writer *w, const char *name, char letter, int64_t id)
{
    char text[24];
    snprintf(text, sizeof text, "%c%lld", letter, (long long)id);
    wpk_json_put_text_or_null(w, name, id != 0 ? text : NULL);
}

static void put_provenance(struct wpk_json_writer *w, const struct source *source)
{
    const struct wpk_history_origin *origin = &source->origin;
    wpk_json_begin_object(w, "provenance");
    put_id(w, "search", 's', source->search_id);
    wpk_json_put_text_or_null(w, "job", source->job);
    put_id(w, "trial", 't', (int64_t)origin->trial_id);
    wpk_json_put_text(w, "worker", origin->worker);
    wpk_json_put_wall(w, "measured", origin->measured_at);
    wpk_json_put_text(w, "strategy", source->strategy);
    wpk_json_put_text(w, "seed", source->seed);
    wpk_json_put_text(w, "space_version", source->space_version);
    wpk_json_end(w);
}

/* The members that every match has. */
static struct wpk_json_writer *write_match(const struct source *source)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    put_id(w, "kernel_id", 'k', source->id);
    wpk_json_put_text(w, "fingerprint", source->fingerprint);
    wpk_json_put_text(w, "device", source->device);
    wpk_json_put_bool(w, "timed", !wpk_device_class_is_emulated(source->device));
    wpk_json_put_text(w, "environment", source->environment);
    for (int i = 0; i < SHARED_COUNT; i++) {
        const struct wpk_text_span *span = &source->members[i];
        struct wpk_buf text = {0};
        wpk_buf_append(&text, span->text, span->size);
        wpk_json_put_raw(w, member_names[i], span->size > 0 ? wpk_buf_text(&text) : "null");
        wpk_buf_fini(&text);
    }
    put_provenance(w, source);
    return w;
}

static wpk_err append_kernel(const struct source *source, struct wpk_buf *out)
{
    const struct wpk_kernel_row row = {
        .id = (uint64_t)source->id,
        .served = true,
        .pinned = source->pinned,
        .verified_by = source->verified_by,
        .job = source->job,
        .owner = source->owner,
        .manifest = source->manifest,
        .signature = source->signature,
        .document = source->document,
    };
    return wpk_document_kernel_row(&row, out);
}

/* Where the parts of the answer stand. */
struct answer {
    struct wpk_buf text;
    size_t match_at;
    size_t match_size;
    size_t kernel_at;
    size_t kernel_size;
};

static wpk_err write_answer(const struct source *source, const struct wpk_served *served,
                            struct answer *out)
{
    struct wpk_buf match = {0};
    struct wpk_json_writer *w = write_match(source);
    wpk_err err = wpk_json_finish(w, false, &match);
    if (err != WPK_OK) {
        wpk_buf_fini(&match);
        return err;
    }
    wpk_buf_printf(&out->text,
                   "{\"match\":\"%s\",\"distance\":0,\"differs\":[],"
                   "\"expected_ns\":{\"median\":%llu,\"mad\":%llu},"
                   "\"expected_from\":\"measured\",\"artifact\":",
                   served->vendor ? "vendor" : "exact", (unsigned long long)served->median_ns,
                   (unsigned long long)served->mad_ns);
    if (served->vendor) {
        wpk_buf_append_text(&out->text, "null,");
    } else {
        wpk_buf_printf(&out->text, "\"%s\",", served->artifact);
    }
    out->match_at = out->text.size;
    out->match_size = match.size - 2; /* without the braces */
    wpk_buf_append(&out->text, match.data + 1, out->match_size);
    wpk_buf_append_text(&out->text, ",\"kernel\":");
    out->kernel_at = out->text.size;
    err = append_kernel(source, &out->text);
    out->kernel_size = out->text.size - out->kernel_at;
    wpk_buf_append_byte(&out->text, '}');
    wpk_buf_fini(&match);
    return err == WPK_OK ? wpk_buf_status(&out->text) : err;
}

/* ---- the entry */

/* The value of "name" in a span `{"name":123,...}`; 0 when it is not there. */
static uint64_t read_number(const struct wpk_text_span *object, const char *name)
{
    size_t size = strlen(name);
    for (size_t at = 0; at + size + 3 < object->size; at++) {
        if (object->text[at] == '"' && strncmp(object->text + at + 1, name, size) == 0 &&
            object->text[at + size + 1] == '"') {
            return strtoull(object->text + at + size + 3, NULL, 10);
        }
    }
    return 0;
}

static double read_real(const struct wpk_text_span *number)
{
    return number->size > 0 ? strtod(number->text, NULL) : 0;
}

static void make_etag(const char *text, size_t size, char out[19])
{
    uint8_t digest[WPK_SHA256_SIZE];
    char digits[17];
    wpk_crypto_sha256(text, size, digest);
    wpk_crypto_hex(digest, 8, digits);
    snprintf(out, 19, "\"%s\"", digits);
}

/* The text of a JSON string that needs no escapes; "" otherwise. */
static char *copy_string(const struct wpk_text_span *span)
{
    bool plain = span->size >= 2 && memchr(span->text, '\\', span->size) == NULL;
    return WPK_DEMAND(strndup(plain ? span->text + 1 : "", plain ? span->size - 2 : 0));
}

static char *copy(const char *text)
{
    return WPK_DEMAND(strdup(text));
}

static void copy_texts(struct wpk_served *served, const struct source *source)
{
    served->fingerprint = copy(source->fingerprint);
    served->family = copy(source->family);
    served->layouts = copy(source->layouts);
    served->device = copy(source->device);
    served->environment = copy(source->environment);
    served->provider = copy(source->provider);
    served->artifact = copy(source->artifact);
    served->candidate = copy_string(&source->members[MEMBER_candidate]);
}

static void copy_extents(struct wpk_served *served, const char *text)
{
    float extents[WPK_EXTENTS_MAX];
    served->extent_count = wpk_served_extents(text, extents);
    float *copied = WPK_DEMAND(malloc((served->extent_count + 1) * sizeof *copied));
    memcpy(copied, extents, served->extent_count * sizeof *copied);
    served->log2_extents = copied;
}

/* The class and what the policy says of it. */
static void read_conditions(struct wpk_served *served, const struct source *source)
{
    char conditions[32] = "";
    served->threads = 1;
    sscanf(source->policy, "threads=%d;conditions=%31[^;]", &served->threads, conditions);
    if (wpk_conditions_parse(conditions, &served->conditions) != WPK_OK) {
        served->conditions = WPK_CONDITIONS_WARM;
    }
    if (wpk_accuracy_parse(source->accuracy, &served->accuracy, NULL) != WPK_OK) {
        served->accuracy = WPK_ACCURACY_STANDARD;
    }
    served->times_direct = source->times_direct;
    served->pinned = source->pinned;
}

static wpk_err fill(struct wpk_served *served, const struct source *source)
{
    copy_texts(served, source);
    copy_extents(served, source->extents);
    served->kernel_id = (uint64_t)source->id;
    served->fingerprint_key = wpk_served_key(served->fingerprint);
    served->family_key = wpk_served_key(served->family);
    served->device_key = wpk_served_device_key(served->device);
    read_conditions(served, source);
    served->vendor = served->artifact[0] == '\0';
    served->flops = source->flops;
    served->bytes = source->bytes;
    served->peak_flops_per_s = read_real(&source->members[MEMBER_device_peak_flops_per_s]);
    served->peak_bytes_per_s = read_real(&source->members[MEMBER_device_peak_bytes_per_s]);
    served->median_ns = read_number(&source->members[MEMBER_time_ns], "median");
    served->mad_ns = read_number(&source->members[MEMBER_time_ns], "mad");
    struct answer answer = {0};
    wpk_err err = write_answer(source, served, &answer);
    char *text = NULL;
    size_t size = 0;
    err = err == WPK_OK ? wpk_buf_take(&answer.text, &text, &size) : err;
    wpk_buf_fini(&answer.text);
    if (err == WPK_OK) {
        /* Shrink the text: it was grown by doubling and is kept for long. */
        char *shrunk = realloc(text, size + 1);
        text = shrunk != NULL ? shrunk : text;
        served->answer = (struct wpk_text_span){text, size};
        served->brief = (struct wpk_text_span){text, answer.match_at + answer.match_size};
        served->match = (struct wpk_text_span){text + answer.match_at, answer.match_size};
        served->kernel = (struct wpk_text_span){text + answer.kernel_at, answer.kernel_size};
        make_etag(text, size, served->etag);
    }
    return err;
}

static struct wpk_rows *query(struct wpk_store *store, uint64_t problem_id)
{
    return wpk_store_query(
        store,
        "SELECT k.id, k.search_id, k.provider, k.artifact_sha256, k.pinned, k.accuracy,"
        " k.times_direct, k.document,"
        " p.fingerprint, p.layouts, p.device_class, p.environment, p.policy, p.family, p.extents,"
        " p.flops, p.bytes, s.strategy, s.seed, s.space_version, " WPK_HISTORY_ASKED
        ", k.verified_by, k.manifest, k.signature"
        " FROM kernel k JOIN problem p ON p.id = k.problem_id JOIN search s ON s.id = k.search_id"
        " WHERE k.problem_id = ? AND k.served = 1",
        "i", (int64_t)problem_id);
}

static struct wpk_served *make(struct wpk_store *store, const struct wpk_rows *rows,
                               uint64_t problem_id)
{
    struct source s = {0};
    struct wpk_served *served = WPK_DEMAND(calloc(1, sizeof *served));
    wpk_rows_get(rows, "iissfsrssssssssrrssssssss", &s.id, &s.search_id, &s.provider, &s.artifact,
                 &s.pinned, &s.accuracy, &s.times_direct, &s.document, &s.fingerprint, &s.layouts,
                 &s.device, &s.environment, &s.policy, &s.family, &s.extents, &s.flops, &s.bytes,
                 &s.strategy, &s.seed, &s.space_version, &s.job, &s.owner, &s.verified_by,
                 &s.manifest, &s.signature);
    find_members(s.document, s.members);
    char *candidate = copy_string(&s.members[MEMBER_candidate]);
    wpk_history_origin(store, problem_id, s.provider, candidate, &s.origin);
    free(candidate);
    served->problem_id = problem_id;
    wpk_err err = fill(served, &s);
    if (err != WPK_OK) {
        struct wpk_diag diag = {0};
        wpk_diag_set(&diag, "a kernel's answer: %s", wpk_err_text(err));
        wpk_store_fail(store, err, &diag);
        wpk_served_free(served);
        return NULL;
    }
    return served;
}

void wpk_served_read(struct wpk_store *store, uint64_t problem_id, struct wpk_served_list *out)
{
    struct wpk_rows *rows = query(store, problem_id);
    while (wpk_rows_next(rows)) {
        struct wpk_served *served = make(store, rows, problem_id);
        if (served != NULL) {
            out->items = wpk_grow(out->items, out->count, &out->capacity, sizeof *out->items);
            out->items[out->count++] = served;
        }
    }
}

void wpk_served_list_fini(struct wpk_served_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        wpk_served_free(list->items[i]);
    }
    free(list->items);
    memset(list, 0, sizeof *list);
}

void wpk_served_free(struct wpk_served *served)
{
    if (served == NULL) {
        return;
    }
    free((void *)(uintptr_t)served->fingerprint);
    free((void *)(uintptr_t)served->family);
    free((void *)(uintptr_t)served->layouts);
    free((void *)(uintptr_t)served->device);
    free((void *)(uintptr_t)served->environment);
    free((void *)(uintptr_t)served->provider);
    free((void *)(uintptr_t)served->candidate);
    free((void *)(uintptr_t)served->artifact);
    free((void *)(uintptr_t)served->log2_extents);
    free((void *)(uintptr_t)served->answer.text);
    free(served);
}
