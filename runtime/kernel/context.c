/* SPDX-License-Identifier: Apache-2.0 */
/* The host side of runtime/abi.h.
 *
 * Generated code is compiled without asserts: it checks neither an allocation for NULL nor the
 * result of a parallel loop. It also holds nothing that would need to be released. So a failed
 * allocation jumps out of generated code. On the caller's thread the jump leaves the whole call. In
 * a loop it leaves the thread's part of the loop; the caller then leaves the call. */
#include "runtime/kernel/context.h"

#include "runtime/pool.h"
#include "runtime/scratch.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CHUNKS_PER_THREAD 16 /* so that the last chunk of a loop keeps few waiting for long */

/* On lines of their own: threads change them all the time. */
struct thread_scratch {
    alignas(64) struct wpk_scratch scratch;
};

struct wpk_context {
    int threads_wanted;             /* 0: what kernels want */
    int *cpus;                      /* owned; [threads_wanted] or NULL */
    struct wpk_pool *pool;          /* owned; NULL: one thread, or those of `runner` */
    wpk_loop_runner runner;         /* NULL: loops run on `pool` */
    void *host;                     /* of `runner` */
    struct thread_scratch *scratch; /* owned; [thread_count] */
    int thread_count;
    struct wpk_vendor_call *vendor_call; /* owned; of the vendor that was called last */
    struct wpk_gpu_call *gpu_call;       /* owned; of the GPU's kernel that was called last */
    struct wpk_diag diag; /* why an index was refused, or no call made of the GPU's kernel */
    size_t scratch_size_max;
    atomic_int err; /* wpk_err of the call in progress */
    atomic_flag busy;
};

/* State of the current thread that the hooks need. */
struct thread_state {
    struct wpk_scratch *scratch;
    jmp_buf *escape;
    bool in_loop;
};

static _Thread_local struct thread_state current;

static void fail(struct wpk_context *context, wpk_err err)
{
    int none = WPK_OK;

    atomic_compare_exchange_strong(&context->err, &none, (int)err);
}

static void *scratch_take(void *user, size_t size)
{
    void *memory = wpk_scratch_take(current.scratch, size);

    if (memory == NULL) {
        fail(user, WPK_ENOMEM);
        _longjmp(*current.escape, 1);
    }
    return memory;
}

static void scratch_give(void *user WPK_UNUSED, void *memory)
{
    wpk_scratch_give(current.scratch, memory);
}

static void error(void *user, const char *message WPK_UNUSED)
{
    fail(user, WPK_EINVAL);
}

/* ---- parallel loops */

struct loop {
    struct wpk_context *context;
    wpk_abi_task task;
    uint8_t *closure;
    int min;
    long extent;
    long chunk;
    atomic_long next; /* the first index that nobody has */
    atomic_int result;
};

static int run_serially(void *user, wpk_abi_task task, int min, long extent, uint8_t *closure)
{
    int result = 0;

    for (long i = 0; i < extent && result == 0; i++) {
        result = task(user, (int)(min + i), closure);
    }
    return result;
}

static void run_chunks(struct loop *loop)
{
    while (atomic_load_explicit(&loop->result, memory_order_relaxed) == 0) {
        long first = atomic_fetch_add(&loop->next, loop->chunk);
        if (first >= loop->extent) {
            return;
        }
        long count = loop->extent - first < loop->chunk ? loop->extent - first : loop->chunk;
        int result =
            run_serially(loop->context, loop->task, (int)(loop->min + first), count, loop->closure);
        if (result != 0) {
            atomic_store(&loop->result, result);
        }
    }
}

static void run_part(void *user, size_t thread)
{
    struct loop *loop = user;
    struct wpk_scratch *scratch = &loop->context->scratch[thread].scratch;
    const struct thread_state outside = current;
    jmp_buf escape;

    current = (struct thread_state){.scratch = scratch, .escape = &escape, .in_loop = true};
    if (_setjmp(escape) == 0) {
        run_chunks(loop);
    } else {
        atomic_store(&loop->result, -1);
    }
    current = outside;
    /* Each thread touches its own block first. The caller's is in use further out. */
    if (thread != 0) {
        wpk_scratch_settle(scratch);
    }
}

