/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/store/document.h"
#include "ir/instruction/instruction.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void wpk_document_put_time(struct wpk_json_writer *w, uint64_t median_ns, uint64_t min_ns,
                           uint64_t mad_ns)
{
    wpk_json_begin_object(w, "time_ns");
    wpk_json_put_int(w, "median", (int64_t)median_ns);
    wpk_json_put_int(w, "min", (int64_t)min_ns);
    wpk_json_put_int(w, "mad", (int64_t)mad_ns);
    wpk_json_end(w);
}

void wpk_document_put_algorithm(struct wpk_json_writer *w, const char *candidate,
                                const char *detail)
{
    const char *at = strstr(candidate, "algorithm=");
    if (at == NULL) {
        wpk_json_put_text(w, "algorithm", detail);
        return;
    }
    at += strlen("algorithm=");
    char algorithm[64];
    snprintf(algorithm, sizeof algorithm, "%.*s", (int)strcspn(at, " "), at);
    wpk_json_put_text(w, "algorithm", algorithm);
}

static void put_contender(struct wpk_json_writer *w, struct wpk_store *store,
                          const struct wpk_search *search, const struct wpk_final_entry *entry)
{
    struct wpk_buf detail = {0};
    wpk_history_detail(store, search->problem_id, entry->provider, entry->candidate, &detail);
    wpk_json_put_text(w, "provider", entry->provider);
    wpk_document_put_algorithm(w, entry->candidate, wpk_buf_text(&detail));
    wpk_json_put_text(w, "detail", wpk_buf_text(&detail));
    wpk_json_put_text(w, "candidate", entry->candidate);
    wpk_document_put_time(w, entry->timing.median_ns, entry->timing.min_ns, entry->timing.mad_ns);
    wpk_buf_fini(&detail);
}

static void put_speedup(struct wpk_json_writer *w, const struct wpk_final_entry *baseline,
                        const struct wpk_final_entry *entry)
{
    if (baseline == NULL || entry->timing.median_ns == 0) {
        wpk_json_put_null(w, "speedup");
        return;
    }
    double ratio = (double)baseline->timing.median_ns / (double)entry->timing.median_ns;
    wpk_json_put_real(w, "speedup", round(ratio * 1e4) / 1e4);
}

static void put_own(struct wpk_json_writer *w, struct wpk_store *store,
                    const struct wpk_effect *effect, const char *schedule)
{
    if (effect->own == NULL) {
        wpk_json_put_null(w, "own");
        return;
    }
    wpk_json_begin_object(w, "own");
    put_contender(w, store, effect->search, effect->own);
    put_speedup(w, effect->baseline, effect->own);
    wpk_json_put_text_or_null(w, "artifact", effect->own->artifact_sha256);
    wpk_json_put_text_or_null(w, "schedule", schedule);
    wpk_json_end(w);
}

wpk_err wpk_document_kernel(struct wpk_store *store, const struct wpk_effect *effect,
                            struct wpk_buf *out)
{
    const struct wpk_search *search = effect->search;
    const struct wpk_search_key *key = &search->key;
    bool own = effect->served == effect->own;
    const char *schedule = effect->own != NULL ? effect->own->schedule : NULL;
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "fingerprint", key->fingerprint);
    put_contender(w, store, search, effect->served);
    if (effect->baseline != NULL) {
        wpk_json_begin_object(w, "baseline");
        put_contender(w, store, search, effect->baseline);
        wpk_json_end(w);
    } else {
        wpk_json_put_null(w, "baseline");
    }
    put_own(w, store, effect, schedule);
    put_speedup(w, effect->baseline, effect->served);
    wpk_json_begin_object(w, "candidates");
    wpk_json_put_int(w, "measured", search->ok_count);
    wpk_json_put_int(w, "failed", search->failed_count);
    wpk_json_end(w);
    wpk_accuracy_put(w, "accuracy", &search->accuracy);
    wpk_json_put_text(w, "conditions", wpk_conditions_name(key->conditions));
    const struct wpk_trial_summary *trial = &effect->served->trial;
    wpk_json_begin_object(w, "verified");
    wpk_json_put_real(w, "max_error", trial->error_max);
    wpk_json_put_real(w, "tolerance", trial->error_tolerance);
    wpk_json_put_real(w, "of_rms", trial->of_rms);
    wpk_json_put_real(w, "times_direct", trial->times_direct);
    wpk_json_end(w);
    wpk_json_put_text_or_null(w, "artifact", effect->served->artifact_sha256);
    wpk_json_put_text_or_null(w, "schedule", own ? schedule : NULL);
    wpk_json_put_text(w, "op", search->op);
    wpk_json_put_real(w, "flops", search->flops);
    wpk_json_put_real(w, "bytes", search->bytes);
    wpk_json_put_text(w, "device", key->device_class);
    wpk_json_put_real(w, "device_peak_flops_per_s",
                      search->device.peak_flops_per_s *
                          wpk_operator_peak_times(search->op, search->device.cpu.flags));
    wpk_json_put_real(w, "device_peak_bytes_per_s", search->device.peak_bytes_per_s);
    wpk_json_put_text(w, "environment", key->environment);
    wpk_json_put_text(w, "layouts", key->layouts);
    wpk_json_put_int(w, "threads", key->threads);
    wpk_json_put_wall(w, "created", wpk_store_wall_ns(store));
    return wpk_json_finish(w, false, out);
}

static void put_revoked(struct wpk_json_writer *w, const struct wpk_kernel_row *row)
{
    if (row->revoked_at == 0) {
        wpk_json_put_null(w, "revoked");
        return;
    }
    wpk_json_begin_object(w, "revoked");
    wpk_json_put_wall(w, "at", row->revoked_at);
    wpk_json_put_text(w, "reason", row->revoked_reason);
    wpk_json_end(w);
}

wpk_err wpk_document_kernel_row(const struct wpk_kernel_row *row, struct wpk_buf *out)
{
    struct wpk_buf front = {0};
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    char id[24];
    snprintf(id, sizeof id, "k%llu", (unsigned long long)row->id);
    wpk_json_put_text(w, "id", id);
    wpk_json_put_text(w, "name", "");
    wpk_json_put_bool(w, "from_history", true);
    wpk_json_put_bool(w, "served", row->served);
    wpk_json_put_bool(w, "pinned", row->pinned);
    put_revoked(w, row);
    wpk_json_put_text_or_null(w, "verified_by", row->verified_by);
    wpk_json_put_text_or_null(w, "job", row->job);
    wpk_json_put_text_or_null(w, "owner", row->owner);
    wpk_json_put_text_or_null(w, "manifest", row->manifest);
    wpk_json_put_text_or_null(w, "signature", row->signature);
    wpk_err err = wpk_json_finish(w, false, &front);
    if (err == WPK_OK) {
        bool whole = row->document[0] == '{' && row->document[1] != '}';
        wpk_buf_append(out, front.data, front.size - 1);
        wpk_buf_append_text(out, whole ? "," : "");
        wpk_buf_append_text(out, whole ? row->document + 1 : "}");
        err = wpk_buf_status(out);
    }
    wpk_buf_fini(&front);
    return err;
}
