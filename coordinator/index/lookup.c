/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/index/lookup.h"

#include "schema/device.h"
#include "search/transfer.h"

#include <string.h>

#define NEAR_MAX 16           /* shapes that are tried, nearest first */
#define DERIVE_VARIANTS_MAX 4 /* of a space of many combinations, a millisecond each */
#define DERIVE_STAGES_MAX 16  /* deriving a space of more stages may take longer than 5 ms */

bool wpk_match_is_hit(const struct wpk_match *match)
{
    return match->level == WPK_MATCH_EXACT || match->level == WPK_MATCH_VENDOR;
}

static const char *const match_names[] = {WPK_MATCH_LIST(WPK_LIST_TEXT)};
WPK_LIST_NAME(wpk_match_name, enum wpk_match_level, match_names)

/* ---- environments: "codegen=1;halide=21.0.0" */

/* The field at `text`, and where the next one begins. */
static const char *read_field(const char *text, struct wpk_text_span *name,
                              struct wpk_text_span *value)
{
    size_t size = strcspn(text, ";");
    size_t name_size = strcspn(text, "=;");
    *name = (struct wpk_text_span){text, name_size};
    *value = name_size < size ? (struct wpk_text_span){text + name_size + 1, size - name_size - 1}
                              : (struct wpk_text_span){text + size, 0};
    return text[size] == ';' ? text + size + 1 : text + size;
}

static bool spans_equal(struct wpk_text_span a, struct wpk_text_span b)
{
    return a.size == b.size && memcmp(a.text, b.text, a.size) == 0;
}

/* The part of a value whose change breaks equality: of a driver only the major version. */
static struct wpk_text_span breaking_part(struct wpk_text_span name, struct wpk_text_span value)
{
    static const struct wpk_text_span driver = {"driver", 6};
    if (spans_equal(name, driver)) {
        const char *dot = memchr(value.text, '.', value.size);
        value.size = dot != NULL ? (size_t)(dot - value.text) : value.size;
    }
    return value;
}

static struct wpk_text_span find_field(const char *environment, struct wpk_text_span wanted)
{
    struct wpk_text_span name;
    struct wpk_text_span value;
    for (const char *at = environment; *at != '\0';) {
        at = read_field(at, &name, &value);
        if (spans_equal(name, wanted)) {
            return value;
        }
    }
    return (struct wpk_text_span){"", 0};
}

uint32_t wpk_lookup_differs(const char *has, const char *wants,
                            struct wpk_differs out[WPK_LOOKUP_DIFFERS_MAX])
{
    uint32_t count = 0;
    for (const char *at = wants; *at != '\0' && count < WPK_LOOKUP_DIFFERS_MAX;) {
        struct wpk_differs *differs = &out[count];
        at = read_field(at, &differs->field, &differs->wants);
        differs->has = find_field(has, differs->field);
        count += !spans_equal(breaking_part(differs->field, differs->has),
                              breaking_part(differs->field, differs->wants));
    }
    return count;
}

/* ---- the same operator */

/* The environment to match: the requested one, or that of the device's newest kernel. */
static const char *wanted_environment(const struct wpk_index_version *version,
                                      const struct wpk_lookup *lookup)
{
    if (lookup->environment[0] != '\0') {
        return lookup->environment;
    }
    int found = WPK_FIND(struct wpk_index_device, name, version->devices, version->device_count,
                         lookup->device);
    return found >= 0 ? version->devices[found].environment : "";
}

bool wpk_lookup_has_key(const struct wpk_lookup *lookup, const struct wpk_served *served)
{
    return served->threads == lookup->threads && served->conditions == lookup->conditions &&
           strcmp(served->layouts, lookup->layouts) == 0 &&
           strcmp(served->device, lookup->device) == 0;
}

static bool fits(const struct wpk_served *served, const struct wpk_lookup *lookup)
{
    return wpk_accuracy_serves(lookup->accuracy, served->accuracy, served->times_direct);
}