static int parallel_for(void *user, wpk_abi_task task, int min, int extent, uint8_t *closure)
{
    struct wpk_context *context = user;

    if ((context->pool == NULL && context->runner == NULL) || context->thread_count < 2 ||
        current.in_loop || extent < 2) {
        return run_serially(user, task, min, extent, closure);
    }
    struct loop loop = {
        .context = context, .task = task, .closure = closure, .min = min, .extent = extent};
    loop.chunk = extent / ((long)context->thread_count * CHUNKS_PER_THREAD);
    loop.chunk += loop.chunk == 0;
    if (context->runner != NULL) {
        context->runner(context->host, run_part, &loop, (size_t)context->thread_count);
    } else {
        wpk_pool_run(context->pool, run_part, &loop);
    }

    int result = atomic_load(&loop.result);
    if (result != 0) {
        /* Later stages must not run on what was not computed; a bare result would be ignored. */
        fail(context, WPK_EINVAL);
        _longjmp(*current.escape, 1);
    }
    return 0;
}

const struct wpk_abi_host *wpk_context_host(void)
{
    static const struct wpk_abi_host host = {
        .abi_version = WPK_ABI_VERSION,
        .scratch_take = scratch_take,
        .scratch_give = scratch_give,
        .parallel_for = parallel_for,
        .error = error,
    };

    return &host;
}

/* ---- life */

static void stop(struct wpk_context *context)
{
    wpk_pool_free(context->pool);
    context->pool = NULL;
    for (int i = 0; i < context->thread_count; i++) {
        wpk_scratch_fini(&context->scratch[i].scratch);
    }
    free(context->scratch);
    context->scratch = NULL;
    context->thread_count = 0;
}

static wpk_err start(struct wpk_context *context, int threads)
{
    size_t size = sizeof(*context->scratch) * (size_t)threads;

    stop(context);
    context->scratch = aligned_alloc(alignof(struct thread_scratch), size);
    if (context->scratch == NULL) {
        return WPK_ENOMEM;
    }
    memset(context->scratch, 0, size);
    context->thread_count = threads;
    wpk_context_limit_scratch(context, context->scratch_size_max);
    wpk_err err = threads > 1 && context->runner == NULL
                      ? wpk_pool_new(threads, context->cpus, &context->pool)
                      : WPK_OK;
    if (err != WPK_OK) {
        stop(context);
    }
    return err;
}

wpk_err wpk_context_new(const struct wpk_context_options *options, struct wpk_context **out)
{
    static const struct wpk_context_options defaults = {0};

    if (options == NULL) {
        options = &defaults;
    }
    if (options->threads < 0 || options->threads > WPK_POOL_THREADS_MAX ||
        (options->cpus != NULL && options->threads == 0)) {
        return WPK_EINVAL;
    }
    struct wpk_context *context = calloc(1, sizeof(*context));
    wpk_err err = context != NULL ? WPK_OK : WPK_ENOMEM;
    if (err == WPK_OK && options->cpus != NULL) {
        size_t size = sizeof(int) * (size_t)options->threads;
        context->cpus = malloc(size);
        err = context->cpus != NULL ? WPK_OK : WPK_ENOMEM;
        if (err == WPK_OK) {
            memcpy(context->cpus, options->cpus, size);
        }
    }
    if (err == WPK_OK) {
        context->threads_wanted = options->threads;
        err = start(context, options->threads > 0 ? options->threads : 1);
    }
    if (err != WPK_OK) {
        wpk_context_free(context);
        return err;
    }
    *out = context;
    return WPK_OK;
}

void wpk_context_free(struct wpk_context *context)
{
    if (context == NULL) {
        return;
    }
    stop(context);
    wpk_vendor_call_free(context->vendor_call);
    wpk_gpu_call_free(context->gpu_call);
    free(context->cpus);
    free(context);
}

void wpk_context_limit_scratch(struct wpk_context *context, size_t size_max)
{
    context->scratch_size_max = size_max;
    for (int i = 0; i < context->thread_count; i++) {
        context->scratch[i].scratch.size_max = size_max;
    }
}

void wpk_context_use_threads(struct wpk_context *context, wpk_loop_runner runner, void *host)
{
    WPK_ASSERT(runner != NULL);
    context->runner = runner;
    context->host = host;
    wpk_pool_free(context->pool);
    context->pool = NULL;
}

size_t wpk_context_scratch_size(const struct wpk_context *context)
{
    size_t size = 0;

    for (int i = 0; i < context->thread_count; i++) {
        size += context->scratch[i].scratch.size;
    }
    return size;
}

/* ---- calls */

/* Apart from its caller, so that nothing of that one's is in a register across the jump. */
static void enter(struct wpk_context *context, wpk_abi_function function,
                  struct wpk_abi_buffer *const *arguments, size_t count)
{
    jmp_buf escape;

