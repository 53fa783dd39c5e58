/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/plans.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/crypto.h"
#include "common/fs.h"
#include "runtime/wpk.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ENDS_MAX 64   /* inputs, or outputs, of a group with plans */
#define KEYS_MAX 256  /* sets of shapes that are remembered */
#define VALUES_MAX 64 /* elements of an input that are part of a key */
#define POLL_S 1      /* for files of plans that are wanted */
#define WANT_MODE 0644
#define TURNS 9                   /* of plan and twin */
#define TRY_NS (WPK_NS_PER_S / 2) /* for all of them, once each has had MIN_TURNS */
#define MIN_TURNS 3
#define DIFFERENCE_MAX 1e-3 /* of the largest element of an output */
#define FASTER 0.98         /* than the twin: less is a wash */

enum state { WANTED, OPEN, COPIED, SERVES, REFUSED, CLOSED };

/* A set of shapes. */
struct entry {
    struct entry *next;
    char *shapes; /* owned; see print_key() */
    _Atomic enum state state;
    struct wpk_model *model;
    struct wpk_model_context *idle;              /* NULL: a call has it */
    size_t size;                                 /* bytes of an open plan */
    uint64_t used;                               /* the number of the last call */
    bool is_noted;                               /* its file KEY.want is written */
    struct wpk_ort_tensor *inputs;               /* owned; copies, while the plan is tried */
    int of_input[ENDS_MAX], of_output[ENDS_MAX]; /* by the plan's: the group's */
};

struct wpk_plans {
    const struct wpk_ort *ort;
    const struct wpk_twin *twin;
    struct wpk_plans_options options; /* texts are owned */
    size_t input_count, output_count;
    const char *const *input_names, *const *output_names; /* the twin's */
    bool decides[ENDS_MAX]; /* by input: plans have its elements as constants */
    pthread_mutex_t lock;   /* of what follows */
    pthread_cond_t changed;
    pthread_t thread;
    bool has_thread, ends;
    struct entry *entries;
    int entry_count;
    uint64_t calls;
    bool has_news; /* for the thread, which may be at another entry */
};

/* ---- tensors */

/* Whether ONNX's number of an element's type is that of `dtype`. */
static bool is_of(int element, enum wpk_dtype dtype)
{
    static const int elements[WPK_DTYPE_COUNT] = {
        [WPK_F32] = 1, [WPK_U8] = 2,   [WPK_I8] = 3,   [WPK_I16] = 5,  [WPK_I32] = 6,
        [WPK_I64] = 7, [WPK_BOOL] = 9, [WPK_F16] = 10, [WPK_F64] = 11, [WPK_BF16] = 16};
    return element == elements[dtype];
}

static bool read_inputs(const struct wpk_plans *plans, struct ort_kernel_context *context,
                        struct wpk_ort_tensor *inputs)
{
    const struct wpk_ort *ort = plans->ort;
    struct ort_status *status = NULL;
    bool read = false;
    for (size_t i = 0; i < plans->input_count; i++) {
        const struct ort_value *value = NULL;
        WPK_ORT_TRY(ort->KernelContext_GetInput(context, i, &value));
        WPK_ORT_TRY(wpk_ort_tensor(ort, value, &inputs[i]));
    }
    read = true;
done:
    ort->ReleaseStatus(status);
    return read;
}

/* Print an input's elements after its extents: ":i8:3,-1", with NumPy's name of their type. Floats
 * decide on shapes nowhere, and many integers are data. */
static void print_values(const struct wpk_ort_tensor *end, struct wpk_buf *out)
{
    bool is_wide = is_of(end->element, WPK_I64);
    size_t count = end->size / (is_wide ? sizeof(int64_t) : sizeof(int32_t));
    if (count > VALUES_MAX || (!is_wide && !is_of(end->element, WPK_I32))) {
        return;
    }
    wpk_buf_append_text(out, is_wide ? ":i8:" : ":i4:");
    for (size_t i = 0; i < count; i++) {
        int64_t value = is_wide ? ((const int64_t *)end->data)[i] : ((const int32_t *)end->data)[i];
        wpk_buf_printf(out, "%s%" PRId64, i > 0 ? "," : "", value);
    }
}

