/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/onnxruntime/plans.h"

#include "common/buf.h"
#include "common/clock.h"
#include "common/crypto.h"
#include "common/fs.h"
#include "runtime/onnxruntime/plan.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define KEYS_MAX 256                 /* sets of shapes that are remembered */
#define VALUES_MAX 64                /* elements of an input that are part of a key */
#define POLL_S 1                     /* for files of plans that are wanted */
#define CALLS_NS (60 * WPK_NS_PER_S) /* between two files of calls */
#define WANT_MODE 0644

enum state { WANTED, OPEN, COPIED, SERVES, REFUSED, CLOSED };

/* A set of shapes. */
struct entry {
    struct entry *next;
    char *shapes; /* owned; see print_key() */
    _Atomic enum state state;
    struct wpk_ort_plan plan;
    size_t size;                          /* bytes of an open plan */
    uint64_t used;                        /* the number of the last call */
    bool is_noted;                        /* its file KEY.want is written */
    struct wpk_ort_tensor *inputs;        /* owned; copies, while the plan is tried */
    _Atomic uint64_t twin_calls, twin_ns; /* of which no file says yet */
    uint64_t tell_ns;                     /* the next file is not written before */
};

struct wpk_plans {
    struct wpk_plan_group group;
    struct wpk_plans_options options; /* texts are owned */
    bool decides[WPK_PLAN_ENDS_MAX];  /* by input: plans have its elements as constants */
    pthread_mutex_t lock;             /* of what follows */
    pthread_cond_t changed;
    pthread_t thread;
    bool has_thread, ends;
    struct entry *entries;
    int entry_count;
    uint64_t calls;
    bool has_news; /* for the thread, which may be at another entry */
};

/* ---- tensors */

