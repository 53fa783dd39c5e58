/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/twin.h"

#include <stdlib.h>
#include <string.h>

struct wpk_twin {
    const struct wpk_ort *ort;
    struct wpk_arena arena; /* names and extents */
    struct wpk_constant_files files;
    struct ort_env *env; /* ONNX Runtime's only one, once more: it outlives the session */
    struct ort_session *session;
    size_t input_count, output_count;
    size_t *taken; /* [taken_count]: inputs that the session takes */
    size_t taken_count;
    const char **input_names;    /* [input_count] */
    const char **taken_names;    /* [taken_count] */
    const char **output_names;   /* [output_count] */
    struct wpk_extents *outputs; /* [output_count] */
    size_t rank_max;             /* of outputs */
};

/* One run's arrays, in one block. */
struct run {
    const struct ort_value **inputs; /* [input_count], the outer session's */
    struct ort_value **outputs;      /* [output_count] */
    bool *is_bound;                  /* [output_count]: outputs[i] is the outer session's */
    int64_t *extents;                /* [rank_max], of one output */
};

static struct ort_status *copy_names(struct wpk_twin *twin, const struct ort_value_info **values,
                                     size_t count, const char ***names)
{
    const struct wpk_ort *ort = twin->ort;
    struct ort_status *status = NULL;
    WPK_ORT_TAKE(&twin->arena, count, *names);
    for (size_t i = 0; i < count; i++) {
        const char *name;
        WPK_ORT_TRY(ort->GetValueInfoName(values[i], &name));
        (*names)[i] = wpk_arena_copy_text(&twin->arena, name);
        if ((*names)[i] == NULL) {
            WPK_ORT_TRY(wpk_ort_fail(ort, "out of memory"));
        }
    }
done:
    return status;
}

static struct ort_status *make_options(const struct wpk_ort *ort,
                                       const struct wpk_twin_options *options,
                                       struct ort_session_options **out)
{
    struct ort_status *status = NULL;
    struct ort_session_options *own = NULL;
    WPK_ORT_TRY(ort->CreateSessionOptions(&own));
    /* The outer session logs errors that a run returns. */
    WPK_ORT_TRY(ort->SetSessionLogSeverityLevel(own, ORT_LOG_FATAL));
    WPK_ORT_TRY(ort->SetIntraOpNumThreads(own, options->thread_count));
    WPK_ORT_TRY(ort->SetSessionGraphOptimizationLevel(own, options->optimization_level));
    /* Threads that spin on after a run would take cores from the outer session's own nodes. Back to
     * back, two threads are no slower without it (medians of 13.1 and 13.3 ms on two busy cores).
     * session.disable_prepacking stays off: it makes a MiniLM 1.2 times as slow. */
    WPK_ORT_TRY(ort->AddSessionConfigEntry(own, "session.force_spinning_stop", "1"));
    for (size_t i = 0; i < options->entry_count; i++) {
        WPK_ORT_TRY(ort->AddSessionConfigEntry(own, options->keys[i], options->values[i]));
    }
    *out = own;
    own = NULL;
done:
    ort->ReleaseSessionOptions(own);
    return status;
}

/* Make the session of a model that has inputs alone, and add the rest of the group to it. */
static struct ort_status *make_session(struct wpk_twin *twin, const struct wpk_buf *inputs,
                                       struct ort_model *rest,
                                       const struct wpk_twin_options *options)
{
    const struct wpk_ort *ort = twin->ort;
    struct ort_status *status = NULL;
    struct ort_session_options *own = NULL;
    WPK_ORT_TRY(make_options(ort, options, &own));
    WPK_ORT_TRY(ort->CreateEnv(ORT_LOG_WARNING, "woodpecker", &twin->env));
    WPK_ORT_TRY(ort->CreateModelEditorSessionFromArray(twin->env, inputs->data, inputs->size, own,
                                                       &twin->session));
    WPK_ORT_TRY(ort->ApplyModelToModelEditorSession(twin->session, rest));
    WPK_ORT_TRY(ort->FinalizeModelEditorSession(twin->session, own, NULL));
done:
    ort->ReleaseSessionOptions(own);
    return status;
}

/* Find the inputs that the session takes, and keep the names of these: it has none that nothing
 * reads once functions are inlined. */