/* Print what a plan is for, a line for each input: "x=1,3", and one without "=" for threads. */
static void print_key(const struct wpk_plans *plans, const struct wpk_ort_tensor *inputs,
                      struct wpk_buf *out)
{
    if (plans->options.thread_count > 1) {
        wpk_buf_printf(out, "threads %d\n", plans->options.thread_count);
    }
    for (size_t i = 0; i < plans->input_count; i++) {
        wpk_buf_printf(out, "%s=", plans->input_names[i]);
        for (size_t d = 0; d < inputs[i].rank; d++) {
            wpk_buf_printf(out, "%s%" PRId64, d > 0 ? "," : "", inputs[i].extent[d]);
        }
        if (plans->decides[i]) {
            print_values(&inputs[i], out);
        }
        wpk_buf_append_text(out, "\n");
    }
}

/* ---- files */

static void print_path(const struct wpk_plans *plans, const struct entry *entry, const char *ending,
                       struct wpk_buf *out)
{
    char sum[WPK_CHECKSUM_HEX_SIZE];
    wpk_checksum_hex(entry->shapes, strlen(entry->shapes), sum);
    wpk_buf_printf(out, "%s/%s-%.16s%s", plans->options.folder, plans->options.model, sum, ending);
}

/* Write one of the entry's files. A folder that cannot be written is no failure. */
static void write_text(const struct wpk_plans *plans, const struct entry *entry, const char *ending,
                       const char *text)
{
    struct wpk_buf path = {0};
    print_path(plans, entry, ending, &path);
    if (wpk_buf_status(&path) == WPK_OK) {
        wpk_err err = wpk_fs_write(wpk_buf_text(&path), text, strlen(text), WANT_MODE, NULL);
        (void)err;
    }
    wpk_buf_fini(&path);
}

/* Say for people what became of a plan. */
static void write_said(const struct wpk_plans *plans, const struct entry *entry, const char *what,
                       double plan_ns, double twin_ns)
{
    char text[128];
    snprintf(text, sizeof(text), "%s\nplan_ns=%.0f\ntwin_ns=%.0f\n", what, plan_ns, twin_ns);
    write_text(plans, entry, ".said", text);
}

/* ---- a plan is tried */

