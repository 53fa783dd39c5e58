/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of launches: when they are used, and what the driver refuses. */
#include "runtime/gpu/gpu_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define CALLS_MAX 9000
#define LAUNCHES 3

/* Each kernel appends its number to the list that its argument points to, whose length comes first;
 * and the list must lie where a 64-bit number may. */
#define KERNEL(name, number)                                                                       \
    ".visible .entry " name "(.param .u64 x)\n{\n.reg .b64 %d<6>;\n"                               \
    "ld.param.u64 %d1, [x];\nld.global.u64 %d2, [%d1];\nshl.b64 %d3, %d2, 3;\n"                    \
    "add.s64 %d4, %d1, %d3;\nmov.u64 %d5, " number ";\nst.global.u64 [%d4+8], %d5;\n"              \
    "add.s64 %d2, %d2, 1;\nst.global.u64 [%d1], %d2;\nret;\n}\n"
/* A kernel stores its parameters one after another where the first one points to. */
#define STORING                                                                                    \
    ".visible .entry d(.param .u64 x, .param .u32 n, .param .u64 s, .param .u64 m)\n{\n"           \
    ".reg .b64 %d<5>;\n.reg .b32 %r<2>;\nld.param.u64 %d1, [x];\nld.param.s32 %r1, [n];\n"         \
    "ld.param.u64 %d2, [s];\nld.param.u64 %d3, [m];\ncvt.s64.s32 %d4, %r1;\n"                      \
    "st.global.u64 [%d1], %d4;\nst.global.u64 [%d1+8], %d2;\nst.global.u64 [%d1+16], %d3;\n"       \
    "ret;\n}\n"
#define TAKING(name, parameters)                                                                   \
    "{\"entry\":\"" name "\",\"blocks\":[1,1,1],\"threads\":[1,1,1],\"shared_bytes\":0,"           \
    "\"added_bytes\":0,\"registers\":0,\"local_bytes\":0,\"parameters\":[" parameters "]}"
#define LAUNCH(name) TAKING(name, "{\"tensor\":0,\"offset\":0}")
#define STORE(offset, number)                                                                      \
    TAKING("d", "{\"tensor\":0,\"offset\":" offset "},{\"number\":" number ",\"bytes\":4},"        \
                "{\"tensor\":1,\"offset\":24},{\"number\":-1099511627777,\"bytes\":8}")
#define IMAGE(launches)                                                                            \
    "{\"version\":5,\"architecture\":\"sm_50\",\"cubin_bytes\":0,\"arguments\":1,\"launches\":"    \
    "[" launches "],\"scratch\":[{\"bytes\":32,\"zeroed\":false}]}\n.version 8.0\n.target sm_50\n" \
    ".address_size 64\n" KERNEL("a", "1") KERNEL("b", "2") KERNEL("c", "3") STORING

struct list {
    uint64_t count;
    uint64_t number[CALLS_MAX];
};

/* Calls of the driver since the fixture was set up. */
static const struct wpk_cuda_driver *real;
static struct {
    int kernels, graphs, instantiated, changed, uploaded;
} seen;

static int launch_kernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z,
                         unsigned shared_bytes, void *stream, void **parameters, void **extra)
{
    seen.kernels++;
    return real->cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                shared_bytes, stream, parameters, extra);
}

static int launch_graph(void *exec, void *stream)
{
    seen.graphs++;
    return real->cuGraphLaunch(exec, stream);
}

static int upload_graph(void *exec, void *stream)
{
    seen.uploaded++;
    return real->cuGraphUpload(exec, stream);
}

static int instantiate(void **exec, void *graph, unsigned long long flags)
{
    seen.instantiated++;
    return real->cuGraphInstantiateWithFlags(exec, graph, flags);
}

static int change(void *exec, void *node, const struct wpk_cuda_kernel_node *launch)
{
    seen.changed++;
    return real->cuGraphExecKernelNodeSetParams_v2(exec, node, launch);
}

struct fixture {
    struct wpk_cuda_driver driver; /* that counts */
    struct wpk_gpu *gpu;
    struct wpk_gpu_call *call;
    struct list *list[2]; /* in device memory, which is the host's */
};

