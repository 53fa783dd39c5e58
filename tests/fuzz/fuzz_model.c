/* SPDX-License-Identifier: Apache-2.0 */
/* Reads an ONNX model, infers its shapes, lowers its nodes, and rewrites it. */
#include "model/onnx/read.h"
#include "model/operator/lower.h"
#include "model/operator/shape.h"
#include "model/rewrite/rewrite.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static void lower_nodes(const struct wpk_graph *graph)
{
    for (int n = 0; n < graph->node_count; n++) {
        const struct wpk_lowered *lowered = NULL;
        struct wpk_diag reason = {0};
        wpk_err err = wpk_graph_lower(graph, n, &lowered, &reason);
        /* A folded node needs no program. */
        WPK_ASSERT(err == WPK_OK || reason.text[0] != '\0');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wpk_graph graph;
    struct wpk_diag diag = {0};
    struct wpk_buf problems = {0};
    char path[64];

    int fd = memfd_create("model", MFD_CLOEXEC);
    WPK_ASSERT(fd >= 0);
    WPK_ASSERT(write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    wpk_err err = wpk_onnx_read(path, &graph, &diag);
    WPK_ASSERT(err == WPK_OK || diag.text[0] != '\0');
    if (err == WPK_OK) {
        err = wpk_graph_infer(&graph, &problems);
        WPK_ASSERT((err == WPK_OK) == (problems.size == 0));
    }
    if (err == WPK_OK) {
        lower_nodes(&graph);
        err = wpk_graph_rewrite(&graph);
        WPK_ASSERT(err == WPK_OK || err == WPK_ENOSPC);
    }
    if (err == WPK_OK) {
        lower_nodes(&graph);
    }
    wpk_buf_fini(&problems);
    wpk_graph_fini(&graph);
    close(fd);
    return 0;
}