/* The group's tensor of this name; -1: it has none. */
static int find_name(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static bool has_shape(const struct wpk_argument *argument, const struct wpk_ort_tensor *end)
{
    bool same =
        is_of(end->element, argument->type.dtype) && (size_t)argument->type.rank == end->rank;
    for (size_t d = 0; same && d < end->rank; d++) {
        same = argument->type.extent[d] == end->extent[d];
    }
    return same;
}

/* True if the plan's inputs are among the group's, and its outputs are the group's. */
static bool fits(const struct wpk_plans *plans, struct entry *entry)
{
    size_t outputs = wpk_model_output_count(entry->model);
    bool all =
        outputs == plans->output_count && wpk_model_input_count(entry->model) <= plans->input_count;
    for (size_t i = 0; all && i < outputs; i++) {
        const struct wpk_argument *argument = wpk_model_output(entry->model, 0, i);
        entry->of_output[i] = find_name(plans->output_names, plans->output_count, argument->name);
        all = entry->of_output[i] >= 0;
    }
    for (size_t i = 0; all && i < wpk_model_input_count(entry->model); i++) {
        entry->of_input[i] = find_name(plans->input_names, plans->input_count,
                                       wpk_model_input(entry->model, 0, i)->name);
        all = entry->of_input[i] >= 0;
    }
    return all;
}

/* Open the plan's file, if it is there. */
static void open_plan(struct wpk_plans *plans, struct entry *entry)
{
    struct wpk_buf path = {0};
    print_path(plans, entry, ".wpk", &path);
    if (wpk_buf_status(&path) != WPK_OK || access(wpk_buf_text(&path), R_OK) != 0) {
        wpk_buf_fini(&path);
        return;
    }
    const struct wpk_context_options options = {.threads = plans->options.thread_count};
    wpk_err err = wpk_model_open(wpk_buf_text(&path), NULL, &entry->model, NULL);
    if (err == WPK_OK && fits(plans, entry)) {
        err = wpk_model_context_new(entry->model, 0, &options, &entry->idle);
    } else {
        err = err == WPK_OK ? WPK_EMISMATCH : err;
    }
    wpk_buf_fini(&path);
    if (err != WPK_OK) {
        write_said(plans, entry, err == WPK_EMISMATCH ? "refused: it does not fit" : "refused", 0,
                   0);
    }
    entry->state = err == WPK_OK ? OPEN : REFUSED;
}

/* The tensors of a run of the plan.   shape  data [count of the plan's inputs, then outputs] */
static bool bind(const struct wpk_plans *plans, const struct entry *entry,
                 const struct wpk_ort_tensor *inputs, void *const *outputs,
                 struct wpk_tensor_data *data)
{
    size_t count = wpk_model_input_count(entry->model);
    for (size_t i = 0; i < count; i++) {
        const struct wpk_argument *argument = wpk_model_input(entry->model, 0, i);
        const struct wpk_ort_tensor *input = &inputs[entry->of_input[i]];
        if (!has_shape(argument, input)) {
            return false;
        }
        data[i] = (struct wpk_tensor_data){argument->name, input->data, input->size};
    }
    for (size_t i = 0; i < plans->output_count; i++) {
        const struct wpk_argument *argument = wpk_model_output(entry->model, 0, i);
        data[count + i] = (struct wpk_tensor_data){argument->name, outputs[i],
                                                   wpk_tensor_type_bytes(&argument->type)};
    }
    return true;
}

static double element(enum wpk_dtype dtype, const void *data, size_t i)
{
    return dtype == WPK_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

/* True if an output is what the twin computed. */
static bool agrees(const struct wpk_argument *argument, const void *ours,
                   const struct wpk_ort_tensor *wanted)
{
    enum wpk_dtype dtype = argument->type.dtype;
    if (!has_shape(argument, wanted)) {
        return false;
    }
    if (dtype != WPK_F32 && dtype != WPK_F64) {
        return memcmp(ours, wanted->data, wanted->size) == 0;
    }
    size_t count = wanted->size / wpk_dtype_size(dtype);
    double largest = 0, difference = 0;
    for (size_t i = 0; i < count; i++) {
        double a = element(dtype, ours, i), b = element(dtype, wanted->data, i);
        largest = isfinite(b) ? fmax(largest, fabs(b)) : largest;
        if (a != b && !(isnan(a) && isnan(b))) {
            difference = isfinite(a) && isfinite(b) ? fmax(difference, fabs(a - b)) : INFINITY;
        }
    }
    return difference <= DIFFERENCE_MAX * largest;
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Run plan and twin in turns on the copied inputs.
 *   returns true: they agree, and the plan is faster */
static bool try_plan(const struct wpk_plans *plans, struct entry *entry)
{
    const struct wpk_ort *ort = plans->ort;
    struct wpk_tensor_data data[2 * ENDS_MAX];
    struct ort_value *inputs[ENDS_MAX] = {0}, *wanted[ENDS_MAX] = {0};
    void *outputs[ENDS_MAX] = {0};
    struct ort_memory_info *memory = NULL;
    struct ort_status *status = NULL;
    double times[2][TURNS];
    int turns = 0;
    uint64_t began = wpk_clock_ns();
    size_t count = wpk_model_input_count(entry->model);
    bool better = false;
    for (size_t i = 0; i < plans->output_count; i++) {
        size_t size = wpk_tensor_type_bytes(&wpk_model_output(entry->model, 0, i)->type);
        outputs[i] = aligned_alloc(64, (size + 64) / 64 * 64);
        if (outputs[i] == NULL) {
            goto done;
        }
    }
    if (!bind(plans, entry, entry->inputs, outputs, data)) {
        goto done;
    }
    WPK_ORT_TRY(ort->CreateCpuMemoryInfo(ORT_ALLOCATOR_DEVICE, ORT_MEMORY_DEFAULT, &memory));
    for (size_t i = 0; i < plans->input_count; i++) {
        const struct wpk_ort_tensor *end = &entry->inputs[i];
        WPK_ORT_TRY(ort->CreateTensorWithDataAsOrtValue(memory, end->data, end->size, end->extent,
                                                        end->rank, end->element, &inputs[i]));
    }
    for (; turns < TURNS && (turns < MIN_TURNS || wpk_clock_ns() < began + TRY_NS); turns++) {
        uint64_t start = wpk_clock_ns();
        if (wpk_model_run(entry->idle, data, count, data + count, plans->output_count) != WPK_OK) {
            goto done;
        }
        uint64_t middle = wpk_clock_ns();
        WPK_ORT_TRY(wpk_twin_compute(plans->twin, (const struct ort_value *const *)inputs, wanted));
        times[0][turns] = (double)(middle - start);
        times[1][turns] = (double)(wpk_clock_ns() - middle);
    }
    bool agree = true;
    for (size_t i = 0; i < plans->output_count; i++) {
        struct wpk_ort_tensor end;
        WPK_ORT_TRY(wpk_ort_tensor(ort, wanted[entry->of_output[i]], &end));
        agree = agree && agrees(wpk_model_output(entry->model, 0, i), outputs[i], &end);
    }
    qsort(times[0], (size_t)turns, sizeof(double), compare_times);
    qsort(times[1], (size_t)turns, sizeof(double), compare_times);
    double ours = times[0][turns / 2], theirs = times[1][turns / 2];
    bool faster = ours < FASTER * theirs;
    write_said(plans, entry,
               !agree   ? "refused: its outputs differ"
               : faster ? "serves"
                        : "refused: it is not faster",
               ours, theirs);
    better = agree && faster;
done:
    for (size_t i = 0; i < ENDS_MAX; i++) {
        ort->ReleaseValue(inputs[i]);
        ort->ReleaseValue(wanted[i]);
        free(outputs[i]);
    }
    ort->ReleaseMemoryInfo(memory);
    ort->ReleaseStatus(status);
    return better;
}

/* The threads of a call. */
struct crew {
    const struct wpk_ort *ort;
    const struct ort_kernel_context *context;
};

static void run_loop(void *host, wpk_loop_part part, void *user, size_t count)
{
    const struct crew *crew = host;
    struct ort_status *status =
        crew->ort->KernelContext_ParallelFor(crew->context, part, count, 0, user);
    if (status != NULL) { /* nothing has run */
        crew->ort->ReleaseStatus(status);
        for (size_t i = 0; i < count; i++) {
            part(user, i);
        }
    }
}

static void forget_inputs(const struct wpk_plans *plans, struct entry *entry)
{
    for (size_t i = 0; entry->inputs != NULL && i < plans->input_count; i++) {
        free(entry->inputs[i].data);
    }
    free(entry->inputs);
    entry->inputs = NULL;
}

/* Copy a call's inputs, for a trial.   returns false: there is no memory */
static bool keep_inputs(const struct wpk_plans *plans, struct entry *entry,
                        const struct wpk_ort_tensor *inputs)
{
    entry->inputs = calloc(plans->input_count + 1, sizeof(*inputs));
    for (size_t i = 0; entry->inputs != NULL && i < plans->input_count; i++) {
        void *copy = aligned_alloc(64, (inputs[i].size + 64) / 64 * 64);
        if (copy == NULL) {
            forget_inputs(plans, entry);
            return false;
        }
        entry->inputs[i] = inputs[i];
        entry->inputs[i].data = copy;
        memcpy(copy, inputs[i].size > 0 ? inputs[i].data : copy, inputs[i].size);
    }
    return entry->inputs != NULL;
}

static void close_plan(struct entry *entry)
{
    wpk_model_context_free(entry->idle);
    wpk_model_close(entry->model);
    entry->idle = NULL;
    entry->model = NULL;
}

/* Close plans that no call uses, the least recently used one first, until those that are open fit
 * into the limit; `kept` stays. With the lock, but for the closing. */
static void make_room(struct wpk_plans *plans, const struct entry *kept)
{
    for (;;) {
        size_t size = 0;
        struct entry *oldest = NULL;
        for (struct entry *entry = plans->entries; entry != NULL; entry = entry->next) {
            if (entry->model != NULL && entry->idle != NULL) {
                entry->size = wpk_model_context_size(entry->idle);
            }
            size += entry->model != NULL ? entry->size : 0;
            if (entry != kept && entry->idle != NULL && entry->state != COPIED &&
                (oldest == NULL || entry->used < oldest->used)) {
                oldest = entry;
            }
        }
        if (size <= (size_t)plans->options.size_mb_max << 20 || oldest == NULL) {
            return;
        }
        oldest->state = CLOSED;
        pthread_mutex_unlock(&plans->lock);
        close_plan(oldest);
        pthread_mutex_lock(&plans->lock);
    }
}

/* Take an entry a step further. The lock is held at the begin and the end, but not while a plan is
 * opened or tried: until it serves, calls touch the state and the copies alone. */
static void advance(struct wpk_plans *plans, struct entry *entry)
{
    if (entry->state != WANTED && entry->state != COPIED) {
        return;
    }
    pthread_mutex_unlock(&plans->lock);
    if (entry->state == WANTED) {
        if (!entry->is_noted) {
            write_text(plans, entry, ".want", entry->shapes);
            entry->is_noted = true;
        }
        open_plan(plans, entry);
    } else {
        bool is_better = try_plan(plans, entry);
        forget_inputs(plans, entry);
        wpk_model_context_use_threads(entry->idle, run_loop, NULL); /* ends those of the trial */
        entry->state = is_better ? SERVES : REFUSED;
    }
    if (entry->state == REFUSED) {
        close_plan(entry);
    }
    pthread_mutex_lock(&plans->lock);
    make_room(plans, entry);
}

static void *watch(void *argument)
{
    struct wpk_plans *plans = argument;
    pthread_mutex_lock(&plans->lock);
    while (!plans->ends) {
        struct timespec until;
        bool polls = false;
        plans->has_news = false;
        for (struct entry *entry = plans->entries; entry != NULL && !plans->ends;
             entry = entry->next) {
            advance(plans, entry);
            polls = polls || entry->state == WANTED;
        }
        if (plans->ends || plans->has_news) {
            continue;
        }
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += POLL_S;
        if (polls) {
            pthread_cond_timedwait(&plans->changed, &plans->lock, &until);
        } else {
            pthread_cond_wait(&plans->changed, &plans->lock);
        }
    }
    pthread_mutex_unlock(&plans->lock);
    return NULL;
}

/* ---- calls */

/* Tell the thread that an entry changed. With the lock. */
static void wake(struct wpk_plans *plans)
{
    plans->has_news = true;
    pthread_cond_signal(&plans->changed);
}

/* The entry of these shapes, a new one if there is room; NULL: there is none. With the lock. */
static struct entry *find_entry(struct wpk_plans *plans, const char *shapes)
{
    struct entry *entry = plans->entries;
    while (entry != NULL && strcmp(entry->shapes, shapes) != 0) {
        entry = entry->next;
    }
    if (entry != NULL || plans->entry_count == KEYS_MAX) {
        return entry;
    }
    entry = calloc(1, sizeof(*entry));
    if (entry == NULL || (entry->shapes = strdup(shapes)) == NULL) {
        free(entry);
        return NULL;
    }
    entry->next = plans->entries;
    plans->entries = entry;
    plans->entry_count++;
    if (!plans->has_thread) {
        plans->has_thread = pthread_create(&plans->thread, NULL, watch, plans) == 0;
    }
    wake(plans);
    return entry;
}

/* The plan's context for one call; NULL: the twin has to run. */
static struct wpk_model_context *take(struct wpk_plans *plans, const struct wpk_ort_tensor *inputs,
                                      struct entry **out)
{
    struct wpk_model_context *context = NULL;
    struct wpk_buf shapes = {0};
    print_key(plans, inputs, &shapes);
    pthread_mutex_lock(&plans->lock);
    struct entry *entry =
        wpk_buf_status(&shapes) == WPK_OK ? find_entry(plans, wpk_buf_text(&shapes)) : NULL;
    if (entry != NULL) {
        entry->used = ++plans->calls;
    }
    if (entry != NULL && entry->state == CLOSED) {
        entry->state = WANTED;
        wake(plans);
    } else if (entry != NULL && entry->state == OPEN) {
        if (keep_inputs(plans, entry, inputs)) {
            entry->state = COPIED;
            wake(plans);
        }
    } else if (entry != NULL && entry->state == SERVES) {
        context = entry->idle;
        entry->idle = NULL;
    }
    pthread_mutex_unlock(&plans->lock);
    wpk_buf_fini(&shapes);
    *out = entry;
    return context;
}

bool wpk_plans_run(struct wpk_plans *plans, struct ort_kernel_context *context)
{
    struct wpk_ort_tensor inputs[ENDS_MAX];
    void *outputs[ENDS_MAX];
    struct wpk_tensor_data data[2 * ENDS_MAX];
    struct entry *entry = NULL;
    if (plans == NULL || !read_inputs(plans, context, inputs)) {
        return false;
    }
    struct wpk_model_context *own = take(plans, inputs, &entry);
    if (own == NULL) {
        return false;
    }
    const struct wpk_ort *ort = plans->ort;
    struct ort_status *status = NULL;
    bool done = false;
    for (size_t i = 0; i < plans->output_count; i++) {
        const struct wpk_argument *argument = wpk_model_output(entry->model, 0, i);
        struct ort_value *value = NULL;
        WPK_ORT_TRY(ort->KernelContext_GetOutput(context, (size_t)entry->of_output[i],
                                                 argument->type.extent, (size_t)argument->type.rank,
                                                 &value));
        WPK_ORT_TRY(ort->GetTensorMutableData(value, &outputs[i]));
    }
    size_t count = wpk_model_input_count(entry->model);
    wpk_model_context_use_threads(own, run_loop, &(struct crew){ort, context});
    done = bind(plans, entry, inputs, outputs, data) &&
           wpk_model_run(own, data, count, data + count, plans->output_count) == WPK_OK;
done:
    ort->ReleaseStatus(status);
    pthread_mutex_lock(&plans->lock);
    entry->idle = own;
    pthread_mutex_unlock(&plans->lock);
    return done;
}

/* ---- life */

struct wpk_plans *wpk_plans_new(const struct wpk_ort *ort, const struct ort_graph *graph,
                                const struct wpk_twin *twin,
                                const struct wpk_plans_options *options)
{
    struct wpk_plans *plans = calloc(1, sizeof(*plans));
    if (plans == NULL || options->folder == NULL || options->model == NULL) {
        free(plans);
        return NULL;
    }
    plans->ort = ort;
    plans->twin = twin;
    plans->options = *options;
    plans->options.folder = strdup(options->folder);
    plans->options.model = strdup(options->model);
    plans->input_names = wpk_twin_inputs(twin, &plans->input_count);
    plans->output_names = wpk_twin_outputs(twin, &plans->output_count);
    pthread_mutex_init(&plans->lock, NULL);
    pthread_cond_init(&plans->changed, NULL);
    struct ort_status *status = NULL;
    bool fits = plans->options.folder != NULL && plans->options.model != NULL &&
                plans->input_count <= ENDS_MAX && plans->output_count <= ENDS_MAX;
    if (fits) {
        status = wpk_shape_inputs_find(ort, graph, plans->input_names, plans->input_count,
                                       plans->decides);
    }
    if (!fits || status != NULL) {
        ort->ReleaseStatus(status);
        wpk_plans_free(plans);
        return NULL;
    }
    return plans;
}

void wpk_plans_free(struct wpk_plans *plans)
{
    if (plans == NULL) {
        return;
    }
    pthread_mutex_lock(&plans->lock);
    plans->ends = true;
    pthread_cond_signal(&plans->changed);
    pthread_mutex_unlock(&plans->lock);
    if (plans->has_thread) {
        pthread_join(plans->thread, NULL);
    }
    while (plans->entries != NULL) {
        struct entry *entry = plans->entries;
        plans->entries = entry->next;
        forget_inputs(plans, entry);
        close_plan(entry);
        free(entry->shapes);
        free(entry);
    }
    pthread_cond_destroy(&plans->changed);
    pthread_mutex_destroy(&plans->lock);
    free((char *)(uintptr_t)plans->options.folder);
    free((char *)(uintptr_t)plans->options.model);
    free(plans);
}