static void set_up(struct fixture *f, const char *image)
{
    const struct wpk_gpu_options options = {.emulated = true, .image = {image, strlen(image)}};
    static const struct list empty;
    const struct wpk_gpu_argument argument = {.size = sizeof(struct list)};
    struct wpk_diag diag = {0};
    if (wpk_gpu_open(&options, &f->gpu, &diag) != WPK_OK) {
        fail_msg("%s", diag.text);
    }
    for (int i = 0; i < 2; i++) {
        uint64_t address = 0;
        assert_int_equal(wpk_gpu_upload(f->gpu, &empty, sizeof(empty), &address, &diag), WPK_OK);
        f->list[i] = (struct list *)(uintptr_t)address; // NOLINT: a device address is a host's
    }
    wpk_gpu_settle(f->gpu, &argument);
    assert_int_equal(wpk_gpu_call_new(f->gpu, &f->call, &diag), WPK_OK);
    memset(&seen, 0, sizeof(seen));
    real = f->gpu->driver;
    f->driver = *real;
    f->driver.cuLaunchKernel = launch_kernel;
    f->driver.cuGraphLaunch = launch_graph;
    f->driver.cuGraphUpload = upload_graph;
    f->driver.cuGraphInstantiateWithFlags = instantiate;
    f->driver.cuGraphExecKernelNodeSetParams_v2 = change;
    f->gpu->driver = f->gpu->main.driver = &f->driver;
    assert_int_equal(wpk_gpu_enter(f->gpu, &diag), WPK_OK);
}

static void tear_down(struct fixture *f)
{
    wpk_gpu_leave(f->gpu);
    wpk_gpu_call_free(f->call);
    wpk_gpu_release(f->gpu);
}

static void launch(struct fixture *f, int list)
{
    uint64_t address = (uint64_t)(uintptr_t)f->list[list];
    assert_int_equal(wpk_gpu_call_launch(f->call, NULL, &address), WPK_OK);
}

/* The list has the numbers 1, 2, ... of so many calls. */
static void check_list(const struct list *list, int calls, int launches)
{
    assert_int_equal(list->count, calls * launches);
    for (int i = 0; i < calls * launches; i++) {
        assert_int_equal(list->number[i], i % launches + 1);
    }
}

static void test_two_launches_are_plain(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, IMAGE(LAUNCH("a") "," LAUNCH("b")));
    launch(&f, 0);
    launch(&f, 0);
    check_list(f.list[0], 2, 2);
    assert_int_equal(seen.kernels, 4);
    assert_int_equal(seen.graphs + seen.instantiated, 0);
    tear_down(&f);
}

static void test_three_launches_are_a_graph(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, IMAGE(LAUNCH("a") "," LAUNCH("b") "," LAUNCH("c")));
    launch(&f, 0);
    launch(&f, 0);
    assert_int_equal(seen.changed, 0);
    launch(&f, 1);
    assert_int_equal(seen.changed, LAUNCHES);
    launch(&f, 1);
    launch(&f, 0);
    assert_int_equal(seen.changed, 2 * LAUNCHES);
    check_list(f.list[0], 3, LAUNCHES);
    check_list(f.list[1], 2, LAUNCHES);
    assert_int_equal(seen.instantiated, 1);
    assert_int_equal(seen.graphs, 5);
    assert_int_equal(seen.kernels, 0);
    tear_down(&f);
}

static void check_stored(const struct fixture *f, int list, int at, uint64_t number)
{
    const uint64_t *stored = &f->list[list]->number[at];
    assert_true(stored[0] == number);
    assert_true(stored[1] == f->call->scratch[0] + 24);
    assert_true(stored[2] == (uint64_t)-1099511627777);
}

/* A launch takes places in tensors, and numbers, whether it is plain or of a graph. */
static void test_parameters(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, IMAGE(STORE("8", "-7")));
    launch(&f, 0);
    assert_int_equal(seen.kernels, 1);
    check_stored(&f, 0, 0, (uint64_t)-7);
    size_t bytes = 9;
    assert_int_equal(wpk_gpu_check_arguments(f.gpu, &bytes, 1, NULL, 0, NULL), WPK_OK);
    assert_int_equal(wpk_gpu_check_arguments(f.gpu, &bytes, 1, &bytes, 1, NULL), WPK_ECORRUPT);
    bytes = 8; /* the launch's pointer is to the byte behind */
    assert_int_equal(wpk_gpu_check_arguments(f.gpu, &bytes, 1, NULL, 0, NULL), WPK_ECORRUPT);
    tear_down(&f);
    set_up(&f, IMAGE(STORE("8", "2147483647") "," STORE("32", "-5") "," STORE("56", "6")));
    launch(&f, 0);
    launch(&f, 1);
    assert_int_equal(seen.graphs, 2);
    for (int list = 0; list < 2; list++) {
        check_stored(&f, list, 0, INT32_MAX);
        check_stored(&f, list, 3, (uint64_t)-5);
        check_stored(&f, list, 6, 6);
    }
    tear_down(&f);
}