static struct ort_status *find_taken(struct wpk_twin *twin)
{
    const struct wpk_ort *ort = twin->ort;
    struct ort_status *status = NULL;
    struct ort_allocator *allocator;
    const char **names;
    WPK_ORT_TRY(ort->GetAllocatorWithDefaultOptions(&allocator));
    WPK_ORT_TRY(ort->SessionGetInputCount(twin->session, &twin->taken_count));
    WPK_ORT_TAKE(&twin->arena, twin->taken_count, twin->taken);
    WPK_ORT_TAKE(&twin->arena, twin->taken_count, names);
    for (size_t i = 0; i < twin->taken_count; i++) {
        char *name;
        size_t k = 0;
        WPK_ORT_TRY(ort->SessionGetInputName(twin->session, i, allocator, &name));
        while (k < twin->input_count && strcmp(name, twin->input_names[k]) != 0) {
            k++;
        }
        WPK_ORT_TRY(ort->AllocatorFree(allocator, name));
        if (k == twin->input_count) {
            WPK_ORT_TRY(wpk_ort_fail(ort, "input %zu is not one of the group's", i));
        }
        twin->taken[i] = k;
        names[i] = twin->input_names[k];
    }
    twin->taken_names = names;
done:
    return status;
}

/* Find out which outputs' extents follow from those of inputs. */
static struct ort_status *find_extents(struct wpk_twin *twin, struct wpk_arena *scratch,
                                       const struct wpk_ort_type *inputs)
{
    const struct wpk_ort *ort = twin->ort;
    struct ort_status *status = NULL;
    WPK_ORT_TAKE(&twin->arena, twin->output_count, twin->outputs);
    for (size_t i = 0; i < twin->output_count; i++) {
        struct ort_type_info *info;
        struct wpk_ort_type output = {0};
        WPK_ORT_TRY(ort->SessionGetOutputTypeInfo(twin->session, i, &info));
        status = wpk_ort_type(ort, scratch, info, &output);
        if (status == NULL) {
            status = wpk_extents_init(&twin->outputs[i], ort, &twin->arena, inputs,
                                      twin->input_count, &output);
        }
        ort->ReleaseTypeInfo(info);
        WPK_ORT_TRY(status);
        twin->rank_max = output.rank > twin->rank_max ? output.rank : twin->rank_max;
    }
done:
    return status;
}

static struct ort_status *fill(struct wpk_twin *twin, struct wpk_arena *scratch,
                               const struct ort_graph *graph, const struct ort_node *fused,
                               const struct wpk_twin_options *options)
{
    const struct wpk_ort *ort = twin->ort;
    struct ort_status *status = NULL;
    struct ort_model *rest = NULL;
    struct wpk_buf encoded = {0};
    struct wpk_ort_type *types;
    const struct ort_value_info **inputs, **outputs;
    WPK_ORT_LIST(scratch, Node, Inputs, fused, inputs, twin->input_count);
    WPK_ORT_LIST(scratch, Node, Outputs, fused, outputs, twin->output_count);
    WPK_ORT_TRY(copy_names(twin, inputs, twin->input_count, &twin->input_names));
    WPK_ORT_TRY(copy_names(twin, outputs, twin->output_count, &twin->output_names));
    WPK_ORT_TAKE(scratch, twin->input_count, types);
    for (size_t i = 0; i < twin->input_count; i++) {
        WPK_ORT_TRY(wpk_ort_value_type(ort, scratch, inputs[i], &types[i]));
    }
    WPK_ORT_TRY(wpk_inputs_encode(ort, scratch, graph, inputs, types, twin->input_count, &encoded));
    WPK_ORT_TRY(
        wpk_copy_model(ort, scratch, graph, outputs, twin->output_count, &twin->files, &rest));
    WPK_ORT_TRY(make_session(twin, &encoded, rest, options));
    WPK_ORT_TRY(find_taken(twin));
    WPK_ORT_TRY(find_extents(twin, scratch, types));
done:
    ort->ReleaseModel(rest);
    wpk_buf_fini(&encoded);
    return status;
}

struct ort_status *wpk_twin_new(const struct wpk_ort *ort, const struct ort_graph *graph,
                                const struct ort_node *fused,
                                const struct wpk_twin_options *options, struct wpk_twin **out)
{
    struct wpk_twin *twin = calloc(1, sizeof(*twin));
    if (twin == NULL) {
        return wpk_ort_fail(ort, "out of memory");
    }
    twin->ort = ort;
    wpk_arena_init(&twin->arena, 0);
    struct wpk_arena scratch;
    wpk_arena_init(&scratch, 0);
    struct ort_status *status = fill(twin, &scratch, graph, fused, options);
    wpk_arena_fini(&scratch);
    if (status != NULL) {
        wpk_twin_free(twin);
    } else {
        *out = twin;
    }
    return status;
}

