/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/engine/engine_state.h"

#include "common/fs.h"

#include <errno.h>

wpk_err wpk_trace_open(struct wpk_trace *trace, const char *path)
{
    trace->file = fopen(path, "we");
    if (trace->file == NULL) {
        return wpk_fs_err(errno);
    }
    setvbuf(trace->file, NULL, _IOLBF, 0); /* what a worker that is killed did, is there */
    fprintf(trace->file,
            "[\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":"
            "\"engine\"}},\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{"
            "\"name\":\"runner\"}}",
            WPK_TRACE_ENGINE, WPK_TRACE_RUNNER);
    return WPK_OK;
}

void wpk_trace_close(struct wpk_trace *trace)
{
    if (trace->file != NULL) {
        fputs("\n]\n", trace->file);
        fclose(trace->file);
    }
    *trace = (struct wpk_trace){0};
}

void wpk_trace_span(struct wpk_trace *trace, int row, const char *name, uint64_t trial,
                    uint64_t from_ns, uint64_t to_ns)
{
    if (trace->file == NULL) {
        return;
    }
    fprintf(trace->file,
            ",\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,"
            "\"args\":{\"trial\":%llu}}",
            name, row, (double)from_ns / 1e3, (double)(to_ns - from_ns) / 1e3,
            (unsigned long long)trial);
}