/* True if `a` is a better answer than `b`, of the same problem; a pin holds for one class only. */
static bool is_better(const struct wpk_served *a, const struct wpk_served *b,
                      const struct wpk_lookup *lookup)
{
    double wanted = lookup->accuracy.times_direct;
    bool a_pinned = a->pinned && a->accuracy.times_direct == wanted;
    bool b_pinned = b->pinned && b->accuracy.times_direct == wanted;
    return a_pinned || (!b_pinned && a->median_ns < b->median_ns);
}

static void set_match(struct wpk_match *out, const struct wpk_served *served,
                      const char *environment)
{
    out->served = served;
    out->differs_count = wpk_lookup_differs(served->environment, environment, out->differs);
    out->level = out->differs_count > 0 ? WPK_MATCH_OTHER_VERSION
                 : served->vendor       ? WPK_MATCH_VENDOR
                                        : WPK_MATCH_EXACT;
}

/* The problem of the newest; one that differs is the answer only where none is equal. Of what that
 * problem serves, the fastest that fits, whichever class found it. */
static bool find_same(const struct wpk_index_version *version, const struct wpk_lookup *lookup,
                      const char *environment, struct wpk_match *out)
{
    const struct wpk_served *other = NULL;
    const struct wpk_served *equal = NULL;
    struct wpk_index_cursor cursor;
    const struct wpk_served *served;
    wpk_index_seek(&cursor, version, WPK_INDEX_BY_FINGERPRINT, wpk_served_key(lookup->fingerprint),
                   UINT64_MAX);
    while ((served = wpk_index_prev(&cursor)) != NULL) {
        if (!wpk_lookup_has_key(lookup, served) || !fits(served, lookup) ||
            strcmp(served->fingerprint, lookup->fingerprint) != 0) {
            continue;
        }
        set_match(out, served, environment);
        const struct wpk_served **best = out->level == WPK_MATCH_OTHER_VERSION ? &other : &equal;
        if (*best == NULL ||
            (served->problem_id == (*best)->problem_id && is_better(served, *best, lookup))) {
            *best = served;
        }
    }
    if (equal != NULL || other != NULL) {
        set_match(out, equal != NULL ? equal : other, environment);
    }
    return equal != NULL || other != NULL;
}

/* ---- the same family */

bool wpk_lookup_admits(const struct wpk_lookup *lookup, const struct wpk_served *served)
{
    size_t kind = strcspn(served->device, "/") + 1;
    return fits(served, lookup) && (strcmp(served->device, lookup->device) == 0 ||
                                    (strncmp(served->device, lookup->device, kind) == 0 &&
                                     !wpk_device_class_is_emulated(served->device)));
}

struct near {
    double distance;
    const struct wpk_served *served;
};

static bool is_nearer(double distance, const struct wpk_served *served, const struct near *other)
{
    return distance < other->distance ||
           (distance == other->distance && served->problem_id == other->served->problem_id &&
            served->median_ns < other->served->median_ns);
}

/* The nearest ones, nearest first; where that is equal newer ones first, and of one problem the
 * fastest. */
struct nearest {
    struct near items[NEAR_MAX]; /* [count] */
    uint32_t count;
};

static void note_near(struct nearest *nearest, double distance, const struct wpk_served *served)
{
    uint32_t at = nearest->count;
    while (at > 0 && is_nearer(distance, served, &nearest->items[at - 1])) {
        at--;
    }
    if (at == NEAR_MAX) {
        return;
    }
    nearest->count += nearest->count < NEAR_MAX;
    memmove(&nearest->items[at + 1], &nearest->items[at],
            (nearest->count - 1 - at) * sizeof nearest->items[0]);
    nearest->items[at] = (struct near){distance, served};
}

/* `here`: those of the lookup's device, layouts and threads; `anywhere`: the others. */
static void find_near(const struct wpk_index_version *version, const struct wpk_lookup *lookup,
                      struct nearest *here, struct nearest *anywhere)
{
    float extents[WPK_EXTENTS_MAX];
    uint32_t count = wpk_served_extents(lookup->extents, extents);
    struct wpk_index_cursor cursor;
    const struct wpk_served *served;
    wpk_index_seek(&cursor, version, WPK_INDEX_BY_FAMILY, wpk_served_key(lookup->family),
                   UINT64_MAX);
    while ((served = wpk_index_prev(&cursor)) != NULL) {
        if (served->extent_count == count && count > 0 && wpk_lookup_admits(lookup, served) &&
            served->conditions == lookup->conditions &&
            strcmp(served->family, lookup->family) == 0) {
            note_near(wpk_lookup_has_key(lookup, served) ? here : anywhere,
                      wpk_served_distance(served, extents), served);
        }
    }
}

