/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/api/api_lookup.h"

#include "common/json.h"

#define NS_MAX 9e15 /* what JSON's numbers hold */

static void put_span(struct wpk_json_writer *w, const char *name, const struct wpk_text_span *span)
{
    if (span->size > 0) {
        wpk_json_put_bytes(w, name, span->text, span->size);
    } else {
        wpk_json_put_null(w, name);
    }
}

static void put_expected(struct wpk_json_writer *w, const struct wpk_estimate *expected)
{
    bool is_known = expected->source != WPK_ESTIMATE_NONE && expected->median_ns <= NS_MAX &&
                    expected->mad_ns <= NS_MAX;
    if (is_known) {
        wpk_json_begin_object(w, "expected_ns");
        wpk_json_put_int(w, "median", (int64_t)expected->median_ns);
        wpk_json_put_int(w, "mad", (int64_t)expected->mad_ns);
        wpk_json_end(w);
        wpk_json_put_text(w, "expected_from", wpk_estimate_name(expected->source));
    } else {
        wpk_json_put_null(w, "expected_ns");
        wpk_json_put_null(w, "expected_from");
    }
}

/* The members of a match that is not exact, up to those that come from the entry. */
static struct wpk_json_writer *write_front(const struct wpk_match *match,
                                           const struct wpk_estimate *expected)
{
    struct wpk_json_writer *w = wpk_json_writer_new_object();
    wpk_json_put_text(w, "match", wpk_match_name(match->level));
    if (match->level == WPK_MATCH_NONE) {
        wpk_json_put_null(w, "distance");
    } else {
        wpk_json_put_real(w, "distance", match->distance);
    }
    wpk_json_begin_array(w, "differs");
    for (uint32_t i = 0; i < match->differs_count; i++) {
        wpk_json_begin_object(w, NULL);
        put_span(w, "field", &match->differs[i].field);
        put_span(w, "has", &match->differs[i].has);
        put_span(w, "wants", &match->differs[i].wants);
        wpk_json_end(w);
    }
    wpk_json_end(w);
    put_expected(w, expected);
    return w;
}

/* Where only the version differs the artifact may still do; a schedule for another shape has none
 * on this one until it is built and verified. */
static void append_other(const struct wpk_match *match, const struct wpk_estimate *expected,
                         bool whole, struct wpk_buf *out)
{
    struct wpk_buf front = {0};
    struct wpk_json_writer *w = write_front(match, expected);
    const char *artifact = match->level == WPK_MATCH_OTHER_VERSION ? match->served->artifact : "";
    wpk_json_put_text_or_null(w, "artifact", artifact);
    wpk_err err = wpk_json_finish(w, false, &front);
    if (err == WPK_OK) {
        wpk_buf_append(out, front.data, front.size - 1);
    }
    if (match->served != NULL) {
        wpk_buf_append_byte(out, ',');
        wpk_buf_append(out, match->served->match.text, match->served->match.size);
    }
    if (whole) {
        wpk_buf_append_text(out, ",\"kernel\":");
        wpk_buf_append_text(out, match->served == NULL ? "null" : "");
    }
    if (whole && match->served != NULL) {
        wpk_buf_append(out, match->served->kernel.text, match->served->kernel.size);
    }
    wpk_buf_append_byte(out, '}');
    wpk_buf_fini(&front);
}

void wpk_match_append(const struct wpk_match *match, const struct wpk_estimate *expected,
                      bool whole, struct wpk_buf *out)
{
    if (!wpk_match_is_hit(match)) {
        append_other(match, expected, whole, out);
    } else if (whole) {
        wpk_buf_append(out, match->served->answer.text, match->served->answer.size);
    } else {
        wpk_buf_append(out, match->served->brief.text, match->served->brief.size);
        wpk_buf_append_byte(out, '}');
    }
}
