/* SPDX-License-Identifier: Apache-2.0 */
/* How accurate a kernel must be: an error of at most `times_direct` times the error of direct
 * evaluation (ir/reference/reference.h) on the same inputs. Three multiples have names. */
#ifndef WPK_SCHEMA_ACCURACY_H
#define WPK_SCHEMA_ACCURACY_H

#include "common/json.h"

/* suffix, text, times_direct */
#define WPK_ACCURACY_LIST(X)                                                                       \
    X(STRICT, "strict", 1.25)                                                                      \
    X(STANDARD, "standard", 4.0)                                                                   \
    X(FAST, "fast", 16.0)

#define WPK_ACCURACY_TIMES_MAX 1e6
#define WPK_ACCURACY_POINTS_MIN 4096 /* compared in each set of inputs */
#define WPK_ACCURACY_TEXT_MAX 48     /* bytes of a text, with its NUL */

/* A class of accuracy. */
struct wpk_accuracy {
    double times_direct; /* in (0, WPK_ACCURACY_TIMES_MAX] */
};

#define WPK_ACCURACY_STRICT ((struct wpk_accuracy){.times_direct = 1.25})
#define WPK_ACCURACY_STANDARD ((struct wpk_accuracy){.times_direct = 4.0})

/* Read "strict", "standard", "fast" or "times_direct=6".
 *   errors  WPK_EINVAL; WPK_ERANGE: a multiple outside (0, WPK_ACCURACY_TIMES_MAX] */
wpk_err wpk_accuracy_parse(const char *text, struct wpk_accuracy *out, struct wpk_diag *diag);
/* The class's name, or "times_direct=6" where it has none; wpk_accuracy_parse() inverts this.
 *   shape   out [WPK_ACCURACY_TEXT_MAX] */
void wpk_accuracy_name(struct wpk_accuracy accuracy, char *out);

/* A class in JSON: a name, or {"times_direct": 6}. A wrong value is the reader's failure; an absent
 * field is the class `standard`. Both take a struct wpk_accuracy, for a row of schema/fields.h. */
void wpk_accuracy_put(struct wpk_json_writer *writer, const char *key, const void *accuracy);
void wpk_accuracy_get(struct wpk_json_reader *reader, const char *key, void *accuracy);

/* True if an error, as a multiple of direct evaluation's, is within the class. On inputs that are
 * recorded with the search, the limit is a tenth below the class's multiple; on fresh inputs it has
 * room for the noise of WPK_ACCURACY_POINTS_MIN points. A negative multiple was not measured. */
bool wpk_accuracy_admits(struct wpk_accuracy accuracy, double times_direct);
bool wpk_accuracy_admits_fresh(struct wpk_accuracy accuracy, double times_direct);
/* True if an implementation that a search of class `found` verified, with an error of
 * `times_direct` on recorded inputs, is served for `wanted`: in its own class and in all that are
 * wider, where it may be close to the limit, and wherever its error is admitted. */
bool wpk_accuracy_serves(struct wpk_accuracy wanted, struct wpk_accuracy found,
                         double times_direct);

#endif