/* A stream that the caller captures takes no graph: the launches become part of the caller's. */
static void test_captured_launches_are_plain(void **state)
{
    (void)state;
    struct fixture f;
    void *graph = NULL, *exec = NULL, *stream = NULL;
    set_up(&f, IMAGE(LAUNCH("a") "," LAUNCH("b") "," LAUNCH("c")));
    uint64_t address = (uint64_t)(uintptr_t)f.list[0];
    assert_int_equal(real->cuStreamCreate(&stream, 0), WPK_CUDA_SUCCESS);
    assert_int_equal(real->cuStreamBeginCapture_v2(NULL, 0), WPK_CUDA_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(real->cuStreamEndCapture(stream, &graph), WPK_CUDA_ILLEGAL_STATE);
    assert_int_equal(real->cuStreamBeginCapture_v2(stream, WPK_CUDA_CAPTURE_MODE_RELAXED), 0);
    assert_int_equal(real->cuStreamBeginCapture_v2(stream, WPK_CUDA_CAPTURE_MODE_RELAXED),
                     WPK_CUDA_ILLEGAL_STATE);
    assert_int_equal(real->cuStreamSynchronize(stream), WPK_CUDA_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(wpk_gpu_call_launch(f.call, stream, &address), WPK_OK);
    assert_int_equal(real->cuStreamEndCapture(stream, &graph), WPK_CUDA_SUCCESS);
    assert_int_equal(f.list[0]->count, 0);
    assert_int_equal(real->cuGraphInstantiateWithFlags(&exec, graph, 0), WPK_CUDA_SUCCESS);
    assert_int_equal(real->cuGraphLaunch(exec, stream), WPK_CUDA_SUCCESS);
    check_list(f.list[0], 1, LAUNCHES);
    assert_int_equal(seen.kernels, LAUNCHES);
    assert_int_equal(seen.graphs, 0);
    assert_int_equal(real->cuGraphExecDestroy(exec), WPK_CUDA_SUCCESS);
    assert_int_equal(real->cuGraphDestroy(graph), WPK_CUDA_SUCCESS);
    tear_down(&f);
}

/* A sample is one graph, which the next sample launches again; single calls between them leave it
 * alone. More calls than a graph has are several of it, and the rest. */
static void test_a_sample_is_a_graph(void **state)
{
    (void)state;
    struct fixture f;
    double one = 0, many = 0, ns = 0;
    set_up(&f, IMAGE(LAUNCH("a") "," LAUNCH("b") "," LAUNCH("c")));
    f.call->pointer[0] = (uint64_t)(uintptr_t)f.list[0];
    assert_int_equal(wpk_gpu_call_time(f.call, 1, &one), WPK_OK);
    assert_int_equal(seen.kernels, LAUNCHES);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wpk_gpu_call_time(f.call, 50, &many), WPK_OK);
        assert_int_equal(wpk_gpu_call_time(f.call, 1, &ns), WPK_OK);
    }
    assert_true(many > 49.99 * one && many < 50.01 * one); /* events see a graph's launches */
    assert_int_equal(seen.instantiated, 1);
    assert_int_equal(seen.graphs, 3);
    assert_int_equal(seen.uploaded, 3);
    assert_int_equal(seen.changed, 0);
    assert_int_equal(seen.kernels, 4 * LAUNCHES);
    check_list(f.list[0], 3 * 51 + 1, LAUNCHES);
    f.list[0]->count = 0;
    int calls = 2 * (WPK_GPU_GRAPH_LAUNCHES_MAX / LAUNCHES) + 2;
    assert_int_equal(wpk_gpu_call_time(f.call, calls, &ns), WPK_OK);
    check_list(f.list[0], calls, LAUNCHES);
    assert_int_equal(seen.graphs, 3 + 2);
    assert_int_equal(seen.kernels, 6 * LAUNCHES);
    tear_down(&f);
}

/* ---- what the driver refuses */

struct graph {
    void *graph, *node, *exec;
    uint64_t pointer;
    void *parameters[1];
    struct wpk_cuda_kernel_node launch;
};

static void make_graph(const struct fixture *f, struct graph *g)
{
    *g = (struct graph){.pointer = (uint64_t)(uintptr_t)f->list[0]};
    g->parameters[0] = &g->pointer;
    g->launch = (struct wpk_cuda_kernel_node){.function = f->gpu->main.function[0],
                                              .grid_x = 1,
                                              .grid_y = 1,
                                              .grid_z = 1,
                                              .block_x = 1,
                                              .block_y = 1,
                                              .block_z = 1,
                                              .parameters = g->parameters};
    assert_int_equal(real->cuGraphCreate(&g->graph, 0), WPK_CUDA_SUCCESS);
    assert_int_equal(real->cuGraphAddKernelNode_v2(&g->node, g->graph, NULL, 0, &g->launch),
                     WPK_CUDA_SUCCESS);
    assert_int_equal(real->cuGraphInstantiateWithFlags(&g->exec, g->graph, 0), WPK_CUDA_SUCCESS);
}