void wpk_twin_free(struct wpk_twin *twin)
{
    if (twin == NULL) {
        return;
    }
    twin->ort->ReleaseSession(twin->session);
    twin->ort->ReleaseEnv(twin->env);
    wpk_constant_files_fini(&twin->files);
    wpk_arena_fini(&twin->arena);
    free(twin);
}

const char *const *wpk_twin_inputs(const struct wpk_twin *twin, size_t *count)
{
    *count = twin->input_count;
    return twin->input_names;
}

const char *const *wpk_twin_outputs(const struct wpk_twin *twin, size_t *count)
{
    *count = twin->output_count;
    return twin->output_names;
}

struct ort_status *wpk_twin_compute(const struct wpk_twin *twin,
                                    const struct ort_value *const *inputs,
                                    struct ort_value **outputs)
{
    const struct ort_value **taken = calloc(twin->taken_count + 1, sizeof(*taken));
    if (taken == NULL) {
        return wpk_ort_fail(twin->ort, "out of memory");
    }
    for (size_t i = 0; i < twin->taken_count; i++) {
        taken[i] = inputs[twin->taken[i]];
    }
    struct ort_status *status =
        twin->ort->Run(twin->session, NULL, twin->taken_names, taken, twin->taken_count,
                       twin->output_names, twin->output_count, outputs);
    free(taken);
    return status;
}

/* Bind the known outputs to the outer session's. */
static struct ort_status *bind_outputs(const struct wpk_twin *twin,
                                       struct ort_kernel_context *context, struct run *run)
{
    const struct wpk_ort *ort = twin->ort;
    struct ort_status *status = NULL;
    for (size_t i = 0; i < twin->output_count; i++) {
        if (twin->outputs[i].is_known) {
            WPK_ORT_TRY(wpk_extents_read(&twin->outputs[i], ort, run->inputs, run->extents));
            WPK_ORT_TRY(ort->KernelContext_GetOutput(context, i, run->extents,
                                                     twin->outputs[i].rank, &run->outputs[i]));
            run->is_bound[i] = true;
        }
    }
done:
    return status;
}

/* Copy output number `index` from the tensor that the twin's session made. */
static struct ort_status *copy_output(const struct wpk_twin *twin,
                                      struct ort_kernel_context *context, size_t index,
                                      const struct ort_value *from)
{
    const struct wpk_ort *ort = twin->ort;
    struct ort_status *status = NULL;
    struct wpk_ort_tensor source;
    struct ort_value *value;
    void *target;
    WPK_ORT_TRY(wpk_ort_tensor(ort, from, &source));
    WPK_ORT_TRY(ort->KernelContext_GetOutput(context, index, source.extent, source.rank, &value));
    if (source.size > 0) {
        WPK_ORT_TRY(ort->GetTensorMutableData(value, &target));
        memcpy(target, source.data, source.size);
    }
done:
    return status;
}

/* Run with the arrays of `run`. */
static struct ort_status *run_with(const struct wpk_twin *twin, struct ort_kernel_context *context,
                                   struct run *run)
{
    const struct wpk_ort *ort = twin->ort;
    struct ort_status *status = NULL;
    for (size_t i = 0; i < twin->input_count; i++) {
        WPK_ORT_TRY(ort->KernelContext_GetInput(context, i, &run->inputs[i]));
    }
    WPK_ORT_TRY(bind_outputs(twin, context, run));
    WPK_ORT_TRY(wpk_twin_compute(twin, run->inputs, run->outputs));
    for (size_t i = 0; i < twin->output_count; i++) {
        if (!run->is_bound[i]) {
            WPK_ORT_TRY(copy_output(twin, context, i, run->outputs[i]));
        }
    }
done:
    for (size_t i = 0; i < twin->output_count; i++) {
        if (!run->is_bound[i] && run->outputs[i] != NULL) {
            ort->ReleaseValue(run->outputs[i]);
        }
    }
    return status;
}

struct ort_status *wpk_twin_run(const struct wpk_twin *twin, struct ort_kernel_context *context)
{
    size_t pointer_count = twin->input_count + twin->output_count;
    char *block = calloc(1, pointer_count * sizeof(void *) + twin->rank_max * sizeof(int64_t) +
                                twin->output_count + 1);
    if (block == NULL) {
        return wpk_ort_fail(twin->ort, "out of memory");
    }
    struct run run = {.inputs = (const struct ort_value **)(void *)block};
    run.outputs = (struct ort_value **)(run.inputs + twin->input_count);
    run.extents = (int64_t *)(run.outputs + twin->output_count);
    run.is_bound = (bool *)(run.extents + twin->rank_max);
    struct ort_status *status = run_with(twin, context, &run);
    free(block);
    return status;
}