static int count_derived(const struct wpk_space *space)
{
    int count = 0;
    for (int v = 0; v < space->variant_count; v++) {
        count += space->variants[v].state == WPK_VARIANT_DERIVED;
    }
    return count;
}

/* The first whose schedule is legal here, whole as it is. A vendor's implementation takes any
 * shape. Long programs have none: nobody waits for their spaces. */
static const struct near *find_legal(const struct wpk_lookup *lookup, const struct nearest *here)
{
    struct wpk_space_options options = {
        .layouts = lookup->layouts, .threads = lookup->threads, .back_ends = WPK_BACK_ENDS_ALL};
    struct wpk_space space;
    if (here->count == 0 || lookup->program == NULL ||
        lookup->program->stage_count > DERIVE_STAGES_MAX ||
        wpk_device_of_class(lookup->device, &options.device) != WPK_OK ||
        wpk_space_derive(lookup->program, &options, &space, NULL) != WPK_OK) {
        return NULL;
    }
    const struct near *found = NULL;
    for (uint32_t i = 0; found == NULL && i < here->count; i++) {
        const struct wpk_served *served = here->items[i].served;
        if (!served->vendor && space.lazy && count_derived(&space) >= DERIVE_VARIANTS_MAX) {
            continue;
        }
        if (served->vendor || wpk_space_fits(&space, served->candidate, NULL, NULL) == WPK_OK) {
            found = &here->items[i];
        }
    }
    wpk_space_fini(&space);
    return found;
}

static void find_family(const struct wpk_index_version *version, const struct wpk_lookup *lookup,
                        const char *environment, struct wpk_match *out)
{
    struct nearest here = {.count = 0};
    struct nearest anywhere = {.count = 0};
    find_near(version, lookup, &here, &anywhere);
    const struct near *near = find_legal(lookup, &here);
    out->level = near != NULL ? WPK_MATCH_NEAREST_SHAPE : WPK_MATCH_SAME_FAMILY;
    if (near == NULL) {
        near = here.count > 0 ? &here.items[0] : &anywhere.items[0];
    }
    if (here.count + anywhere.count == 0) {
        out->level = WPK_MATCH_NONE;
        return;
    }
    out->served = near->served;
    out->distance = near->distance;
    if (out->level == WPK_MATCH_NEAREST_SHAPE) {
        out->differs_count =
            wpk_lookup_differs(near->served->environment, environment, out->differs);
    }
}

/* An operator that is known by its fingerprint alone may be known from another device. */
static bool borrow_family(const struct wpk_index_version *version, const struct wpk_lookup *lookup,
                          struct wpk_match *out)
{
    struct wpk_index_cursor cursor;
    const struct wpk_served *served;
    wpk_index_seek(&cursor, version, WPK_INDEX_BY_FINGERPRINT, wpk_served_key(lookup->fingerprint),
                   UINT64_MAX);
    while ((served = wpk_index_prev(&cursor)) != NULL) {
        if (strcmp(served->fingerprint, lookup->fingerprint) == 0 &&
            wpk_lookup_admits(lookup, served) && served->conditions == lookup->conditions) {
            out->level = WPK_MATCH_SAME_FAMILY;
            out->served = served;
            return true;
        }
    }
    return false;
}

void wpk_lookup_find(const struct wpk_index_version *version, const struct wpk_lookup *lookup,
                     struct wpk_match *out)
{
    const char *environment = wanted_environment(version, lookup);
    *out = (struct wpk_match){.level = WPK_MATCH_NONE};
    if (find_same(version, lookup, environment, out)) {
        return;
    }
    if (lookup->family[0] != '\0') {
        find_family(version, lookup, environment, out);
    } else if (!borrow_family(version, lookup, out)) {
        out->level = WPK_MATCH_NONE;
    }
}
