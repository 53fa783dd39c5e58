/* SPDX-License-Identifier: Apache-2.0 */
/* Timing classes: within one, times are comparable and device time is shared (fair.h). */
#ifndef WPK_COORDINATOR_STATE_TIMING_CLASS_H
#define WPK_COORDINATOR_STATE_TIMING_CLASS_H

#include "coordinator/state/table.h"
#include "coordinator/state/text.h"

struct wpk_coordinator;

#define WPK_TIMING_CLASS_TEXT_MAX                                                                  \
    (2 * WPK_DEVICE_TEXT_MAX + WPK_ENVIRONMENT_MAX + WPK_KEY_TEXT_MAX + 4)

struct wpk_timing_class {
    char text[WPK_TIMING_CLASS_TEXT_MAX]; /* "device class\nenvironment\nproviders" */
    uint64_t virtual_ns;                  /* the largest of its worker classes'; never falls */
    struct wpk_table flows;               /* owned; struct wpk_flow by their owners' numbers */
    uint32_t use_count; /* worker classes, work queues and leases; it is freed with the last */
};

/* Print a timing class's text. */
void wpk_timing_class_text(const char *device_class, const struct wpk_hello *hello,
                           char out[WPK_TIMING_CLASS_TEXT_MAX]);
/* A search may use more back ends than the first one. They are added to the text of its timing
 * class, behind the first provider, as a list of search/back_end.h:
 * "halide-cpu+c/gcc-12.2.0;onednn". Print the text with `back_ends` added ("+c/gcc-12.2.0"; "":
 * none), or without those that it has. */
void wpk_timing_class_add(const char *text, const char *back_ends,
                          char out[WPK_TIMING_CLASS_TEXT_MAX]);
void wpk_timing_class_strip(const char *text, char out[WPK_TIMING_CLASS_TEXT_MAX]);
/* The text's last line, which begins with the list of back ends. */
const char *wpk_timing_class_back_ends(const char *text);
/* Print the names of the worker's providers in its order, as in "halide-cpu;onednn". */
void wpk_timing_class_providers(const struct wpk_hello *hello, char out[WPK_KEY_TEXT_MAX]);

/* The timing class with this text, made if need be. The use count grows by one. */
struct wpk_timing_class *wpk_timing_class_use(struct wpk_coordinator *c, const char *text);
/* End one use. The timing class is freed with its last one. */
void wpk_timing_class_release(struct wpk_coordinator *c, struct wpk_timing_class *timing);
void wpk_timing_class_free(struct wpk_timing_class *timing);

#endif
