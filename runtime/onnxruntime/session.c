/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/session.h"

#include "common/arena.h"
#include "runtime/onnxruntime/plans.h"
#include "runtime/pool.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 1024
#define OPTIMIZE_ALL 99
#define PLANS_MB 256 /* unless the session says another number */
#define PLANS_MB_MAX (1 << 20)

struct ep_session {
    struct ort_ep ep; /* first: ONNX Runtime has a pointer to it */
    const struct wpk_ort *ort;
    struct wpk_arena arena; /* of the entries */
    struct wpk_twin_options options;
    struct wpk_plans_options plans;
    int has_bodies; /* 0: no node of the model has a graph as an attribute */
};

/* ONNX Runtime puts this before a provider's own options. */
static const char own_prefix[] = "ep.woodpeckerexecutionprovider.";

/* Entries of the outer session that change results or threads. Others are not for a twin, such as
 * that of a file to which the model is written. */
static bool is_passed_on(const char *key)
{
    static const char *const prefixes[] = {"session.intra_op",
                                           "session.dynamic_block_base",
                                           "session.force_spinning_stop",
                                           "session.disable_prepacking",
                                           "session.set_denormal_as_zero",
                                           "session.use_device_allocator_for_initializers",
                                           "session.qdq",
                                           "session.disable_quant_qdq",
                                           "session.enable_quant_qdq_cleanup",
                                           "session.x64quantprecision",
                                           "optimization.",
                                           "mlas."};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

static struct ort_status *read_number(const struct wpk_ort *ort, const char *name,
                                      const char *value, int max, int *out)
{
    char *end;
    long number = strtol(value, &end, 10);
    if (end == value || *end != '\0' || number < 0 || number > max) {
        return wpk_ort_fail(ort, "%s: option %s is \"%s\", not a number from 0 to %d", WPK_EP_NAME,
                            name, value, max);
    }
    *out = (int)number;
    return NULL;
}

static struct ort_status *read_own_option(struct ep_session *session, const char *name,
                                          const char *value)
{
    const struct {
        const char *name;
        int max, *out;
    } numbers[] = {
        {"intra_op_num_threads", THREADS_MAX, &session->options.thread_count},
        {"graph_optimization_level", OPTIMIZE_ALL, &session->options.optimization_level},
        {"plans_mb", PLANS_MB_MAX, &session->plans.size_mb_max},
        {"has_bodies", 1, &session->has_bodies},
        {"counts_calls", 1, &session->plans.counts_calls},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            return read_number(session->ort, name, value, numbers[i].max, numbers[i].out);
        }
    }
    bool is_folder = strcmp(name, "plans") == 0;
    if (is_folder || strcmp(name, "model") == 0) {
        const char **text = is_folder ? &session->plans.folder : &session->plans.model;
        *text = wpk_arena_copy_text(&session->arena, value);
        return *text != NULL ? NULL : wpk_ort_fail(session->ort, "out of memory");
    }
    return wpk_ort_fail(
        session->ort,
        "%s has no option %s; it has intra_op_num_threads, "
        "graph_optimization_level, plans, plans_mb, model, has_bodies and counts_calls",
        WPK_EP_NAME, name);
}

/* The threads of a plan; those of the process's CPUs where the session leaves that to ONNX Runtime,
 * which counts about as many. */
static int count_threads(int wanted)
{
    cpu_set_t mask;
    int count = wanted;
    if (count == 0) {
        count = sched_getaffinity(0, sizeof(mask), &mask) == 0 ? CPU_COUNT(&mask) : 1;
    }
    return count < WPK_POOL_THREADS_MAX ? count : WPK_POOL_THREADS_MAX;
}