static bool read_inputs(const struct wpk_plans *plans, struct ort_kernel_context *context,
                        struct wpk_ort_tensor *inputs)
{
    const struct wpk_ort *ort = plans->group.ort;
    struct ort_status *status = NULL;
    bool read = false;
    for (size_t i = 0; i < plans->group.input_count; i++) {
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
    bool is_wide = wpk_plan_is_of(end->element, WPK_I64);
    size_t count = end->size / (is_wide ? sizeof(int64_t) : sizeof(int32_t));
    if (count > VALUES_MAX || (!is_wide && !wpk_plan_is_of(end->element, WPK_I32))) {
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
    for (size_t i = 0; i < plans->group.input_count; i++) {
        wpk_buf_printf(out, "%s=", plans->group.input_names[i]);
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
        (void)!wpk_fs_write(wpk_buf_text(&path), text, strlen(text), WANT_MODE, NULL);
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

/* Say how often the twin was called since the last time, and for how long, if there is no plan. */
static void write_calls(const struct wpk_plans *plans, struct entry *entry)
{
    char text[64], ending[32];
    uint64_t now = wpk_clock_ns();
    if (entry->state == WANTED && entry->twin_calls > 0 && now >= entry->tell_ns) {
        snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 "\n",
                 atomic_exchange(&entry->twin_calls, 0), atomic_exchange(&entry->twin_ns, 0));
        snprintf(ending, sizeof(ending), ".%" PRIu64 ".calls", now);
        write_text(plans, entry, ending, text);
        entry->tell_ns = now + CALLS_NS;
    }
}

/* ---- a plan is tried */

/* Open the plan's file, if it is there. */
static void open_plan(struct wpk_plans *plans, struct entry *entry)
{
    struct wpk_buf path = {0};
    print_path(plans, entry, ".wpk", &path);
    if (wpk_buf_status(&path) == WPK_OK && access(wpk_buf_text(&path), R_OK) == 0) {
        wpk_err err = wpk_plan_open(&plans->group, wpk_buf_text(&path), &entry->plan);
        if (err != WPK_OK) {
            write_said(plans, entry, err == WPK_EMISMATCH ? "refused: it does not fit" : "refused",
                       0, 0);
        }
        entry->state = err == WPK_OK ? OPEN : REFUSED;
    }
    wpk_buf_fini(&path);
}

/* True if the plan is better than the twin on the copied inputs. */
static bool try_plan(const struct wpk_plans *plans, struct entry *entry)
{
    struct wpk_plan_trial trial = {0};
    if (!wpk_plan_try(&plans->group, &entry->plan, entry->inputs, &trial)) {
        return false;
    }
    write_said(plans, entry,
               !trial.agrees     ? "refused: its outputs differ"
               : trial.is_faster ? "serves"
                                 : "refused: it is not faster",
               trial.plan_ns, trial.twin_ns);
    return trial.agrees && trial.is_faster;
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
    for (size_t i = 0; entry->inputs != NULL && i < plans->group.input_count; i++) {
        free(entry->inputs[i].data);
    }
    free(entry->inputs);
    entry->inputs = NULL;
}

/* Copy a call's inputs, for a trial.   returns false: there is no memory */
static bool keep_inputs(const struct wpk_plans *plans, struct entry *entry,
                        const struct wpk_ort_tensor *inputs)
{
    entry->inputs = calloc(plans->group.input_count + 1, sizeof(*inputs));
    for (size_t i = 0; entry->inputs != NULL && i < plans->group.input_count; i++) {
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

/* Close plans that no call uses, the least recently used one first, until those that are open fit
 * into the limit; `kept` stays. With the lock, but for the closing. */
static void make_room(struct wpk_plans *plans, const struct entry *kept)
{
    for (;;) {
        size_t size = 0;
        struct entry *oldest = NULL;
        for (struct entry *entry = plans->entries; entry != NULL; entry = entry->next) {
            if (entry->plan.model != NULL && entry->plan.idle != NULL) {
                entry->size = wpk_model_context_size(entry->plan.idle);
            }
            size += entry->plan.model != NULL ? entry->size : 0;
            if (entry != kept && entry->plan.idle != NULL && entry->state != COPIED &&
                (oldest == NULL || entry->used < oldest->used)) {
                oldest = entry;
            }
        }
        if (size <= (size_t)plans->options.size_mb_max << 20 || oldest == NULL) {
            return;
        }
        oldest->state = CLOSED;
        pthread_mutex_unlock(&plans->lock);
        wpk_plan_close(&oldest->plan);
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
        write_calls(plans, entry);
        open_plan(plans, entry);
    } else {
        bool is_better = try_plan(plans, entry);
        forget_inputs(plans, entry);
        wpk_model_context_use_threads(entry->plan.idle, run_loop,
                                      NULL); /* ends those of the trial */
        entry->state = is_better ? SERVES : REFUSED;
    }
    if (entry->state == REFUSED) {
        wpk_plan_close(&entry->plan);
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
        context = entry->plan.idle;
        entry->plan.idle = NULL;
    }
    pthread_mutex_unlock(&plans->lock);
    wpk_buf_fini(&shapes);
    *out = entry;
    return context;
}

/* Compute the outputs by the plan for these shapes; false: the twin has to. *out: their entry, if
 * there is one. */
static bool serve(struct wpk_plans *plans, struct ort_kernel_context *context, struct entry **out)
{
    struct wpk_ort_tensor inputs[WPK_PLAN_ENDS_MAX];
    void *outputs[WPK_PLAN_ENDS_MAX];
    struct wpk_tensor_data data[2 * WPK_PLAN_ENDS_MAX];
    if (!read_inputs(plans, context, inputs)) {
        return false;
    }
    struct wpk_model_context *own = take(plans, inputs, out);
    struct entry *entry = *out;
    if (own == NULL) {
        return false;
    }
    const struct wpk_ort *ort = plans->group.ort;
    struct ort_status *status = NULL;
    bool done = false;
    for (size_t i = 0; i < plans->group.output_count; i++) {
        const struct wpk_argument *argument = wpk_model_output(entry->plan.model, 0, i);
        struct ort_value *value = NULL;
        WPK_ORT_TRY(ort->KernelContext_GetOutput(context, (size_t)entry->plan.of_output[i],
                                                 argument->type.extent, (size_t)argument->type.rank,
                                                 &value));
        WPK_ORT_TRY(ort->GetTensorMutableData(value, &outputs[i]));
    }
    size_t count = wpk_model_input_count(entry->plan.model);
    wpk_model_context_use_threads(own, run_loop, &(struct crew){ort, context});
    done = wpk_plan_bind(&plans->group, &entry->plan, inputs, outputs, data) &&
           wpk_model_run(own, data, count, data + count, plans->group.output_count) == WPK_OK;
done:
    ort->ReleaseStatus(status);
    pthread_mutex_lock(&plans->lock);
    entry->plan.idle = own;
    pthread_mutex_unlock(&plans->lock);
    return done;
}

struct ort_status *wpk_plans_run(struct wpk_plans *plans, struct ort_kernel_context *context)
{
    struct entry *entry = NULL;
    if (serve(plans, context, &entry)) {
        return NULL;
    }
    uint64_t began = wpk_clock_ns();
    struct ort_status *status = wpk_twin_run(plans->group.twin, context);
    if (entry != NULL && plans->options.counts_calls != 0) {
        entry->twin_ns += wpk_clock_ns() - began;
        entry->twin_calls++;
    }
    return status;
}

/* ---- life */

struct wpk_plans *wpk_plans_new(const struct wpk_ort *ort, const struct ort_graph *graph,
                                const struct wpk_twin *twin,
                                const struct wpk_plans_options *options)
{
    struct wpk_plans *plans = calloc(1, sizeof(*plans));
    if (plans == NULL || options->folder == NULL || options->model == NULL ||
        options->model[0] == '\0') {
        free(plans);
        return NULL;
    }
    plans->group =
        (struct wpk_plan_group){.ort = ort, .twin = twin, .thread_count = options->thread_count};
    plans->options = *options;
    plans->options.folder = strdup(options->folder);
    plans->options.model = strdup(options->model);
    plans->group.input_names = wpk_twin_inputs(twin, &plans->group.input_count);
    plans->group.output_names = wpk_twin_outputs(twin, &plans->group.output_count);
    pthread_mutex_init(&plans->lock, NULL);
    pthread_cond_init(&plans->changed, NULL);
    struct ort_status *status = NULL;
    bool fits = plans->options.folder != NULL && plans->options.model != NULL &&
                plans->group.input_count <= WPK_PLAN_ENDS_MAX &&
                plans->group.output_count <= WPK_PLAN_ENDS_MAX;
    if (fits) {
        status = wpk_shape_inputs_find(ort, graph, plans->group.input_names,
                                       plans->group.input_count, plans->decides);
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
        entry->tell_ns = 0;
        write_calls(plans, entry);
        forget_inputs(plans, entry);
        wpk_plan_close(&entry->plan);
        free(entry->shapes);
        free(entry);
    }
    pthread_cond_destroy(&plans->changed);
    pthread_mutex_destroy(&plans->lock);
    free((char *)(uintptr_t)plans->options.folder);
    free((char *)(uintptr_t)plans->options.model);
    free(plans);
}