    current = (struct thread_state){.scratch = &context->scratch[0].scratch, .escape = &escape};
    if (_setjmp(escape) == 0 && function(context, arguments, count) != 0) {
        fail(context, WPK_EINVAL);
    }
    current = (struct thread_state){0};
}

/* One call at a time. */
static void occupy(struct wpk_context *context)
{
    bool busy = atomic_flag_test_and_set_explicit(&context->busy, memory_order_acquire);

    WPK_ASSERT(!busy);
}

wpk_err wpk_context_call(struct wpk_context *context, int threads, wpk_abi_function function,
                         struct wpk_abi_buffer *const *arguments, size_t count)
{
    wpk_err err = WPK_OK;

    occupy(context);
    if (context->threads_wanted == 0 && context->thread_count < threads) {
        err = start(context, threads);
    } else if (context->thread_count == 0) {
        err = start(context, 1); /* an earlier start failed */
    }
    if (err == WPK_OK) {
        atomic_store_explicit(&context->err, WPK_OK, memory_order_relaxed);
        enter(context, function, arguments, count);
        err = (wpk_err)atomic_load_explicit(&context->err, memory_order_relaxed);
        wpk_scratch_settle(&context->scratch[0].scratch);
    }
    atomic_flag_clear_explicit(&context->busy, memory_order_release);
    return err;
}

wpk_err wpk_context_call_vendor(struct wpk_context *context, struct wpk_vendor *vendor,
                                void *const *data)
{
    wpk_err err = WPK_OK;

    occupy(context);
    if (context->vendor_call == NULL || wpk_vendor_call_vendor(context->vendor_call) != vendor) {
        struct wpk_vendor_call *call = NULL;
        err = wpk_vendor_call_new(vendor, &call);
        if (err == WPK_OK) {
            wpk_vendor_call_free(context->vendor_call);
            context->vendor_call = call;
        }
    }
    err = err == WPK_OK ? wpk_vendor_call_run(context->vendor_call, data) : err;
    atomic_flag_clear_explicit(&context->busy, memory_order_release);
    return err;
}

/* Make the context's call one of this kernel. */
static wpk_err use_gpu(struct wpk_context *context, struct wpk_gpu *gpu)
{
    struct wpk_gpu_call *call = NULL;

    if (context->gpu_call != NULL && wpk_gpu_call_of(context->gpu_call) == gpu) {
        context->diag.text[0] = '\0';
        return WPK_OK;
    }
    wpk_err err = wpk_gpu_call_new(gpu, &call, &context->diag);
    if (err == WPK_OK) {
        wpk_gpu_call_free(context->gpu_call);
        context->gpu_call = call;
        context->diag = (struct wpk_diag){0};
    }
    return err;
}

wpk_err wpk_context_call_gpu(struct wpk_context *context, struct wpk_gpu *gpu, void *const *data)
{
    occupy(context);
    wpk_err err = use_gpu(context, gpu);
    err = err == WPK_OK ? wpk_gpu_call_run(context->gpu_call, data) : err;
    atomic_flag_clear_explicit(&context->busy, memory_order_release);
    return err;
}

wpk_err wpk_context_launch(struct wpk_context *context, struct wpk_gpu *gpu, void *stream,
                           const uint64_t *data)
{
    occupy(context);
    wpk_err err = use_gpu(context, gpu);
    err = err == WPK_OK ? wpk_gpu_call_launch(context->gpu_call, stream, data) : err;
    atomic_flag_clear_explicit(&context->busy, memory_order_release);
    return err;
}

wpk_err wpk_context_check(struct wpk_context *context, void *const *data,
                          struct wpk_gpu_damage *out)
{
    return context->gpu_call != NULL ? wpk_gpu_call_check(context->gpu_call, data, out) : WPK_OK;
}

wpk_err wpk_context_rotate(struct wpk_context *context, bool constants_only)
{
    WPK_ASSERT(context->gpu_call != NULL);
    return wpk_gpu_call_rotate(context->gpu_call, constants_only);
}

wpk_err wpk_context_time(struct wpk_context *context, int repeats, double *ns)
{
    WPK_ASSERT(context->gpu_call != NULL);
    return wpk_gpu_call_time(context->gpu_call, repeats, ns);
}

struct wpk_diag *wpk_context_diag(struct wpk_context *context)
{
    context->diag.text[0] = '\0';
    return &context->diag;
}

const char *wpk_context_trouble(const struct wpk_context *context)
{
    bool made = context->gpu_call != NULL && context->diag.text[0] == '\0';

    return made ? wpk_gpu_call_trouble(context->gpu_call) : context->diag.text;
}