static void test_wrong_handles_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    struct graph first, second;
    void *made = NULL;
    set_up(&f, IMAGE(LAUNCH("a")));
    make_graph(&f, &first);
    make_graph(&f, &second);
    void *const others[] = {second.node, first.graph, first.exec};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        assert_int_equal(
            real->cuGraphExecKernelNodeSetParams_v2(first.exec, others[i], &first.launch),
            WPK_CUDA_INVALID_VALUE);
        assert_int_equal(
            real->cuGraphAddKernelNode_v2(&made, first.graph, &others[i], 1, &first.launch),
            WPK_CUDA_INVALID_VALUE);
    }
    assert_int_equal(real->cuGraphLaunch(first.graph, NULL), WPK_CUDA_INVALID_VALUE);
    first.launch.function = first.graph;
    assert_int_equal(real->cuGraphExecKernelNodeSetParams_v2(first.exec, first.node, &first.launch),
                     WPK_CUDA_INVALID_HANDLE);
    assert_int_equal(real->cuGraphDestroy(first.graph), WPK_CUDA_SUCCESS);
    assert_int_equal(real->cuGraphDestroy(first.graph), WPK_CUDA_INVALID_VALUE);
    assert_int_equal(
        real->cuGraphExecKernelNodeSetParams_v2(first.exec, first.node, &second.launch),
        WPK_CUDA_INVALID_VALUE);
    assert_int_equal(real->cuGraphLaunch(first.exec, NULL), WPK_CUDA_SUCCESS);
    assert_int_equal(real->cuGraphExecDestroy(first.exec), WPK_CUDA_SUCCESS);
    assert_int_equal(real->cuGraphLaunch(first.exec, NULL), WPK_CUDA_INVALID_VALUE);
    assert_int_equal(real->cuGraphUpload(first.exec, NULL), WPK_CUDA_INVALID_VALUE);
    assert_int_equal(real->cuGraphExecDestroy(first.exec), WPK_CUDA_INVALID_VALUE);
    /* The module goes first. */
    wpk_gpu_program_unload(&f.gpu->main);
    assert_int_equal(real->cuGraphLaunch(second.exec, NULL), WPK_CUDA_INVALID_HANDLE);
    assert_int_equal(real->cuGraphExecDestroy(second.exec), WPK_CUDA_SUCCESS);
    assert_int_equal(real->cuGraphDestroy(second.graph), WPK_CUDA_SUCCESS);
    check_list(f.list[0], 1, 1);
    tear_down(&f);
}

static void test_a_context_is_needed(void **state)
{
    (void)state;
    struct fixture f;
    struct graph g;
    void *made = NULL;
    set_up(&f, IMAGE(LAUNCH("a")));
    make_graph(&f, &g);
    wpk_gpu_leave(f.gpu);
    assert_int_equal(real->cuGraphCreate(&made, 0), WPK_CUDA_INVALID_CONTEXT);
    assert_int_equal(real->cuGraphAddKernelNode_v2(&made, g.graph, NULL, 0, &g.launch),
                     WPK_CUDA_INVALID_CONTEXT);
    assert_int_equal(real->cuGraphInstantiateWithFlags(&made, g.graph, 0),
                     WPK_CUDA_INVALID_CONTEXT);
    assert_int_equal(real->cuGraphExecKernelNodeSetParams_v2(g.exec, g.node, &g.launch),
                     WPK_CUDA_INVALID_CONTEXT);
    assert_int_equal(real->cuGraphLaunch(g.exec, NULL), WPK_CUDA_INVALID_CONTEXT);
    assert_int_equal(wpk_gpu_enter(f.gpu, NULL), WPK_OK);
    assert_int_equal(real->cuGraphExecDestroy(g.exec), WPK_CUDA_SUCCESS);
    assert_int_equal(real->cuGraphDestroy(g.graph), WPK_CUDA_SUCCESS);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_launches_are_plain),
        cmocka_unit_test(test_three_launches_are_a_graph),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_captured_launches_are_plain),
        cmocka_unit_test(test_a_sample_is_a_graph),
        cmocka_unit_test(test_wrong_handles_are_refused),
        cmocka_unit_test(test_a_context_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