/* Read the provider's options, and copy the entries that twins have, too. */
static struct ort_status *read_options(struct ep_session *session,
                                       const struct ort_session_options *options)
{
    const struct wpk_ort *ort = session->ort;
    struct wpk_arena *arena = &session->arena;
    struct ort_status *status = NULL;
    struct ort_pairs *pairs = NULL;
    const char *const *keys;
    const char *const *values;
    size_t count = 0;
    size_t kept = 0;
    WPK_ORT_TRY(ort->GetSessionOptionsConfigEntries(options, &pairs));
    ort->GetKeyValuePairs(pairs, &keys, &values, &count);
    const char **own_keys = WPK_ARENA_NEW(arena, const char *, count);
    const char **own_values = WPK_ARENA_NEW(arena, const char *, count);
    for (size_t i = 0; i < count && own_keys != NULL && own_values != NULL; i++) {
        if (wpk_begins(keys[i], own_prefix)) {
            WPK_ORT_TRY(read_own_option(session, keys[i] + strlen(own_prefix), values[i]));
        } else if (is_passed_on(keys[i])) {
            own_keys[kept] = wpk_arena_copy_text(arena, keys[i]);
            own_values[kept] = wpk_arena_copy_text(arena, values[i]);
            kept += own_keys[kept] != NULL && own_values[kept] != NULL;
        }
    }
    session->options.keys = own_keys;
    session->options.values = own_values;
    session->options.entry_count = kept;
    session->plans.thread_count = count_threads(session->options.thread_count);
done:
    ort->ReleaseKeyValuePairs(pairs);
    return status;
}

static const char *get_name(const struct ort_ep *ep)
{
    return WPK_EP_NAME;
}

static struct ort_status *get_capability(struct ort_ep *ep, const struct ort_graph *graph,
                                         struct ort_support_info *info)
{
    const struct ep_session *session = (struct ep_session *)ep;
    bool may_be_body = session->ort->hides_bodies && session->has_bodies != 0;
    return may_be_body ? NULL : wpk_capability_claim(session->ort, graph, info);
}

static void release_groups(struct ort_ep *ep, struct ort_compute_info **infos, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        wpk_group_release(infos[i]);
        infos[i] = NULL;
    }
}

/* ONNX Runtime ends the session on an error here: whatever may be refused is refused by
 * GetCapability. */
static struct ort_status *compile(struct ort_ep *ep, const struct ort_graph **graphs,
                                  const struct ort_node **fused, size_t count,
                                  struct ort_compute_info **infos, struct ort_node **contexts)
{
    struct ep_session *session = (struct ep_session *)ep;
    for (size_t i = 0; i < count; i++) {
        struct ort_status *status = wpk_group_make(session->ort, graphs[i], fused[i],
                                                   &session->options, &session->plans, &infos[i]);
        if (status != NULL) {
            release_groups(ep, infos, i);
            return status;
        }
    }
    return NULL;
}

struct ort_status *wpk_session_make(const struct wpk_ort *ort,
                                    const struct ort_session_options *options, struct ort_ep **out)
{
    struct ep_session *session = calloc(1, sizeof(*session));
    if (session == NULL) {
        return wpk_ort_fail(ort, "out of memory");
    }
    session->ort = ort;
    session->options.optimization_level = OPTIMIZE_ALL;
    session->plans.size_mb_max = PLANS_MB;
    session->has_bodies = 1;
    wpk_arena_init(&session->arena, 0);
    session->ep = (struct ort_ep){.version = WPK_ORT_VERSION,
                                  .GetName = get_name,
                                  .GetCapability = get_capability,
                                  .Compile = compile,
                                  .ReleaseNodeComputeInfos = release_groups};
    struct ort_status *status = read_options(session, options);
    if (status != NULL) {
        wpk_session_release(&session->ep);
    } else {
        *out = &session->ep;
    }
    return status;
}

void wpk_session_release(struct ort_ep *ep)
{
    struct ep_session *session = (struct ep_session *)ep;
    if (session != NULL) {
        wpk_arena_fini(&session->arena);
        free(session);
    }
}
