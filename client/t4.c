/* SPDX-License-Identifier: Apache-2.0 */
#include "client/t4.h"

#include "common/json.h"

#include <stdio.h>
#include <string.h>

/* The format's word for an outcome. */
static const char *invalidity(const struct wpk_listed_trial *trial)
{
    static const struct {
        const char *outcome, *word;
    } words[] = {{"build_error", "compile"},     {"build_timeout", "timeout"},
                 {"run_timeout", "timeout"},     {"run_crash", "runtime"},
                 {"out_of_memory", "runtime"},   {"wrong_result", "correctness"},
                 {"unsupported", "constraints"}, {"abandoned", "runtime"}};
    if (strcmp(trial->outcome, "ok") == 0) {
        return trial->censored ? "timeout" : "correct";
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(trial->outcome, words[i].outcome) == 0) {
            return words[i].word;
        }
    }
    return "runtime";
}

static void put_configuration(const char *candidate, struct wpk_json_writer *w)
{
    wpk_json_begin_object(w, "configuration");
    for (const char *at = candidate; *at != '\0';) {
        char name[256], value[1024];
        size_t end = strcspn(at, " "), equals = strcspn(at, "=");
        if (equals < end) {
            snprintf(name, sizeof(name), "%.*s", (int)equals, at);
            snprintf(value, sizeof(value), "%.*s", (int)(end - equals - 1), at + equals + 1);
            wpk_json_put_text(w, name, value);
        }
        at += end + (at[end] == ' ');
    }
    wpk_json_end(w);
}

static void put_result(const struct wpk_listed_trial *trial, struct wpk_json_writer *w)
{
    wpk_json_begin_object(w, NULL);
    wpk_json_put_text(w, "timestamp", trial->recorded);
    put_configuration(trial->candidate, w);
    wpk_json_begin_object(w, "times");
    wpk_json_begin_array(w, "runtimes");
    if (trial->median_ns > 0) {
        wpk_json_put_real(w, NULL, trial->median_ns / 1e6);
    }
    wpk_json_end(w);
    wpk_json_end(w);
    wpk_json_put_text(w, "invalidity", invalidity(trial));
    wpk_json_put_int(w, "correctness", strcmp(trial->outcome, "ok") == 0);
    wpk_json_begin_array(w, "measurements");
    if (trial->median_ns > 0) {
        wpk_json_begin_object(w, NULL);
        wpk_json_put_text(w, "name", "time");
        wpk_json_put_real(w, "value", trial->median_ns / 1e6);
        wpk_json_put_text(w, "unit", "ms");
        wpk_json_end(w);
    }
    wpk_json_end(w);
    wpk_json_begin_array(w, "objectives");
    wpk_json_put_text(w, NULL, "time");
    wpk_json_end(w);
    wpk_json_end(w);
}

wpk_err wpk_t4_encode(const struct wpk_trial_list *list, struct wpk_buf *out)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "schema_version", "1.0.0");
    wpk_json_begin_array(w, "results");
    for (int i = 0; i < list->count; i++) {
        if (list->trial[i].is_candidate && strcmp(list->trial[i].outcome, "pending") != 0) {
            put_result(&list->trial[i], w);
        }
    }
    wpk_json_end(w);
    wpk_err err = wpk_json_print(w, false, out);
    wpk_json_writer_free(w);
    return err;
}
