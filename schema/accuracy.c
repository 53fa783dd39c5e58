/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/accuracy.h"

#include "common/suggest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDED_SHARE 0.9 /* of the multiple: so that few winners fail on fresh inputs */

#define PREFIX "times_direct="
#define EXPECTED "strict, standard, fast or times_direct=NUMBER"

static const struct {
    const char *name;
    double times_direct;
} classes[] = {
#define CLASS(suffix, text, times) {text, times},
    WPK_ACCURACY_LIST(CLASS)
#undef CLASS
};

#define CLASS_COUNT (sizeof classes / sizeof *classes)

static bool in_range(double times)
{
    return times > 0 && times <= WPK_ACCURACY_TIMES_MAX;
}

wpk_err wpk_accuracy_parse(const char *text, struct wpk_accuracy *out, struct wpk_diag *diag)
{
    for (size_t i = 0; i < CLASS_COUNT; i++) {
        if (strcmp(text, classes[i].name) == 0) {
            out->times_direct = classes[i].times_direct;
            return WPK_OK;
        }
    }
    const char *number = text + strlen(PREFIX);
    if (!wpk_begins(text, PREFIX) || *number == '\0' ||
        number[strspn(number, "0123456789.eE+-")] != '\0') {
        struct wpk_suggest suggest = {.word = text};
        for (size_t i = 0; i < CLASS_COUNT; i++) {
            wpk_suggest_offer(&suggest, classes[i].name);
        }
        return wpk_fail(diag, WPK_EINVAL, "unknown accuracy '%.64s'; expected " EXPECTED "%s", text,
                        wpk_suggest_text(&suggest));
    }
    char *end = NULL;
    double times = strtod(number, &end);
    if (*end != '\0') {
        return wpk_fail(diag, WPK_EINVAL, "'%.64s' is not a number; expected " EXPECTED, number);
    }
    if (!in_range(times)) {
        return wpk_fail(diag, WPK_ERANGE, "times_direct must be above 0 and at most %g",
                        WPK_ACCURACY_TIMES_MAX);
    }
    out->times_direct = times;
    return WPK_OK;
}

static const char *class_of(struct wpk_accuracy accuracy)
{
    for (size_t i = 0; i < CLASS_COUNT; i++) {
        if (accuracy.times_direct == classes[i].times_direct) {
            return classes[i].name;
        }
    }
    return NULL;
}

void wpk_accuracy_name(struct wpk_accuracy accuracy, char *out)
{
    const char *name = class_of(accuracy);
    if (name != NULL) {
        snprintf(out, WPK_ACCURACY_TEXT_MAX, "%s", name);
        return;
    }
    /* The fewest digits that read back as the same number. */
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, WPK_ACCURACY_TEXT_MAX, PREFIX "%.*g", digits, accuracy.times_direct);
        if (strtod(out + strlen(PREFIX), NULL) == accuracy.times_direct) {
            break;
        }
    }
}

bool wpk_accuracy_admits(struct wpk_accuracy accuracy, double times_direct)
{
    return times_direct >= 0 && times_direct <= RECORDED_SHARE * accuracy.times_direct;
}

bool wpk_accuracy_admits_fresh(struct wpk_accuracy accuracy, double times_direct)
{
    const double noise = 3 / sqrt(WPK_ACCURACY_POINTS_MIN);
    return times_direct >= 0 && times_direct <= accuracy.times_direct * (1 + noise);
}

bool wpk_accuracy_serves(struct wpk_accuracy wanted, struct wpk_accuracy found, double times_direct)
{
    return found.times_direct <= wanted.times_direct || wpk_accuracy_admits(wanted, times_direct);
}

/* ---- JSON */

static struct wpk_accuracy get_name(struct wpk_json_reader *reader, const char *key)
{
    struct wpk_accuracy accuracy = WPK_ACCURACY_STANDARD;
    const char *text = wpk_json_get_text(reader, key, WPK_ACCURACY_TEXT_MAX - 1);
    if (wpk_json_status(reader) == WPK_OK) {
        struct wpk_diag why = {0};
        wpk_err err = wpk_accuracy_parse(text, &accuracy, &why);
        if (err != WPK_OK) {
            wpk_json_fail(reader, key, err, "%s", why.text);
        }
    }
    return accuracy;
}

void wpk_accuracy_get(struct wpk_json_reader *reader, const char *key, void *accuracy)
{
    struct wpk_accuracy *out = accuracy;
    *out = WPK_ACCURACY_STANDARD;
    switch (wpk_json_kind_of(reader, key)) {
    case WPK_JSON_ABSENT:
        break;
    case WPK_JSON_STRING:
        *out = get_name(reader, key);
        break;
    case WPK_JSON_OBJECT:
        wpk_json_enter(reader, key);
        WPK_JSON_ALLOW(reader, "times_direct");
        out->times_direct = wpk_json_get_real(reader, "times_direct", 0, WPK_ACCURACY_TIMES_MAX);
        if (!in_range(out->times_direct)) {
            wpk_json_fail(reader, "times_direct", WPK_ERANGE, "must be above 0");
        }
        wpk_json_leave(reader);
        break;
    default:
        wpk_json_fail(reader, key, WPK_EINVAL,
                      "must be \"strict\", \"standard\", \"fast\" or {\"times_direct\": NUMBER}");
    }
}

void wpk_accuracy_put(struct wpk_json_writer *writer, const char *key, const void *accuracy)
{
    const struct wpk_accuracy *in = accuracy;
    const char *name = class_of(*in);
    if (name != NULL) {
        wpk_json_put_text(writer, key, name);
        return;
    }
    wpk_json_begin_object(writer, key);
    wpk_json_put_real(writer, "times_direct", in->times_direct);
    wpk_json_end(writer);
}
